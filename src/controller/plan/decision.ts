/**
 * IndexedPlan is one plan together with what it was made from. Decider makes one after the other; it remembers what it
 * decided, because the statuses in the caches are always a little older than our own writes.
 */
import type { Config } from '../../api/config.ts';
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import type { ClusterView, RecordedTunnel, TunnelView } from '../../core/cluster/view.ts';
import { remember } from '../../core/node/remember.ts';
import type { GatewayPlan } from '../../core/plan/gateway-plan.ts';
import { createPlanner, type NextPlan, type Plan } from '../../core/plan/plan.ts';
import { isSamePolicyPlan, type PolicyPlan } from '../../core/plan/policy-plan.ts';
import { projectClusterInfo, projectSettings } from '../../core/project/index.ts';
import type { TunnelPlan } from '../../core/tunnels/tunnels.ts';
import type { CachedTunnel, ControllerCaches } from '../loop/caches.ts';
import type { Heartbeats } from './heartbeats.ts';
import { PolicyViews } from './policy-views.ts';

/** A plan, indexed for those who carry it out. */
export interface IndexedPlan {
  /** How many there were before it. */
  readonly number: number;
  readonly view: ClusterView;
  readonly plan: Plan;
  /**
   * It shows the last decision, whichever decision it is read from: thousands of policies stay as they are from one to the
   * next, and copying the map would cost as much as deciding.
   */
  readonly policyByKey: ReadonlyMap<string, DecidedPolicy>;
  /** Policies about which something else was decided than by the decision before, and those that came. */
  readonly changedPolicies: ReadonlySet<string>;
  /** Made when somebody asks for it, as the plans of gateways are. */
  readonly gatewayByName: ReadonlyMap<string, PlannedObject<GatewayPlan>>;
  readonly tunnelByNode: ReadonlyMap<string, TunnelPlan>;
  /** Gateways that carry something for a policy of either kind. Made when somebody asks for it. */
  readonly gatewaysInUse: ReadonlySet<string>;
  /** Nodes whose agents had fallen silent; the same set as before while it has the same nodes. */
  readonly silentNodes: ReadonlySet<string>;
}

/** The plan of one object and the generation of it that the plan was made from. */
export interface PlannedObject<P> {
  readonly plan: P;
  readonly generation: number;
}

/** The plan of one policy; one that was made anew under the same name is another policy, and waits for its own plan. */
export interface DecidedPolicy extends PlannedObject<PolicyPlan> {
  readonly uid: string;
}

/** The caches that decisions are made from. */
export type PlanInput =
  | 'nodes'
  | 'namespaces'
  | 'gateways'
  | 'policies'
  | 'clusterPolicies'
  | 'tunnels'
  | 'clusterInfos';

/** What decisions are made from. */
export type DecisionSource = { readonly [K in PlanInput]: Pick<ControllerCaches[K], 'store'> };

/** Makes decisions; one per process that leads. */
export class Decider {
  readonly #caches: DecisionSource;
  readonly #heartbeats: Pick<Heartbeats, 'stateOf' | 'silent'>;
  readonly #plan = createPlanner();
  readonly #settings = remember(projectSettings);
  readonly #ranges = remember(projectClusterInfo);
  #decisions = 0;
  readonly #policyByKey = new Map<string, DecidedPolicy>();
  readonly #policies: PolicyViews;
  /** uid of a tunnel -> its addresses as last decided */
  #tunnelByUid: ReadonlyMap<string, RecordedTunnel> = new Map();
  /** view of a tunnel in the cache -> the view with what was decided and heard, as it was last */
  readonly #tunnelCopies = new WeakMap<TunnelView, TunnelView>();
  readonly #decidedByGateway = new WeakMap<GatewayPlan, PlannedObject<GatewayPlan>>();

  constructor(caches: DecisionSource, heartbeats: Pick<Heartbeats, 'stateOf' | 'silent'>) {
    this.#caches = caches;
    this.#heartbeats = heartbeats;
    this.#policies = new PolicyViews([caches.policies, caches.clusterPolicies]);
  }

  /** Decides everything anew from what the caches hold now. */
  decide(config: Config): IndexedPlan {
    const caches = this.#caches;
    const tunnels = [...caches.tunnels.store.values()];
    const view: ClusterView = {
      settings: this.#settings(config, seedOf(caches)),
      ranges: this.#ranges(caches.clusterInfos.store.get(clusterInfoName)?.view),
      nodes: [...caches.nodes.store.values()],
      tunnels: tunnels.map((tunnel) => this.#tunnelView(tunnel)),
      gateways: [...caches.gateways.store.values()].map((gateway) => gateway.view),
      policies: this.#policies.look(),
      namespaces: [...caches.namespaces.store.values()],
    };
    const next = this.#plan(view);
    const decision = this.#indexed(view, next);
    this.#policies.remember(next.changes);
    this.#rememberTunnels(decision, tunnels);
    return decision;
  }

  #tunnelView({ view, identity }: CachedTunnel): TunnelView {
    const recorded = this.#tunnelByUid.get(identity.uid) ?? view.recorded;
    const heartbeat = this.#heartbeats.stateOf(view.node);
    const known = this.#tunnelCopies.get(view);
    if (known?.recorded === recorded && known.heartbeat === heartbeat) return known;
    const copy = { ...view, recorded, heartbeat };
    this.#tunnelCopies.set(view, copy);
    return copy;
  }

  #indexed(view: ClusterView, { plan, changes }: NextPlan): IndexedPlan {
    const policyByKey = this.#policyByKey;
    const changedPolicies = new Set<string>();
    const gone = new Set<string>();
    for (const { policy, plan: each } of changes) {
      const { key, generation, uid } = policy;
      const before = policyByKey.get(key);
      if (each === undefined) {
        gone.add(key);
        continue;
      }
      gone.delete(key);
      const isSame = before?.uid === uid && before.generation === generation;
      if (isSame && before.plan === each) continue;
      policyByKey.set(key, { plan: each, generation, uid });
      if (!isSame || !isSamePolicyPlan(before.plan, each)) changedPolicies.add(key);
    }
    for (const key of gone) policyByKey.delete(key);
    const decided = this.#decidedByGateway;
    let gatewayByName: IndexedPlan['gatewayByName'] | undefined;
    let gatewaysInUse: IndexedPlan['gatewaysInUse'] | undefined;
    return {
      number: this.#decisions++,
      view,
      plan,
      policyByKey,
      changedPolicies,
      get gatewayByName() {
        gatewayByName ??= gatewaysOf(view, plan, decided);
        return gatewayByName;
      },
      tunnelByNode: new Map(plan.tunnels.map((tunnel) => [tunnel.node, tunnel])),
      get gatewaysInUse() {
        gatewaysInUse ??= usedIn(plan);
        return gatewaysInUse;
      },
      silentNodes: this.#heartbeats.silent,
    };
  }

  #rememberTunnels({ tunnelByNode }: IndexedPlan, tunnels: readonly CachedTunnel[]): void {
    const known = this.#tunnelByUid;
    this.#tunnelByUid = new Map(
      tunnels.flatMap(({ identity: { uid, name } }) => {
        const decided = tunnelByNode.get(name);
        const before = known.get(uid);
        // The same value while it says the same: a new one would be a reason to plan all tunnels anew.
        const kept = before !== undefined && decided !== undefined && isSameRecord(before, decided) ? before : decided;
        return kept === undefined ? [] : [[uid, kept]];
      }),
    );
  }
}

/** The uid of kube-system, which people take for the uid of the cluster. */
const seedOf = ({ namespaces }: DecisionSource): string => namespaces.store.get('kube-system')?.uid ?? 'sallyport';

const usedIn = ({ policies }: Plan): ReadonlySet<string> => {
  const used = new Set<string>();
  for (const { binding, gateway } of policies) if (binding !== undefined && gateway !== undefined) used.add(gateway);
  return used;
};

const gatewaysOf = (
  { gateways }: ClusterView,
  plan: Plan,
  known: WeakMap<GatewayPlan, PlannedObject<GatewayPlan>>,
): IndexedPlan['gatewayByName'] => {
  const generationByGateway = new Map(gateways.map(({ name, generation }) => [name, generation]));
  return new Map(
    plan.gateways.map((each) => {
      const decided = decidedAs(known.get(each), each, generationByGateway.get(each.name) ?? 0);
      known.set(each, decided);
      return [each.name, decided];
    }),
  );
};

/** The same value as last time while it says the same. */
const decidedAs = <P>(last: PlannedObject<P> | undefined, plan: P, generation: number): PlannedObject<P> =>
  last?.plan === plan && last.generation === generation ? last : { plan, generation };

const isSameRecord = (a: RecordedTunnel, b: RecordedTunnel): boolean =>
  a.ipv4 === b.ipv4 && a.ipv6 === b.ipv6 && a.mark === b.mark && a.mac === b.mac && a.phase === b.phase;
