/** What a gateway node should hold that has one policy with an EIP of both families, and a pod under it. */

import type { PolicyView } from '../../core/cluster/view.ts';
import type { NodeDesired } from '../../core/node/desired.ts';
import { createNodePlanner } from '../../core/node/desired-for.ts';
import { nodeInput, podOn } from '../../core/testing/nodes.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../core/testing/objects.ts';
import { viewOf } from '../../core/testing/world.ts';

/** The node, and the policies that it was made from. */
export interface GatewayNode {
  readonly desired: NodeDesired;
  readonly policies: readonly PolicyView[];
}

/** Node `a` with the given policies of namespace `shop`, each with an EIP of its own from 10.6.0.100 and fd06::100 on. */
export const gatewayNode = (...names: readonly string[]): GatewayNode => {
  const pool = { ipv4: ['10.6.0.100-10.6.0.109'], ipv6: ['fd06::100-fd06::109'] };
  const policies = names.map((name) => policyObject(`shop/${name}`, { gateway: 'out', allocator: 'rr' }));
  const world = worldOf([nodeObject('a', ['10.6.0.11', 'fd06::11'])], [gatewayObject('out', pool)], policies);
  step(world);
  const view = viewOf(world);
  const pods = names.map((name, index) => podOn('a', `shop/${name}`, [`10.244.1.${index + 1}`], { app: name }));
  return { desired: createNodePlanner()(nodeInput(view, 'a', pods)), policies: view.policies };
};
