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
import { type Demand, type LabelledNode, type Served, serveAll } from './gateway-service.ts';
import { compareText, hashText } from './hash.ts';
import { familiesOf } from './placement.ts';
import { indexPolicies } from './policy-index.ts';
import { acceptedPolicy, type PolicyPlan, refusedPolicy } from './policy-plan.ts';
import { compareAge, compareGatewayAge } from './precedence.ts';
import { type Shadow, shadowsOf } from './shadow.ts';
import { assignSlots } from './slots.ts';
import { planTunnels, type TunnelPlan, type TunnelsPlan } from './tunnels.ts';
import type { ClusterView, GatewayView, PolicyKey, PolicyView } from './view.ts';

/** Everything that was decided, sorted by name or key. Policies that are being deleted have no plan: they are gone. */
export interface Plan {
  readonly policies: readonly PolicyPlan[];
  readonly gateways: readonly GatewayPlan[];
  readonly tunnels: readonly TunnelPlan[];
  /** EgressTunnels to delete, because their nodes are gone. */
  readonly orphanTunnels: readonly string[];
}

/** Decides everything anew from the view. Pure: the same view, in any order of its lists, gives the same plan. */
export const plan = (unordered: ClusterView): Plan => {
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
    policies: planPolicies(view, served, refusals),
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

/** `view.policies` are sorted by age. */
const planPolicies = (view: ClusterView, served: readonly Served[], refusals: Refusals): PolicyPlan[] => {
  const shadowsByPolicy = shadowsOf(indexPolicies(view.policies), view.ranges, view.namespaces);
  const shadows = (key: PolicyKey): readonly Shadow[] => shadowsByPolicy.get(key) ?? [];
  const grants = new Map(
    served.flatMap((one) => one.granted.map((granted) => [granted.applicant.policy, { granted, by: one }] as const)),
  );
  const slots = assignSlots(
    view.policies.flatMap((policy) => {
      const grant = grants.get(policy);
      return grant === undefined ? [] : [{ policy, eip: grant.granted.eip }];
    }),
  );
  const plans: PolicyPlan[] = [];
  for (const [policy, because] of refusals) {
    plans.push(refusedPolicy(policy, undefined, because, shadows(policy.key)));
  }
  for (const { gateway, refused } of served) {
    for (const [policy, because] of refused) {
      plans.push(refusedPolicy(policy, gateway.name, because, shadows(policy.key)));
    }
  }
  for (const [policy, { granted, by }] of grants) {
    const place = by.places.get(granted.load) ?? { node: undefined, isServing: false, successors: [] };
    const slot = slots.get(policy.key);
    const grant = { gateway: by.gateway.name, eip: granted.eip, place, slot, nodes: by.nodes };
    plans.push(acceptedPolicy(policy, grant, shadows(policy.key)));
  }
  return plans.toSorted((a, b) => compareText(a.key, b.key));
};
