/** electorateLoop keeps the electorate in the status of the EgressClusterInfo, one change after the other. */
import { isDeepStrictEqual } from 'node:util';
import { clusterInfoName, type EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import { resourceOf } from '../../api/kinds.ts';
import type { Electorate, GatewayView, NodeView } from '../../core/cluster/view.ts';
import { type ElectoratePlan, electorsOf, gatewayNodesOf, planElectorate } from '../../core/ownership/electorate.ts';
import { electorateOf } from '../../core/project/index.ts';
import { isSameList } from '../../core/values/equality.ts';
import { Controller, type ReconcileResult } from '../../runtime/control/controller.ts';
import { type Watch, watch } from '../../runtime/control/watch.ts';
import { isConflict, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import type { PlanLoop } from '../plan/control-loop.ts';

/** The name under which the electorate is applied. */
const fieldManager = 'sallyport-electorate';
/** Nobody waits for this as they do for policies; plans that come together are looked at together. */
const planDelayMs = 100;
/**
 * How long the first electorate waits for nodes that are still starting, where those that work are few: it is named whole,
 * and any later one grows by one vote at a time.
 */
const firstWaitMs = 10_000;
const lookAgainMs = 500;

const resource = resourceOf('EgressClusterInfo');
type ElectorateObject = KubeObject & { readonly status?: Pick<EgressClusterInfoStatus, 'electorate'> };

/** The part, which also shows its last plan to metrics. */
export interface ElectorateLoop extends ControlLoop {
  readonly last: ElectoratePlan | undefined;
}

/** Makes the part. It follows the plan that `plan` makes. */
export const electorateLoop = (deps: ControlLoopDeps, plan: Pick<PlanLoop, 'decision' | 'watch'>): ElectorateLoop => {
  const { caches, clock, metrics } = deps;
  const log = deps.log.child({ component: 'electorate' });
  const gatewayNodes = rememberedGatewayNodes();
  let last: ElectoratePlan | undefined;
  let firstAtMs: number | undefined;
  const controller = new Controller(
    {
      name: 'electorate',
      watches: [
        plan.watch('plan', () => [clusterInfoName], planDelayMs),
        watch('record', caches.clusterInfos, () => [clusterInfoName]),
        reportsIn(deps),
      ],
      reconcile: async (_key, signal) => {
        const next = planned(deps, plan, gatewayNodes);
        if (next === undefined) return { kind: 'done' };
        if (isFirst(deps, next) && next.isSmall) {
          firstAtMs ??= clock.monotonicMs();
          if (clock.monotonicMs() - firstAtMs < firstWaitMs) return { kind: 'requeue', afterMs: lookAgainMs };
        }
        last = next;
        return await record({ ...deps, log }, next, signal);
      },
    },
    { ...deps, hooks: metrics.controller('electorate') },
  );
  metrics.observeQueue(controller);
  return {
    name: 'electorate',
    get last() {
      return last;
    },
    missing: () => {
      const missing = controller.missing();
      return missing === undefined ? [] : [missing];
    },
    run: (signal) => controller.run(signal),
  };
};

/** Agents that go by another electorate than before. */
const reportsIn = ({ caches }: ControlLoopDeps): Watch => ({
  name: 'reports',
  synced: caches.tunnels.synced,
  presentKeys: () => [],
  subscribe: (listener) =>
    caches.tunnels.subscribe((change) => {
      const after = change.kind === 'put' ? change.value.view.electorate : undefined;
      if (!isDeepStrictEqual(change.previous?.view.electorate, after)) listener([clusterInfoName]);
    }),
});

/** Asks selectors again only when a node or a gateway is another one: most plans are about policies. */
const rememberedGatewayNodes = (): typeof gatewayNodesOf => {
  let last: { nodes: readonly NodeView[]; gateways: readonly GatewayView[]; names: ReadonlySet<string> } | undefined;
  return (nodes, gateways) => {
    if (last === undefined || !isSameList(last.nodes, nodes) || !isSameList(last.gateways, gateways)) {
      last = { nodes, gateways, names: gatewayNodesOf(nodes, gateways) };
    }
    return last.names;
  };
};

interface Planned extends ElectoratePlan {
  /** True when more nodes could vote, if they were ready. */
  readonly isSmall: boolean;
}

/** What is to be recorded; undefined before there is a plan, or an object to record it in: another part makes that. */
const planned = (
  { caches }: ControlLoopDeps,
  { decision }: Pick<PlanLoop, 'decision'>,
  gatewayNodes: typeof gatewayNodesOf,
): Planned | undefined => {
  const kept = caches.clusterInfos.store.get(clusterInfoName);
  if (kept === undefined || decision === undefined) return undefined;
  // Reports are no reason to plan anew, so the view of the last plan may have older ones than the cache.
  const heard = new Map(decision.view.tunnels.map(({ node, heartbeat }) => [node, heartbeat]));
  const tunnels = [...caches.tunnels.store.values()].map(({ view }) => ({
    ...view,
    heartbeat: heard.get(view.node) ?? 'never',
  }));
  const { nodes, gateways } = decision.view;
  const electors = electorsOf({ nodes, tunnels }, gatewayNodes(nodes, gateways), decision.plan.tunnels);
  const plan = planElectorate(electorateOf(kept.status?.electorate), electors);
  const isSmall = (plan.electorate?.voters.length ?? 0) < 3 && electors.some(({ isReady }) => !isReady);
  return { ...plan, isSmall };
};

const isFirst = ({ caches }: ControlLoopDeps, { electorate }: ElectoratePlan): boolean =>
  electorate !== undefined && caches.clusterInfos.store.get(clusterInfoName)?.status?.electorate === undefined;

const record = async (
  { caches, client, log }: ControlLoopDeps,
  { electorate }: ElectoratePlan,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const kept = caches.clusterInfos.store.get(clusterInfoName);
  if (kept === undefined || electorate === undefined) return { kind: 'done' };
  if (isDeepStrictEqual(electorate, electorateOf(kept.status?.electorate))) return { kind: 'done' };
  const { uid, resourceVersion } = kept.identity;
  const object: ElectorateObject = {
    metadata: { name: clusterInfoName, uid, resourceVersion },
    status: { electorate: statusOf(electorate) },
  };
  try {
    await client.applyStatus(resource, object, { fieldManager, signal });
  } catch (error) {
    // Changed since, deleted or made anew: the cache is about to tell, and it will be decided again.
    if (isNotFound(error) || isConflict(error)) return { kind: 'done' };
    throw error;
  }
  log.info({ key: clusterInfoName }, sentenceOf(electorate));
  return { kind: 'done' };
};

const statusOf = ({ generation, voters, hasApi }: Electorate): NonNullable<EgressClusterInfoStatus['electorate']> => ({
  generation,
  voters: [...voters],
  apiVotes: hasApi,
});

const sentenceOf = ({ generation, voters, hasApi }: Electorate): string =>
  `electorate ${generation}: ${[...voters, ...(hasApi ? ['the API server'] : [])].join(', ')}`;
