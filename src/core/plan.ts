/**
 * plan() turns what is known about the cluster into who carries which EIP, with which slot, and why or why not. It is
 * the one place where decisions are joined; each of them has its own file.
 *
 * Recorded bindings are input. The plan of a view whose statuses were written from a plan is that plan again, so a
 * restart changes nothing, and a change of one object moves nothing that does not depend on it.
 */
import type { Applicant } from './allocation.ts';
import { type Finding, finding } from './finding.ts';
import { chooseGateway, type GatewayLookup, lookupOf } from './gateway-choice.ts';
import { type GatewayParts, type GatewayPlan, planGateway, showsPhases } from './gateway-plan.ts';
import { type GatewayPools, havePoolsInCommon, poolsOf } from './gateway-pools.ts';
import { type Demand, type LabelledNode, type Served, serveAll } from './gateway-service.ts';
import { compareText, hashText } from './hash.ts';
import { familiesOf, type Place } from './placement.ts';
import { acceptedPolicy, isStillServed, type PolicyPlan, refusedPolicy } from './policy-plan.ts';
import { compareAge, compareGatewayAge } from './precedence.ts';
import { createShadows, type Shadow, type Shadows } from './shadow.ts';
import { assignSlots, type SlotClaim } from './slots.ts';
import { planTunnels, type TunnelPlan, type TunnelsPlan } from './tunnels.ts';
import type { ClusterView, GatewayView, PolicyKey, PolicyView, TunnelView } from './view.ts';

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
export const plan = (view: ClusterView): Plan => createPlanner()(view);

/** What a planner remembers of its last plan. */
interface Round {
  /** Its policies are sorted by age. */
  readonly view: ClusterView;
  readonly pools: ReadonlyMap<string, GatewayPools>;
  readonly nodes: readonly LabelledNode[];
  readonly clusterDefault: string | undefined;
  readonly servedByGateway: ReadonlyMap<string, Served>;
  readonly planByGateway: ReadonlyMap<string, GatewayPlan>;
  readonly planByPolicy: ReadonlyMap<PolicyKey, PolicyPlan>;
}

/**
 * Makes a function that plans. Its result depends on the view alone: what it remembers of the last plan only saves work,
 * for the parts of the view that are the same values as last time. What comes out the same is the same value again,
 * which makes it cheap to see what changed.
 */
export const createPlanner = (): ((view: ClusterView) => Plan) => {
  const shadowsFor = createShadows();
  let last: Round | undefined;
  return (unordered) => {
    // Sorted once: the sorts further down find the order they want, which costs them one pass.
    const view = { ...unordered, policies: unordered.policies.toSorted(compareAge) };
    const tunnels = planTunnels(view);
    const pools = last !== undefined && havePoolsInCommon(last.view, view) ? last.pools : poolsOf(view);
    const nodes = nodesOf(view, tunnels, last?.nodes);
    const lookup = lookupOf(view.gateways, view.namespaces);
    const clusterDefault = lookup.clusterDefault?.name;
    const { demands, bound } = bindPolicies(view, lookup);
    const served = serveAll(demands, pools, nodes, view.settings.seed, (name) => last?.servedByGateway.get(name));
    const phases = new Map(tunnels.tunnels.map(({ node, phase }) => [node, phase]));
    const gatewayPlans = served.map((service) => {
      const { name } = service.gateway;
      const lastPlan = last?.planByGateway.get(name);
      const isAsked = last?.servedByGateway.get(name) !== service || last.clusterDefault !== clusterDefault;
      if (!isAsked && lastPlan !== undefined && showsPhases(lastPlan, phases)) return lastPlan;
      return planGateway({ ...service, phases, eips: eipsOf(service), clusterDefault });
    });
    const servedByGateway = new Map(served.map((service) => [service.gateway.name, service]));
    const shadows = shadowsFor(view.policies, view.ranges, view.namespaces);
    const policies = planPolicies(bound, servedByGateway, shadows, last?.planByPolicy);
    last = {
      ...{ view, pools, nodes, clusterDefault, servedByGateway },
      planByGateway: new Map(gatewayPlans.map((each) => [each.name, each])),
      planByPolicy: new Map(policies.map((each) => [each.key, each])),
    };
    return {
      policies,
      gateways: gatewayPlans.toSorted((a, b) => compareText(a.name, b.name)),
      tunnels: tunnels.tunnels,
      orphanTunnels: tunnels.orphans,
    };
  };
};

/** A policy that is not being deleted, with the gateway that it uses or why it uses none. */
interface Bound {
  readonly policy: PolicyView;
  readonly gateway: string;
  readonly refusal: Finding | undefined;
}

/** Finds the gateway of every policy. `bound` is in the order of the policies. */
const bindPolicies = (
  { gateways, policies }: ClusterView,
  lookup: GatewayLookup,
): { demands: readonly Demand[]; bound: readonly Bound[] } => {
  const applicantsByGateway = new Map<GatewayView, Applicant[]>(
    gateways.toSorted(compareGatewayAge).map((gateway) => [gateway, []]),
  );
  const bound: Bound[] = [];
  for (const policy of policies) {
    const { key, spec, isDeleting, problems } = policy;
    if (isDeleting) continue;
    if (spec === undefined) {
      const refusal = problems[0] ?? finding('SpecInvalid', `Policy ${key} cannot be read.`);
      bound.push({ policy, gateway: '', refusal });
      continue;
    }
    const chosen = chooseGateway(policy, spec, lookup);
    if (chosen.ok) {
      applicantsByGateway.get(chosen.value)?.push({ policy, spec });
      bound.push({ policy, gateway: chosen.value.name, refusal: undefined });
    } else bound.push({ policy, gateway: '', refusal: chosen.finding });
  }
  return { demands: [...applicantsByGateway].map(([gateway, applicants]) => ({ gateway, applicants })), bound };
};

/** The nodes by name, with what placement asks about them. A node of `last` that is as it was stays the same value. */
const nodesOf = (
  { nodes, tunnels }: ClusterView,
  plans: TunnelsPlan,
  last: readonly LabelledNode[] = [],
): readonly LabelledNode[] => {
  const ready = new Set(plans.tunnels.filter(({ phase }) => phase === 'Ready').map(({ node }) => node));
  const tunnelByNode = new Map(tunnels.map((tunnel) => [tunnel.node, tunnel]));
  const lastByName = new Map(last.map((node) => [node.name, node]));
  return nodes
    .map((view): LabelledNode => {
      const { name, labels, addresses, isDraining } = view;
      const reported = tunnelByNode.get(name)?.held ?? noneHeld;
      const isReady = ready.has(name);
      const known = lastByName.get(name);
      if (known?.view === view && known.reported === reported && known.isReady === isReady) return known;
      const held = new Map(reported.map(({ ip, epoch }) => [ip, epoch]));
      const families = familiesOf(addresses);
      return { view, reported, name, hash: hashText(name), labels, isReady, isDraining, families, held };
    })
    .toSorted((a, b) => compareText(a.name, b.name));
};

/** What the nodes of a gateway have to carry, each once. */
const eipsOf = ({ granted }: Served): GatewayParts['eips'] => {
  const grantByLoad = new Map([...granted.values()].map((grant) => [grant.load, grant]));
  return [...grantByLoad.values()];
};

/** The plans of the policies, in their order. */
const planPolicies = (
  bound: readonly Bound[],
  servedByGateway: ReadonlyMap<string, Served>,
  shadowsByPolicy: Shadows,
  lastPlans: ReadonlyMap<PolicyKey, PolicyPlan> | undefined,
): PolicyPlan[] => {
  const grants = bound.map(({ policy, gateway }) => servedByGateway.get(gateway)?.granted.get(policy));
  const claims: SlotClaim[] = [];
  for (const granted of grants) {
    if (granted !== undefined) claims.push({ policy: granted.applicant.policy, eip: granted.eip });
  }
  const slots = assignSlots(claims);
  return bound.map(({ policy, gateway, refusal }, index) => {
    const { key } = policy;
    const shadows = shadowsByPolicy.get(key) ?? noShadows;
    const by = servedByGateway.get(gateway);
    const granted = grants[index];
    if (by === undefined || granted === undefined) {
      const because = refusal ?? by?.refused.get(policy);
      if (because === undefined) throw new TypeError(`nobody has decided about policy ${key}`);
      return refusedPolicy(policy, by?.gateway.name, because, shadows);
    }
    const place = by.places.get(granted.load) ?? nowhere;
    const given = { gateway, eip: granted.eip, place, slot: slots.get(key), nodes: by.nodes };
    const last = lastPlans?.get(key);
    return last !== undefined && isStillServed(last, policy, given, shadows)
      ? last
      : acceptedPolicy(policy, given, shadows);
  });
};

const noneHeld: TunnelView['held'] = [];
const noShadows: readonly Shadow[] = [];
const nowhere: Place = { node: undefined, isServing: false };
