/**
 * plan() turns what is known about the cluster into who carries which EIP, with which slot, and why or why not. It is
 * the one place where decisions are joined; each of them has its own file.
 *
 * Recorded bindings are input. The plan of a view whose statuses were written from a plan is that plan again, so a
 * restart changes nothing, and a change of one object moves nothing that does not depend on it.
 */

import type { ClusterView, GatewayView, TunnelView } from '../cluster/view.ts';
import {
  allocateAll,
  type GatewayAllocation,
  type LabelledNode,
  type RepeatedAllocation,
} from '../gateways/gateway-allocation.ts';
import { familiesOf } from '../gateways/placement.ts';
import { type GatewayPools, havePoolsInCommon, poolsOf } from '../gateways/pools.ts';
import { createRequests } from '../gateways/requests.ts';
import { createIncrementalShadows } from '../policies/incremental-shadows.ts';
import { createPolicyOrder } from '../policies/policy-order.ts';
import { keepsOn, planTunnels, type TunnelPlan, type TunnelsPlan } from '../tunnels/tunnels.ts';
import { isSameList } from '../values/equality.ts';
import { compareText, hashText } from '../values/hash.ts';
import { type GatewayParts, type GatewayPlan, phasesOf, planGateway } from './gateway-plan.ts';
import type { PolicyPlan } from './policy-plan.ts';
import { createPolicyPlans, type PolicyChange } from './policy-plans.ts';

/** Everything that was decided; gateways and tunnels by name. */
export interface Plan {
  /** The oldest first. Policies that are being deleted have no plan: they are gone. */
  readonly policies: readonly PolicyPlan[];
  readonly gateways: readonly GatewayPlan[];
  readonly tunnels: readonly TunnelPlan[];
  /** EgressTunnels to delete, because their nodes are gone. */
  readonly orphanTunnels: readonly string[];
}

/** Decides everything from the view. Pure: the same view, in any order of its lists, gives the same plan. */
export const plan = (view: ClusterView): Plan => createPlanner()(view).plan;

/** A plan, and what is new about its policies since the last plan of the same planner. */
export interface NextPlan {
  readonly plan: Plan;
  readonly changes: readonly PolicyChange[];
}

/** What a planner remembers of its last plan, besides what its parts do. */
interface PreviousPlan {
  readonly view: ClusterView;
  readonly pools: ReadonlyMap<string, GatewayPools>;
  readonly tunnels: TunnelsPlan;
  readonly nodes: readonly LabelledNode[];
  readonly serviceByGateway: ReadonlyMap<string, RepeatedAllocation>;
  readonly lateByGateway: ReadonlyMap<string, LatePlan>;
}

/** The plan of a gateway, which is made when somebody asks for it: nobody waits for it as they do for policies. */
interface LatePlan {
  readonly served: GatewayAllocation;
  readonly phases: GatewayParts['phases'];
  readonly clusterDefault: string | undefined;
  readonly get: () => GatewayPlan;
}

/**
 * Makes a function that plans. Its result depends on the view alone: what it remembers of the last plan only saves work,
 * for the parts of the view that are the same values as last time. What comes out the same is the same value again,
 * which makes it cheap to see what changed.
 */
export const createPlanner = (): ((view: ClusterView) => NextPlan) => {
  const [sorted, demandsOf, shadowsFor, planPolicies] = [
    createPolicyOrder(),
    createRequests(),
    createIncrementalShadows(),
    createPolicyPlans(),
  ];
  let last: PreviousPlan | undefined;
  return (unordered) => {
    const view = { ...unordered, policies: sorted(unordered.policies) };
    const tunnels = last !== undefined && haveTunnelsInCommon(last.view, view) ? last.tunnels : planTunnels(view);
    const pools = last !== undefined && havePoolsInCommon(last.view, view) ? last.pools : poolsOf(view);
    const nodes = nodesOf(view, tunnels, last?.nodes);
    const { demands, bound, clusterDefault } = demandsOf(view);
    const services = allocateAll(demands, pools, nodes, view.settings.seed, (name) => last?.serviceByGateway.get(name));
    const served = services.map((service) => service.served);
    const shadows = shadowsFor(view.policies, view.ranges, view.namespaces);
    const servedBy = new Map(served.map((each): [GatewayView, GatewayAllocation] => [each.gateway, each]));
    const { plans, changes } = planPolicies({ policies: view.policies, bound, servedBy, shadows });
    const phases = new Map(tunnels.tunnels.map(({ node, phase }) => [node, phase]));
    const late = served.map((each) =>
      latePlan(each, phases, clusterDefault, last?.lateByGateway.get(each.gateway.name)),
    );
    last = {
      ...{ view, pools, tunnels, nodes },
      serviceByGateway: new Map(services.map((service) => [service.served.gateway.name, service])),
      lateByGateway: new Map(late.map((each) => [each.served.gateway.name, each])),
    };
    let gateways: readonly GatewayPlan[] | undefined;
    const plan: Plan = {
      policies: plans,
      get gateways() {
        gateways ??= late.map(({ get }) => get()).toSorted((a, b) => compareText(a.name, b.name));
        return gateways;
      },
      tunnels: tunnels.tunnels,
      orphanTunnels: tunnels.orphans,
    };
    return { plan, changes };
  };
};

/** True when planTunnels gives the same for both views. */
const haveTunnelsInCommon = (a: ClusterView, b: ClusterView): boolean =>
  havePoolsInCommon(a, b) && isSameList(a.tunnels, b.tunnels);

/** Plans a gateway when asked to; `last` stays when it gives the same. */
const latePlan = (
  served: GatewayAllocation,
  phases: GatewayParts['phases'],
  clusterDefault: string | undefined,
  last: LatePlan | undefined,
): LatePlan => {
  const { nodes } = served;
  if (last?.served === served && last.clusterDefault === clusterDefault) {
    if (isSameList(phasesOf(nodes, last.phases), phasesOf(nodes, phases))) return last;
  }
  let plan: GatewayPlan | undefined;
  const get = (): GatewayPlan => {
    plan ??= planGateway({ ...served, phases, eips: eipsOf(served), clusterDefault });
    return plan;
  };
  return { served, phases, clusterDefault, get };
};

/** The nodes by name, with what placement asks about them. A node of `last` that is as it was stays the same value. */
const nodesOf = (
  { nodes, tunnels }: ClusterView,
  plans: TunnelsPlan,
  last: readonly LabelledNode[] = [],
): readonly LabelledNode[] => {
  const ready = new Set(plans.tunnels.filter(({ phase }) => phase === 'Ready').map(({ node }) => node));
  const tunnelByNode = new Map(tunnels.map((tunnel) => [tunnel.node, tunnel]));
  const keeping = new Set(
    plans.tunnels.filter((plan) => keepsOn(plan, tunnelByNode.get(plan.node))).map(({ node }) => node),
  );
  const lastByName = new Map(last.map((node) => [node.name, node]));
  return nodes
    .map((view): LabelledNode => {
      const { name, labels, addresses, isDraining } = view;
      const tunnel = tunnelByNode.get(name);
      const [reported, conflicts] = [tunnel?.held ?? noneHeld, tunnel?.conflicts ?? noConflicts];
      const [isReady, isKeeping] = [ready.has(name), keeping.has(name)];
      const known = lastByName.get(name);
      const isKnown = known?.isReady === isReady && known.isKeeping === isKeeping;
      const isReportKnown = known?.reported === reported && known.conflicts === conflicts;
      if (isKnown && known.view === view && isReportKnown) return known;
      const held = new Map(reported.map(({ ip, epoch }) => [ip, epoch]));
      const families = familiesOf(addresses);
      const own = { view, reported, conflicts, name, hash: hashText(name) };
      return { ...own, labels, isReady, isKeeping, isDraining, families, held };
    })
    .toSorted((a, b) => compareText(a.name, b.name));
};

/** What the nodes of a gateway have to carry, each once. */
const eipsOf = ({ granted }: GatewayAllocation): GatewayParts['eips'] => {
  const grantByLoad = new Map([...granted.values()].map((grant) => [grant.load, grant]));
  return [...grantByLoad.values()];
};

const noneHeld: TunnelView['held'] = [];
const noConflicts: TunnelView['conflicts'] = [];
