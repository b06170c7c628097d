/**
 * The process of memory.ts: reads objects from its input line by line, keeps their views, applies them to the namespace
 * it is told, and prints its RSS in MB.
 */
import { createInterface } from 'node:readline';
import { createNodePlanner } from '../../src/core/node/desired-for.ts';
import {
  projectClusterInfo,
  projectNamespace,
  projectPod,
  projectPolicy,
  projectTunnel,
} from '../../src/core/project/index.ts';
import type { NamespaceView, PodView, PolicyView, TunnelView } from '../../src/core/view.ts';
import { inputFor } from './cluster.ts';
import type { Line } from './memory.ts';
import { openNode } from './node.ts';

await applyFromInput(process.argv[2] ?? '');

async function applyFromInput(namespace: string): Promise<void> {
  const policies: PolicyView[] = [];
  const tunnels: TunnelView[] = [];
  const namespaces: NamespaceView[] = [];
  const pods: PodView[] = [];
  let ranges = projectClusterInfo(undefined);
  for await (const text of createInterface({ input: process.stdin })) {
    // Written by rssMbOf.
    const line = JSON.parse(text) as Line;
    switch (line.kind) {
      case 'policy':
        policies.push(projectPolicy(line.object));
        break;
      case 'tunnel':
        tunnels.push(projectTunnel(line.object, 'fresh'));
        break;
      case 'namespace':
        namespaces.push(projectNamespace(line.object));
        break;
      case 'pod':
        pods.push(projectPod(line.object));
        break;
      case 'clusterInfo':
        ranges = projectClusterInfo(line.object);
        break;
      default:
        line satisfies never;
    }
  }
  const node = openNode(namespace);
  const host = await node.network.readHost({ kind: 'interface', name: 'eth0' });
  const planner = createNodePlanner();
  const input = inputFor('worker', { policies, tunnels, namespaces, pods, ranges }, host);
  await node.apply(planner(input));
  // A second call, so that what the first one left behind can be collected and what planning needs is in use.
  await node.apply(planner({ ...input, pods: [...pods] }));
  console.log(process.memoryUsage.rss() / 1e6);
}
