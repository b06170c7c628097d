/** Child process: syncs our informer with the projection that the controller uses for pods, and reports. */

import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { Informer } from '../../src/runtime/kube/informer.ts';
import { coreResource, type KubeObject } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { report } from './measure.ts';

interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string; readonly hostNetwork?: boolean };
  readonly status?: { readonly phase?: string; readonly podIPs?: ReadonlyArray<{ readonly ip: string }> };
}

const server = process.argv[2] ?? '';
const pods = coreResource('pods', 'Pod', true);
const credentials = { tls: { isInsecure: false } };
const client = createKubeClient({
  access: { server, namespace: 'default', credentials: async () => credentials, forget: () => {} },
  userAgent: 'sallyport-bench',
  clock: systemClock,
  random: Math.random,
});
const informer = new Informer({
  client,
  resource: pods,
  clock: systemClock,
  random: Math.random,
  project: ({ metadata, spec, status }: Pod) => ({
    namespace: metadata.namespace,
    name: metadata.name,
    labels: metadata.labels,
    node: spec.nodeName,
    hostNetwork: spec.hostNetwork === true,
    phase: status?.phase,
    ips: status?.podIPs?.map(({ ip }) => ip) ?? [],
  }),
  indexes: { byNode: ({ node }) => (node === undefined ? [] : [node]) },
});
const stop = new AbortController();
const startMs = performance.now();
const running = informer.run(stop.signal);
await informer.synced;
await report(informer.store.size, performance.now() - startMs);
stop.abort();
await running;
await client.close();
