/** Sallyport as a way: the agent's own code applied to the worker and the gateway of a site. */
import { createNodePlanner } from '../../src/core/node/desired-for.ts';
import { masqueradePods, type Way } from './baselines.ts';
import { clusterOf, inputFor } from './cluster.ts';
import { openNode } from './node.ts';
import { addresses } from './site.ts';

/** Ours with a number of policies of ten pods each. The worker masquerades other pods, as a CNI does. */
export const ours = (policies: number): Way => ({
  name: `ours ${policies}`,
  build: async (site) => {
    const cluster = clusterOf(policies);
    await masqueradePods(site, 'worker');
    for (const member of ['gateway', 'worker'] as const) {
      const node = openNode(site.namespaceOf(member));
      const host = await node.network.readHost({ kind: 'interface', name: 'eth0' });
      const desired = createNodePlanner()(inputFor(member, cluster.known, host));
      await node.apply(desired);
      await node.openGate(desired);
    }
    return { pod: cluster.eip, bystander: addresses.worker };
  },
});
