/**
 * Decision is one plan together with what it was made from. Decider makes one after the other; it remembers what it
 * decided, because the statuses in the caches are always a little older than our own writes.
 */
import type { Config } from '../../api/config.ts';
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import type { GatewayPlan } from '../../core/gateway-plan.ts';
import { remember } from '../../core/node/remember.ts';
import { createPlanner, type Plan } from '../../core/plan.ts';
import type { PolicyPlan } from '../../core/policy-plan.ts';
import { projectClusterInfo, projectSettings } from '../../core/project/index.ts';
import type { TunnelPlan } from '../../core/tunnels.ts';
import {
  addressSetsOf,
  type ClusterView,
  type Eip,
  type PolicyView,
  type RecordedBinding,
  type RecordedTunnel,
} from '../../core/view.ts';
import type { Caches, KeptPolicy, KeptTunnel } from '../caches.ts';
import type { Heartbeats } from './heartbeats.ts';

/** A plan, indexed for those who carry it out. */
export interface Decision {
  readonly view: ClusterView;
  readonly plan: Plan;
  readonly policyByKey: ReadonlyMap<string, Decided<PolicyPlan>>;
  readonly gatewayByName: ReadonlyMap<string, Decided<GatewayPlan>>;
  readonly tunnelByNode: ReadonlyMap<string, TunnelPlan>;
  /** Gateways that carry something for a policy of either kind. */
  readonly gatewaysInUse: ReadonlySet<string>;
  /** Nodes whose agents had fallen silent; the same set as before while it has the same nodes. */
  readonly silentNodes: ReadonlySet<string>;
}

/** The plan of one object and the generation of it that the plan was made from. */
export interface Decided<P> {
  readonly plan: P;
  readonly generation: number;
}

/** The caches that decisions are made from. */
export type Input = 'nodes' | 'namespaces' | 'gateways' | 'policies' | 'clusterPolicies' | 'tunnels' | 'clusterInfos';

/** What decisions are made from. */
export type DecisionSource = { readonly [K in Input]: Pick<Caches[K], 'store'> };

/** Makes decisions; one per process that leads. */
export class Decider {
  readonly #caches: DecisionSource;
  readonly #heartbeats: Pick<Heartbeats, 'stateOf' | 'silent'>;
  readonly #plan = createPlanner();
  readonly #settings = remember(projectSettings);
  readonly #ranges = remember(projectClusterInfo);
  #last: Decision | undefined;
  /** view in the cache -> the view with the binding that was decided, while the cache does not show it */
  readonly #copies = new WeakMap<PolicyView, PolicyView>();
  /** uid of a policy -> its binding as last decided */
  #bindingByUid: ReadonlyMap<string, RecordedBinding> = new Map();
  /** uid of a tunnel -> its addresses as last decided */
  #tunnelByUid: ReadonlyMap<string, RecordedTunnel> = new Map();

  constructor(caches: DecisionSource, heartbeats: Pick<Heartbeats, 'stateOf' | 'silent'>) {
    this.#caches = caches;
    this.#heartbeats = heartbeats;
  }

  /** Decides everything anew from what the caches hold now. */
  decide(config: Config): Decision {
    const caches = this.#caches;
    const tunnels = [...caches.tunnels.store.values()];
    const policies: PolicyView[] = [];
    for (const { store } of [caches.policies, caches.clusterPolicies]) {
      for (const policy of store.values()) policies.push(this.#policyView(policy));
    }
    const view: ClusterView = {
      settings: this.#settings(config, seedOf(caches)),
      ranges: this.#ranges(caches.clusterInfos.store.get(clusterInfoName)?.view),
      nodes: [...caches.nodes.store.values()],
      tunnels: tunnels.map((tunnel) => this.#tunnelView(tunnel)),
      gateways: [...caches.gateways.store.values()].map((gateway) => gateway.view),
      policies,
      namespaces: [...caches.namespaces.store.values()],
    };
    const decision = indexed(view, this.#plan(view), this.#heartbeats.silent, this.#last);
    this.#last = decision;
    this.#remember(decision, tunnels);
    return decision;
  }

  #policyView({ view }: KeptPolicy): PolicyView {
    const recorded = this.#bindingByUid.get(view.uid);
    // Most caches have caught up: a view that says the same already needs no copy.
    if (recorded === undefined || isSameBinding(recorded, view.recorded)) return view;
    const known = this.#copies.get(view);
    if (known?.recorded === recorded) return known;
    const copy = { ...view, recorded };
    this.#copies.set(view, copy);
    return copy;
  }

  #tunnelView({ view, identity }: KeptTunnel): ClusterView['tunnels'][number] {
    const recorded = this.#tunnelByUid.get(identity.uid) ?? view.recorded;
    return { ...view, recorded, heartbeat: this.#heartbeats.stateOf(view.node) };
  }

  #remember({ view, policyByKey, tunnelByNode }: Decision, tunnels: readonly KeptTunnel[]): void {
    const bindingByUid = new Map<string, RecordedBinding>();
    for (const { key, uid, recorded } of view.policies) {
      const decided = policyByKey.get(key);
      if (decided !== undefined) bindingByUid.set(uid, bindingOf(decided.plan, recorded));
    }
    this.#bindingByUid = bindingByUid;
    this.#tunnelByUid = new Map(
      tunnels.flatMap(({ identity: { uid, name } }) => {
        const decided = tunnelByNode.get(name);
        return decided === undefined ? [] : [[uid, decided]];
      }),
    );
  }
}

/** The uid of kube-system, which people take for the uid of the cluster. */
const seedOf = ({ namespaces }: DecisionSource): string => namespaces.store.get('kube-system')?.uid ?? 'sallyport';

const indexed = (
  view: ClusterView,
  plan: Plan,
  silentNodes: ReadonlySet<string>,
  last: Decision | undefined,
): Decision => {
  const planByPolicy = new Map(plan.policies.map((each) => [each.key, each]));
  const policyByKey = new Map<string, Decided<PolicyPlan>>();
  for (const { key, generation } of view.policies) {
    const each = planByPolicy.get(key);
    if (each !== undefined) policyByKey.set(key, decidedAs(last?.policyByKey.get(key), each, generation));
  }
  const generationByGateway = new Map(view.gateways.map(({ name, generation }) => [name, generation]));
  const gatewaysInUse = new Set<string>();
  for (const { binding, gateway } of plan.policies) {
    if (binding !== undefined && gateway !== undefined) gatewaysInUse.add(gateway);
  }
  return {
    view,
    plan,
    policyByKey,
    gatewayByName: new Map(
      plan.gateways.map((each) => {
        const generation = generationByGateway.get(each.name) ?? 0;
        return [each.name, decidedAs(last?.gatewayByName.get(each.name), each, generation)];
      }),
    ),
    tunnelByNode: new Map(plan.tunnels.map((tunnel) => [tunnel.node, tunnel])),
    gatewaysInUse,
    silentNodes,
  };
};

/** The same value as last time while it says the same. */
const decidedAs = <P>(last: Decided<P> | undefined, plan: P, generation: number): Decided<P> =>
  last?.plan === plan && last.generation === generation ? last : { plan, generation };

const noEip: Eip = { ipv4: undefined, ipv6: undefined };

/** The binding as reading the written status would give it; the record at hand is kept when it says the same. */
const bindingOf = ({ binding }: PolicyPlan, recorded: RecordedBinding): RecordedBinding => {
  const { eip = noEip, node, slot } = binding ?? {};
  if (isSameBinding({ eip, node, slot }, recorded)) return recorded;
  return { eip, addresses: isSameEip(eip, recorded.eip) ? recorded.addresses : addressSetsOf(eip), node, slot };
};

type Bound = Pick<RecordedBinding, 'eip' | 'node' | 'slot'>;

const isSameBinding = (a: Bound, b: Bound): boolean =>
  a.node === b.node && a.slot === b.slot && isSameEip(a.eip, b.eip);

const isSameEip = (a: Eip, b: Eip): boolean => a.ipv4 === b.ipv4 && a.ipv6 === b.ipv6;
