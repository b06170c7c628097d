/** The network module against Linux. This kernel has no dummy device, so EIPs are on a bridge here. */
import { loadRouteSocket, withRouteSocket } from '../../src/dataplane/ip/netlink.ts';
import { networkConformance } from '../../src/dataplane/ip/testing/conformance.ts';
import type { World } from '../../src/dataplane/ip/testing/node.ts';
import { watchConformance } from '../../src/dataplane/ip/testing/watch-conformance.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

let worlds = 0;

const open = (): Promise<World> => {
  worlds += 1;
  return openNamespace(`ip${worlds}`);
};

/** The same without programs for what comes and goes, as the agent has it. */
const openWithSocket = async (): Promise<World> => {
  worlds += 1;
  const namespace = await openNamespace(`ip${worlds}`);
  const socket = inNamespace(namespace.name, await loadRouteSocket());
  return {
    programs: withRouteSocket(namespace.programs, socket),
    [Symbol.asyncDispose]: async () => {
      socket?.close();
      await namespace.close();
    },
  };
};

networkConformance('Linux', open);
networkConformance('Linux, by netlink', openWithSocket);
watchConformance('Linux', open);
