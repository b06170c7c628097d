/**
 * explain answers "why does this traffic go where it goes" from the very view and plan that were acted on: a list of
 * decisions in the order in which they were taken. The CLI, the console and a bug report show it; nothing is decided here.
 */
import type { Reason } from '../../api/reasons.ts';
import type { Finding } from '../cluster/finding.ts';
import { outsideOf, UNROUTED } from '../cluster/outside.ts';
import { type ClusterView, type Eip, ofPair, type PodView, type PolicyKey, type PolicyView } from '../cluster/view.ts';
import { contains, familyOf, type IntervalSet, type Ip, isIpv4 } from '../ip/index.ts';
import { canReach, endsOf } from '../node/tunnel-ends.ts';
import type { Plan } from '../plan/plan.ts';
import type { PolicyPlan } from '../plan/policy-plan.ts';
import { outcomeOf, type PacketOutcome, type SourceNode, type Unavailability } from '../policies/outcome.ts';
import { indexPolicies, isSource, policiesOfPod } from '../policies/policy-index.ts';
import { precedenceSentence } from '../policies/precedence.ts';
import { isInUse } from '../tunnels/tunnels.ts';

/** One decision: what it was about, how it came out, and why. */
export interface Decision {
  readonly about: 'source' | 'policy' | 'destination' | 'precedence' | 'shadow' | 'gateway' | 'binding' | 'traffic';
  /** Undefined for plain facts, which have no reason of the list. */
  readonly reason: Reason | undefined;
  readonly sentence: string;
  readonly policy: PolicyKey | undefined;
}

/** The way out of a pod, or of a policy. */
export interface Explanation {
  readonly decisions: readonly Decision[];
  /** The policy that decides; undefined when none does, so that traffic takes its ordinary way. */
  readonly policy: PolicyPlan | undefined;
  /** What becomes of a packet. Undefined where that depends on the destination, and none was given. */
  readonly outcome: PacketOutcome | undefined;
}

/** Why a policy is where it is; a policy that is not in the plan is said to be unknown. */
export const explainPolicy = (view: ClusterView, plan: Plan, key: PolicyKey): Explanation => {
  const decided = plan.policies.find((policy) => policy.key === key);
  const policy = view.policies.find((candidate) => candidate.key === key);
  if (decided === undefined || policy === undefined) {
    const sentence = policy === undefined ? `There is no policy ${key}.` : `Policy ${key} is being deleted.`;
    return { decisions: [fact('policy', sentence)], policy: undefined, outcome: undefined };
  }
  const decisions = [...decisionsOf(plan, policy, decided), fact('traffic', trafficSentence(decided), key)];
  return { decisions, policy: decided, outcome: undefined };
};

/** Why traffic of a pod leaves as it does. Without a destination, the first policy for anything is explained. */
export const explainPod = (view: ClusterView, plan: Plan, pod: PodView, to?: Ip): Explanation => {
  const who = `pod ${pod.namespace}/${pod.name}`;
  const untouched = untouchedBecause(view, pod, to);
  if (untouched !== undefined) return leftAlone([untouched]);
  const labels = view.namespaces.find(({ name }) => name === pod.namespace)?.labels ?? {};
  const policies = policiesOfPod(indexPolicies(view.policies), pod, labels);
  if (policies.length === 0) return leftAlone([fact('policy', `No policy selects ${who}; its traffic is left alone.`)]);
  const decisions = [fact('source', selectionSentence(policies, who))];
  const outside = outsideOf(view.ranges);
  const candidates =
    to === undefined ? policies : policies.filter((policy) => concerns(view, outside, policy, to, decisions));
  const [winner, second] = candidates;
  if (winner === undefined) {
    return leftAlone([
      ...decisions,
      fact('traffic', `No policy of ${who} applies to ${to}; the traffic is left alone.`),
    ]);
  }
  if (second !== undefined) decisions.push(fact('precedence', precedenceSentence(winner, second), winner.key));
  const decided = plan.policies.find(({ key }) => key === winner.key);
  if (to === undefined || decided === undefined || winner.spec === undefined) {
    const told = explainPolicy(view, plan, winner.key);
    return { ...told, decisions: [...decisions, ...told.decisions] };
  }
  const { binding } = decided;
  const bound = { spec: winner.spec, eip: binding?.eip ?? noEip, node: binding?.node, slot: binding?.slot };
  const outcome = outcomeOf(bound, familyOf(to), siteIn(view, plan, pod.node));
  decisions.push(
    ...decisionsOf(plan, winner, decided),
    fact('traffic', packetSentence(decided, outcome, to), winner.key),
  );
  return { decisions, policy: decided, outcome };
};

const selectionSentence = (policies: readonly PolicyView[], who: string): string => {
  const keys = policies.map(({ key }) => key);
  return keys.length === 1
    ? `Policy ${keys[0]} selects ${who}.`
    : `Policies ${keys.join(', ')} select ${who}; ${keys[0]} has the highest precedence.`;
};

const leftAlone = (decisions: readonly Decision[]): Explanation => ({
  decisions,
  policy: undefined,
  outcome: { kind: 'leftAlone' },
});

/** Why no policy is ever about such packets of the pod; undefined when policies may be. */
const untouchedBecause = (view: ClusterView, pod: PodView, to: Ip | undefined): Decision | undefined => {
  const who = `Pod ${pod.namespace}/${pod.name}`;
  if (pod.isHostNetwork) return fact('source', `${who} uses the host network, so no policy applies to it.`);
  if (pod.isFinished) return fact('source', `${who} has finished, so no policy applies to it.`);
  if (!isSource(pod)) return fact('source', `${who} has no address yet, so no policy applies to it.`);
  if (to === undefined) return undefined;
  const [family, isOn, sources] = isIpv4(to)
    ? ['IPv4', view.settings.hasIpv4, pod.ipv4]
    : ['IPv6', view.settings.hasIpv6, pod.ipv6];
  if (!isOn) return fact('destination', `The configuration turns ${family} off, so the traffic is left alone.`);
  if (sources.length === 0) return fact('source', `${who} has no ${family} address, so it sends nothing to ${to}.`);
  const parent = view.tunnels.find(({ node }) => node === pod.node)?.parent;
  if (to === parent?.ipv4 || to === parent?.ipv6) {
    return fact('destination', `${to} is the node that the pod runs on; traffic to it is left alone.`);
  }
  return contains(UNROUTED, to)
    ? fact('destination', `${to} is never routed to another machine, so the traffic is left alone.`)
    : undefined;
};

const concerns = (
  { ranges }: ClusterView,
  outside: IntervalSet,
  { key, spec }: PolicyView,
  to: Ip,
  decisions: Decision[],
): boolean => {
  if (spec === undefined) return false;
  const isExcepted = contains(spec.exceptions, to);
  const isMeant = !isExcepted && contains(spec.destinations ?? outside, to);
  const place = ranges.isKnown ? `${to} is ${isMeant ? 'outside' : 'inside'}` : 'the controller does not know them yet';
  const why = isExcepted
    ? `exceptSubnet of ${key} contains ${to}`
    : spec.destinations === undefined
      ? `${key} selects all destinations outside the cluster, and ${place}`
      : `destSubnet of ${key} ${isMeant ? 'contains' : 'does not contain'} ${to}`;
  decisions.push(fact('destination', `${why}.`, key));
  return isMeant;
};

const decisionsOf = (plan: Plan, policy: PolicyView, decided: PolicyPlan): Decision[] => {
  const { key } = policy;
  const gateway = plan.gateways.find(({ name }) => name === decided.gateway);
  return [
    found('policy', decided.accepted, key),
    ...(decided.shadowed === undefined ? [] : [found('shadow', decided.shadowed, key)]),
    ...(gateway === undefined ? [] : [found('gateway', gateway.accepted, key), found('gateway', gateway.ready, key)]),
    found('binding', decided.allocated, key),
  ];
};

const trafficSentence = ({ key, traffic, binding }: PolicyPlan): string => {
  switch (traffic) {
    case 'gateway':
      return `Traffic of ${key} goes to node ${binding?.node} with slot ${binding?.slot}.`;
    case 'drop':
      return `Traffic of ${key} is dropped, because no gateway node serves it and onUnavailable is Drop.`;
    case 'nodeIp':
      return `Traffic of ${key} leaves with the address of its own node, because no gateway node serves it and onUnavailable is NodeIP.`;
    case undefined:
      return `What happens to traffic of ${key} is unknown, because the policy cannot be read.`;
    default:
      return traffic satisfies never;
  }
};

const packetSentence = ({ key, binding }: PolicyPlan, outcome: PacketOutcome, to: Ip): string => {
  const packets = `Packets to ${to}`;
  switch (outcome.kind) {
    case 'gateway':
      return binding?.isServing
        ? `${packets} leave node ${outcome.node} with ${outcome.eip} (slot ${outcome.slot}).`
        : `${packets} still go to node ${outcome.node} (slot ${outcome.slot}); while it is not ready they are lost there.`;
    case 'drop':
      return `${packets} are dropped, because ${lack(key, binding, outcome.because, to)} and onUnavailable is Drop.`;
    case 'nodeIp':
      return `${packets} leave with the address of their own node, because ${lack(key, binding, outcome.because, to)} and onUnavailable is NodeIP.`;
    case 'leftAlone':
      return `${packets} are left alone.`;
    default:
      return outcome satisfies never;
  }
};

const lack = (key: PolicyKey, binding: PolicyPlan['binding'], because: Unavailability, to: Ip): string => {
  switch (because) {
    case 'unbound':
      return `no gateway node serves ${key}`;
    case 'unreachable':
      return `node ${binding?.node} cannot be reached through the tunnel`;
    case 'notReady':
      return `node ${binding?.node} is not ready`;
    case 'noAddress':
      return `${key} has no ${isIpv4(to) ? 'IPv4' : 'IPv6'} address`;
    default:
      return because satisfies never;
  }
};

const noEip: Eip = { ipv4: undefined, ipv6: undefined };

/** The node of a pod as the plan sees it. A pod that is on no node yet is taken to reach every gateway node. */
const siteIn = (view: ClusterView, plan: Plan, node: string | undefined): SourceNode => {
  const viewByNode = new Map(view.tunnels.map((tunnel) => [tunnel.node, tunnel]));
  const facts = plan.tunnels.map((tunnel) => {
    const { createdAtMs = Number.MAX_SAFE_INTEGER, parent = noEip } = viewByNode.get(tunnel.node) ?? {};
    return { ...tunnel, createdAtMs, parent };
  });
  const ends = endsOf(facts, view.settings);
  const own = node === undefined ? undefined : ends.get(node);
  return {
    canReach: (gateway) => {
      if (node === undefined || gateway === node) return true;
      const end = ends.get(gateway);
      return own !== undefined && end !== undefined && canReach(own.parent, end.parent);
    },
    isReady: (gateway) => {
      const phase = plan.tunnels.find((tunnel) => tunnel.node === gateway)?.phase;
      return isInUse(phase, viewByNode.get(gateway) ?? { electorate: undefined });
    },
    addressOf: (gateway, family) => ofPair(viewByNode.get(gateway)?.parent ?? noEip, family),
  };
};

const fact = (about: Decision['about'], sentence: string, policy?: PolicyKey): Decision => ({
  about,
  reason: undefined,
  sentence,
  policy,
});

const found = (about: Decision['about'], { reason, sentence }: Finding, policy: PolicyKey): Decision => ({
  about,
  reason,
  sentence,
  policy,
});
