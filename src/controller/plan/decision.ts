/**
 * Decision is one plan together with what it was made from. Decider makes one after the other; it remembers what it
 * decided, because the statuses in the caches are always a little older than our own writes.
 */
import type { Config } from '../../api/config.ts';
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import type { GatewayPlan } from '../../core/gateway-plan.ts';
import { type Plan, plan } from '../../core/plan.ts';
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
  #last: Decision | undefined;
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
    const policies = [...caches.policies.store.values(), ...caches.clusterPolicies.store.values()];
    const tunnels = [...caches.tunnels.store.values()];
    const view: ClusterView = {
      settings: projectSettings(config, seedOf(caches)),
      ranges: projectClusterInfo(caches.clusterInfos.store.get(clusterInfoName)?.view),
      nodes: [...caches.nodes.store.values()],
      tunnels: tunnels.map((tunnel) => this.#tunnelView(tunnel)),
      gateways: [...caches.gateways.store.values()].map((gateway) => gateway.view),
      policies: policies.map((policy) => this.#policyView(policy)),
      namespaces: [...caches.namespaces.store.values()],
    };
    const last = this.#last;
    const made = plan(view, (key) => last?.policyByKey.get(key)?.plan);
    const decision = indexed(view, made, this.#heartbeats.silent);
    this.#last = decision;
    this.#remember(decision, view.policies, tunnels);
    return decision;
  }

  #policyView({ view }: KeptPolicy): PolicyView {
    const recorded = this.#bindingByUid.get(view.uid);
    // Most caches have caught up: a view that says the same already needs no copy.
    return recorded === undefined || isSameBinding(recorded, view.recorded) ? view : { ...view, recorded };
  }

  #tunnelView({ view, identity }: KeptTunnel): ClusterView['tunnels'][number] {
    const recorded = this.#tunnelByUid.get(identity.uid) ?? view.recorded;
    return { ...view, recorded, heartbeat: this.#heartbeats.stateOf(view.node) };
  }

  #remember(decision: Decision, policies: readonly PolicyView[], tunnels: readonly KeptTunnel[]): void {
    this.#bindingByUid = new Map(
      policies.flatMap(({ key, uid, recorded }) => {
        const decided = decision.policyByKey.get(key);
        return decided === undefined ? [] : [[uid, bindingOf(decided.plan, recorded)]];
      }),
    );
    this.#tunnelByUid = new Map(
      tunnels.flatMap(({ identity: { uid, name } }) => {
        const decided = decision.tunnelByNode.get(name);
        return decided === undefined ? [] : [[uid, decided]];
      }),
    );
  }
}

/** The uid of kube-system, which people take for the uid of the cluster. */
const seedOf = ({ namespaces }: DecisionSource): string => namespaces.store.get('kube-system')?.uid ?? 'sallyport';

const indexed = (view: ClusterView, made: Plan, silentNodes: ReadonlySet<string>): Decision => {
  const generationByPolicy = new Map(view.policies.map(({ key, generation }) => [key, generation]));
  const generationByGateway = new Map(view.gateways.map(({ name, generation }) => [name, generation]));
  const bound = made.policies.filter(({ binding }) => binding !== undefined).map(({ gateway }) => gateway);
  return {
    view,
    plan: made,
    policyByKey: new Map(
      made.policies.map((each) => [each.key, { plan: each, generation: generationByPolicy.get(each.key) ?? 0 }]),
    ),
    gatewayByName: new Map(
      made.gateways.map((each) => [each.name, { plan: each, generation: generationByGateway.get(each.name) ?? 0 }]),
    ),
    tunnelByNode: new Map(made.tunnels.map((tunnel) => [tunnel.node, tunnel])),
    gatewaysInUse: new Set(bound.filter((gateway) => gateway !== undefined)),
    silentNodes,
  };
};

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
