import { callInside } from '../../lab/net/enter.ts';

/** Calls the function in the namespace of that name and comes back. It may not wait; see lab/net/enter.ts. */
export const inNamespace = <T>(name: string, call: () => T): T => callInside(`/run/netns/${name}`, call);
