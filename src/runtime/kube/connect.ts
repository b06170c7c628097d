/** How a process of ours reaches the API server: as its command line says, under its own name. */
import { systemClock } from '../process/clock.ts';
import type { RequestRecord } from './caller.ts';
import type { KubeClient } from './client.ts';
import { createKubeClient } from './http-client.ts';
import { loadAccess } from './load-access.ts';

export interface ConnectOptions {
  /** `sallyport-agent/1.2.3`: what the API server's log shows. */
  readonly userAgent: string;
  /** Undefined: the service account of the pod, or KUBECONFIG. */
  readonly kubeconfigPath: string | undefined;
  readonly rateLimit: { readonly perSecond: number; readonly burst: number };
  readonly metrics: { readonly onRequest: (record: RequestRecord) => void };
}

/** Makes the client of this process. */
export const connect = async ({
  userAgent,
  kubeconfigPath,
  rateLimit,
  metrics: { onRequest },
}: ConnectOptions): Promise<KubeClient> => {
  const access = await loadAccess(kubeconfigPath === undefined ? {} : { path: kubeconfigPath });
  return createKubeClient({ access, userAgent, clock: systemClock, random: Math.random, rateLimit, onRequest });
};
