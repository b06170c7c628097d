/**
 * explain answers "why does this traffic go where it goes" from the very view and plan that were acted on: a list of
 * decisions in the order in which they were taken. The CLI, the console and a bug report show it; nothing is decided here.
 */
import type { Reason } from '../api/reasons.ts';
import type { Finding } from './finding.ts';
import { contains, type Ip } from './ip/index.ts';
import type { Plan } from './plan.ts';
import { indexPolicies, isSource, policiesOfPod } from './policy-index.ts';
import type { PolicyPlan } from './policy-plan.ts';
import { precedenceSentence } from './precedence.ts';
import { outsideOf } from './shadow.ts';
import type { ClusterView, PodView, PolicyKey, PolicyView } from './view.ts';

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
}

/** Why a policy is where it is; a policy that is not in the plan is said to be unknown. */
export const explainPolicy = (view: ClusterView, plan: Plan, key: PolicyKey): Explanation => {
  const decided = plan.policies.find((policy) => policy.key === key);
  const policy = view.policies.find((candidate) => candidate.key === key);
  if (decided === undefined || policy === undefined) {
    const sentence = policy === undefined ? `There is no policy ${key}.` : `Policy ${key} is being deleted.`;
    return { decisions: [fact('policy', sentence)], policy: undefined };
  }
  return { decisions: decisionsOf(plan, policy, decided), policy: decided };
};

/** Why traffic of a pod leaves as it does. Without a destination, the first policy for anything is explained. */
export const explainPod = (view: ClusterView, plan: Plan, pod: PodView, to?: Ip): Explanation => {
  const who = `Pod ${pod.namespace}/${pod.name}`;
  if (!isSource(pod)) {
    const why = pod.isHostNetwork
      ? 'uses the network of its node'
      : pod.isFinished
        ? 'has finished'
        : 'has no address yet';
    return { decisions: [fact('source', `${who} ${why}, so no policy is about it.`)], policy: undefined };
  }
  const labels = view.namespaces.find(({ name }) => name === pod.namespace)?.labels ?? {};
  const policies = policiesOfPod(indexPolicies(view.policies), pod, labels);
  if (policies.length === 0) {
    return { decisions: [fact('policy', `${who} is under no policy; its traffic is left alone.`)], policy: undefined };
  }
  const decisions = [
    fact('source', `${who} is under ${policies.map(({ key }) => key).join(', ')}, the first one wins.`),
  ];
  const candidates = to === undefined ? policies : policies.filter((policy) => concerns(view, policy, to, decisions));
  const [winner, second] = candidates;
  if (winner === undefined) {
    return {
      decisions: [...decisions, fact('traffic', `No policy of ${who} is about ${to}; the traffic is left alone.`)],
      policy: undefined,
    };
  }
  if (second !== undefined) decisions.push(fact('precedence', precedenceSentence(winner, second), winner.key));
  const { decisions: rest, policy } = explainPolicy(view, plan, winner.key);
  return { decisions: [...decisions, ...rest], policy };
};

const concerns = (view: ClusterView, { key, spec }: PolicyView, to: Ip, decisions: Decision[]): boolean => {
  if (spec === undefined) return false;
  const isExcepted = contains(spec.exceptions, to);
  const isMeant = !isExcepted && contains(spec.destinations ?? outsideOf(view.ranges), to);
  const why = isExcepted
    ? `exceptSubnet of ${key} has ${to}`
    : spec.destinations === undefined
      ? `${key} is about everything outside the cluster, and ${to} is ${isMeant ? 'outside' : 'inside'}`
      : `destSubnet of ${key} ${isMeant ? 'has' : 'does not have'} ${to}`;
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
    fact('traffic', trafficSentence(decided), key),
  ];
};

const trafficSentence = ({ key, traffic, binding }: PolicyPlan): string => {
  switch (traffic) {
    case 'gateway':
      return `Traffic of ${key} goes to node ${binding?.node} with slot ${binding?.slot}.`;
    case 'drop':
      return `Traffic of ${key} is dropped, because nothing serves it and onUnavailable is Drop.`;
    case 'nodeIp':
      return `Traffic of ${key} leaves with the address of its own node, because nothing serves it and onUnavailable is NodeIP.`;
    case undefined:
      return `Nobody knows the traffic of ${key}, because the policy cannot be read.`;
    default:
      return traffic satisfies never;
  }
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
