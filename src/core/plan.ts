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
import { type GatewayPlan, planGateway } from './gateway-plan.ts';
import { poolsOf } from './gateway-pools.ts';
import { type Demand, type Granted, type LabelledNode, type Served, serveAll } from './gateway-service.ts';
import { compareText, hashText } from './hash.ts';
import { familiesOf, type Place } from './placement.ts';
import { indexPolicies } from './policy-index.ts';
import { acceptedPolicy, isStillServed, type PolicyPlan, refusedPolicy } from './policy-plan.ts';
import { compareAge, compareGatewayAge } from './precedence.ts';
import { type Shadow, shadowsOf } from './shadow.ts';
import { assignSlots, type SlotClaim } from './slots.ts';
import { planTunnels, type TunnelPlan, type TunnelsPlan } from './tunnels.ts';
import type { ClusterView, GatewayView, PolicyKey, PolicyView } from './view.ts';

/** Everything that was decided; gateways and tunnels by name. */
export interface Plan {
  /** The oldest first. Policies that are being deleted have no plan: they are gone. */
  readonly policies: readonly PolicyPlan[];
  readonly gateways: readonly GatewayPlan[];
  readonly tunnels: readonly TunnelPlan[];
  /** EgressTunnels to delete, because their nodes are gone. */
  readonly orphanTunnels: readonly string[];
}

/**
 * Decides everything anew from the view. Pure: the same view, in any order of its lists, gives the same plan. `lastPlanOf`
 * gives the plan that a policy had last; where it would come out the same, that very value is in the new plan.
 */
export const plan = (
  unordered: ClusterView,
  lastPlanOf: (key: PolicyKey) => PolicyPlan | undefined = () => undefined,
): Plan => {
  // Sorted once: the sorts further down find the order they want, which costs them one pass.
  const view = { ...unordered, policies: unordered.policies.toSorted(compareAge) };
  const tunnels = planTunnels(view);
  const pools = poolsOf(view);
  const lookup = lookupOf(view.gateways, view.namespaces);
  const { demands, refusals } = bindPolicies(view, lookup);
  const served = serveAll(demands, pools, nodesOf(view, tunnels), view.settings.seed);
  const phases = new Map(tunnels.tunnels.map(({ node, phase }) => [node, phase]));
  const gateways = served.map(({ gateway, nodes, granted, places }) =>
    planGateway({
      gateway,
      pools: pools.get(gateway.name),
      nodes,
      phases,
      eips: [...new Map(granted.map((grant) => [grant.load, grant])).values()],
      places,
      clusterDefault: lookup.clusterDefault?.name,
    }),
  );
  return {
    policies: planPolicies(view, served, refusals, lastPlanOf),
    gateways: gateways.toSorted((a, b) => compareText(a.name, b.name)),
    tunnels: tunnels.tunnels,
    orphanTunnels: tunnels.orphans,
  };
};

type Refusals = ReadonlyMap<PolicyView, Finding>;

/** Finds the gateway of every policy, or why it has none. */
const bindPolicies = (view: ClusterView, lookup: GatewayLookup): { demands: readonly Demand[]; refusals: Refusals } => {
  const applicantsByGateway = new Map<GatewayView, Applicant[]>(
    view.gateways.toSorted(compareGatewayAge).map((gateway) => [gateway, []]),
  );
  const refusals = new Map<PolicyView, Finding>();
  for (const policy of view.policies) {
    const { key, spec, isDeleting, problems } = policy;
    if (isDeleting) continue;
    if (spec === undefined) {
      refusals.set(policy, problems[0] ?? finding('SpecInvalid', `Policy ${key} cannot be read.`));
      continue;
    }
    const chosen = chooseGateway(policy, spec, lookup);
    if (chosen.ok) applicantsByGateway.get(chosen.value)?.push({ policy, spec });
    else refusals.set(policy, chosen.finding);
  }
  const demands = [...applicantsByGateway].map(([gateway, applicants]) => ({ gateway, applicants }));
  return { demands, refusals };
};

/** The nodes by name, with what placement asks about them. */
const nodesOf = ({ nodes, tunnels }: ClusterView, plans: TunnelsPlan): readonly LabelledNode[] => {
  const ready = new Set(plans.tunnels.filter(({ phase }) => phase === 'Ready').map(({ node }) => node));
  const heldByNode = new Map(tunnels.map(({ node, held }) => [node, held]));
  return nodes
    .map(({ name, labels, addresses }) => ({
      name,
      hash: hashText(name),
      labels,
      isReady: ready.has(name),
      families: familiesOf(addresses),
      held: new Map((heldByNode.get(name) ?? []).map(({ ip, epoch }) => [ip, epoch])),
    }))
    .toSorted((a, b) => compareText(a.name, b.name));
};

/** The plans of the policies that are not being deleted, in the order of `view.policies`, which are sorted by age. */
const planPolicies = (
  view: ClusterView,
  served: readonly Served[],
  refusals: Refusals,
  lastPlanOf: (key: PolicyKey) => PolicyPlan | undefined,
): PolicyPlan[] => {
  const shadowsByPolicy = shadowsOf(indexPolicies(view.policies), view.ranges, view.namespaces);
  const grants = new Map<PolicyView, { readonly granted: Granted; readonly by: Served }>();
  const refused = new Map<PolicyView, { readonly because: Finding; readonly gateway: string | undefined }>();
  for (const [policy, because] of refusals) refused.set(policy, { because, gateway: undefined });
  for (const by of served) {
    for (const granted of by.granted) grants.set(granted.applicant.policy, { granted, by });
    for (const [policy, because] of by.refused) refused.set(policy, { because, gateway: by.gateway.name });
  }
  const claims: SlotClaim[] = [];
  for (const policy of view.policies) {
    const grant = grants.get(policy);
    if (grant !== undefined) claims.push({ policy, eip: grant.granted.eip });
  }
  const slots = assignSlots(claims);
  const plans: PolicyPlan[] = [];
  for (const policy of view.policies) {
    const shadows = shadowsByPolicy.get(policy.key) ?? noShadows;
    const grant = grants.get(policy);
    const refusal = refused.get(policy);
    if (grant !== undefined) {
      const { granted, by } = grant;
      const place = by.places.get(granted.load) ?? nowhere;
      const slot = slots.get(policy.key);
      const given = { gateway: by.gateway.name, eip: granted.eip, place, slot, nodes: by.nodes };
      const last = lastPlanOf(policy.key);
      const isStill = last !== undefined && isStillServed(last, policy, given, shadows);
      plans.push(isStill ? last : acceptedPolicy(policy, given, shadows));
    } else if (refusal !== undefined) {
      plans.push(refusedPolicy(policy, refusal.gateway, refusal.because, shadows));
    }
  }
  return plans;
};

const noShadows: readonly Shadow[] = [];
const nowhere: Place = { node: undefined, isServing: false };
