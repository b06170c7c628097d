/** A cluster that fits in the head: two gateway nodes `a` and `b`, a worker `w`, one gateway `g`. Not shipped. */

import type { ClusterView } from '../cluster/view.ts';
import type { NodeDesired } from '../node/desired.ts';
import { createNodePlanner } from '../node/desired-for.ts';
import type { HostView, NodeInput, ParentView } from '../node/input.ts';
import { nodeInput, podOn } from './nodes.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from './objects.ts';
import { viewOf } from './world.ts';

const bothPools = { ipv4: ['10.6.1.1-10.6.1.9'], ipv6: ['fd06:1::1-fd06:1::9'] };

/** The cluster with some policies; unless they say otherwise they are about pods with the label app=shop. */
export const smallCluster = (policies: Readonly<Record<string, PolicyShape>>, pools = bothPools): ClusterView => {
  const world = worldOf(
    [
      nodeObject('a', ['192.0.2.1', '2001:db8:1::1']),
      nodeObject('b', ['192.0.2.2', '2001:db8:1::2']),
      nodeObject('w', ['192.0.2.3', '2001:db8:1::3'], {}),
    ],
    [gatewayObject('g', pools)],
    Object.entries(policies).map(([key, shape], at) =>
      policyObject(key, {
        gateway: 'g',
        allocator: 'rr',
        appliedTo: { podSelector: { matchLabels: { app: 'shop' } } },
        at,
        ...shape,
      }),
    ),
  );
  const ranges = {
    podCIDR: { ipv4: ['10.244.0.0/16'], ipv6: ['fd44::/32'] },
    nodeIP: { ipv4: ['192.0.2.1-192.0.2.3'] },
  };
  world.clusterInfo = { metadata: { name: 'default' }, status: { egressIgnoreCIDR: ranges } };
  step(world);
  return viewOf(world);
};

/** Two pods of the shop and another one on the worker, and one of the shop on a gateway node. */
export const smallPods = [
  podOn('w', 'red/shop-0', ['10.244.1.7', 'fd44::7'], { app: 'shop' }),
  podOn('w', 'red/shop-1', ['10.244.1.8', 'fd44::8'], { app: 'shop' }),
  podOn('w', 'red/other', ['10.244.1.9', 'fd44::9'], { app: 'other' }),
  podOn('a', 'red/shop-2', ['10.244.2.7', 'fd44::2:7'], { app: 'shop' }),
];

/** What a node of the cluster should hold, with some of its input replaced. */
export const desiredOf = (view: ClusterView, node: string, over: Partial<NodeInput> = {}): NodeDesired =>
  createNodePlanner()(nodeInput(view, node, smallPods, over));

/** The problems as `policy: reason`, or `node: reason`. */
export const problemsOf = ({ problems }: NodeDesired): string[] =>
  problems.map(({ finding, policy }) => `${policy ?? 'node'}: ${finding.reason}`);

/** The host of a node with some of its parent interface replaced. */
export const hostOf = (view: ClusterView, node: string, over: Partial<ParentView>): HostView => {
  const { host } = nodeInput(view, node, []);
  return { ...host, parent: 'finding' in host.parent ? host.parent : { ...host.parent, ...over } };
};
