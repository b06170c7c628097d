/**
 * From the moment the API server tells the address of a new pod until the kernel of its node knows which policy the pod is
 * under. Both are seen by this process: as an event of a watch, and as a line of `nft monitor` on the node.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { instanceOf } from '../../lab/host/instance.ts';
import { until } from '../../lab/host/wait.ts';
import type { Lab } from '../../lab/lab.ts';
import { inNamespace } from '../../lab/net/fabric.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { coreResource, type KubeObject } from '../../src/runtime/kube/resource.ts';

const pods = coreResource('pods', 'Pod', true);
type Pod = KubeObject & { readonly status?: { readonly podIP?: string } };

/** Makes pods on a node, one after the other, under a policy that is there already. */
export async function podAddressToKernel(lab: Lab, kube: KubeClient, node: string, rounds: number): Promise<number[]> {
  const policies = resourceOf('EgressPolicy');
  await kube.create(policies, policy);
  const toldAtMs = new Map<string, number>();
  const inKernelAtMs = new Map<string, number>();
  const stop = new AbortController();
  const watching = watchPods(kube, toldAtMs, stop.signal);
  const monitor = watchKernel(lab, node, inKernelAtMs);
  const samplesMs: number[] = [];
  try {
    for (let round = 0; round < rounds; round += 1) {
      const name = `pod-${round}`;
      await kube.create(pods, podOn(node, name));
      const wait = { what: `the address of ${name} in the API and in the kernel`, limitMs: 30_000, everyMs: 50 };
      samplesMs.push(
        await until(wait, () => {
          // A pod keeps its address, and no two of this benchmark have the same.
          const [ip, told] = [...toldAtMs].at(-1) ?? [];
          const known = ip === undefined ? undefined : inKernelAtMs.get(ip);
          if (toldAtMs.size <= round || told === undefined || known === undefined) return undefined;
          return Math.round(known - told);
        }),
      );
    }
  } finally {
    stop.abort();
    monitor.kill('SIGKILL');
    await Promise.all([watching, monitor.exitCode === null ? once(monitor, 'exit') : undefined]);
    await kube.delete(policies, { namespace: 'default', name: policy.metadata.name });
  }
  return samplesMs;
}

/** Notes when the address of each pod of the benchmark is told. */
async function watchPods(kube: KubeClient, toldAtMs: Map<string, number>, signal: AbortSignal): Promise<void> {
  const labelSelector = 'app=fresh';
  let resourceVersion = '';
  for await (const page of kube.list<Pod>(pods, { labelSelector })) resourceVersion = page.resourceVersion;
  try {
    for await (const event of kube.watch<Pod>(pods, { labelSelector, resourceVersion, signal })) {
      if (event.type !== 'ADDED' && event.type !== 'MODIFIED') continue;
      const ip = event.object.status?.podIP;
      if (ip !== undefined && !toldAtMs.has(ip)) toldAtMs.set(ip, performance.now());
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Notes when an address becomes a key of the map of pods. */
function watchKernel(lab: Lab, node: string, inKernelAtMs: Map<string, number>): ChildProcess {
  const [program = '', ...args] = inNamespace(instanceOf(lab.name), node, ['nft', 'monitor', 'new', 'elements']);
  const monitor = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface({ input: monitor.stdout }).on('line', (line) => {
    const [, ip] = /^add element inet sallyport pod4 \{ (\S+) /.exec(line) ?? [];
    if (ip !== undefined && !inKernelAtMs.has(ip)) inKernelAtMs.set(ip, performance.now());
  });
  return monitor;
}

const policy = {
  metadata: { name: 'fresh', namespace: 'default' },
  spec: { egressGatewayName: 'main', appliedTo: { podSelector: { matchLabels: { app: 'fresh' } } } },
};

const podOn = (nodeName: string, name: string) => ({
  metadata: { name, namespace: 'default', labels: { app: 'fresh' } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'idle', image: 'any/image:will-do', command: ['sleep', 'infinity'] }],
  },
});
