/**
 * decide tells how traffic of a pod leaves: for one destination, or for everything that its policies distinguish. The
 * decisions are those of plan() and explain(); here they are only asked for often enough.
 */

import { outsideOf, UNROUTED } from '../core/cluster/outside.ts';
import type { ClusterView, PodView, PolicyView } from '../core/cluster/view.ts';
import { type Decision, explainPod, explainPolicy } from '../core/explain/explain.ts';
import {
  contains,
  difference,
  emptySet,
  familyOf,
  formatSet,
  type IntervalSet,
  type Ip,
  type IpFamily,
  nth,
  ofFamily,
  setOfIps,
  union,
} from '../core/ip/index.ts';
import { type Plan, plan } from '../core/plan/plan.ts';
import type { PolicyPlan } from '../core/plan/policy-plan.ts';
import type { PacketOutcome } from '../core/policies/outcome.ts';
import { indexPolicies, policiesOfPod } from '../core/policies/policy-index.ts';

/** What was decided about a pod. */
export interface PodDecisions {
  readonly pod: PodView;
  /** The destination that was asked for; undefined: all of them. */
  readonly to: Ip | undefined;
  readonly decisions: readonly Decision[];
  /** The policies that have to do with it, the first one wins; those beyond the first few are in `unshown`. */
  readonly policies: readonly PolicyPlan[];
  readonly unshown: number;
  /** Empty where no policy could ever be about the packets. */
  readonly ways: readonly TrafficOutcome[];
}

/** What becomes of new connections from one address of a pod to some destinations. */
export interface TrafficOutcome {
  readonly source: Ip;
  /** The destinations in words. */
  readonly about: string;
  /** One of them. */
  readonly to: Destination;
  /** Undefined when no policy is about them. */
  readonly policy: PolicyPlan | undefined;
  readonly outcome: PacketOutcome;
}

export interface Destination {
  readonly ip: Ip;
  /** Whether it is outside the cluster. */
  readonly isOutside: boolean;
}

// A pod under more policies than this is asked about with a destination.
const POLICIES_SHOWN = 4;
const RANGES_SHOWN = 3;
const FAMILIES = [4, 6] as const;

/** Decides anew from the view, as the controller does. */
export const decide = (view: ClusterView, pod: PodView, to?: Ip): PodDecisions => {
  const planned = plan(view);
  const { decisions } = explainPod(view, planned, pod, to);
  // Nothing but a fact about the pod or the destination: whatever policies say, the packets do not come to them.
  const isUntouched = decisions.length === 1 && decisions[0]?.about !== 'policy';
  if (isUntouched) return { pod, to, decisions, policies: [], unshown: 0, ways: [] };
  return to === undefined ? decideAll(view, planned, pod) : decideOne(view, planned, pod, to);
};

const decideOne = (view: ClusterView, planned: Plan, pod: PodView, to: Ip): PodDecisions => {
  const { decisions, policy } = explainPod(view, planned, pod, to);
  const policies = policy === undefined ? [] : [policy];
  return { pod, to, decisions, policies, unshown: 0, ways: waysTo(view, planned, pod, to, to) };
};

const decideAll = (view: ClusterView, planned: Plan, pod: PodView): PodDecisions => {
  const labels = view.namespaces.find(({ name }) => name === pod.namespace)?.labels ?? {};
  const all = policiesOfPod(indexPolicies(view.policies), pod, labels);
  const shown = all.slice(0, POLICIES_SHOWN);
  const outside = outsideOf(view.ranges);
  const ways: TrafficOutcome[] = [];
  const { parent } = view.tunnels.find(({ node }) => node === pod.node) ?? {};
  const ownNode = [parent?.ipv4, parent?.ipv6].filter((ip) => ip !== undefined);
  // No policy ever gets packets to these, so they are no example of what becomes of others.
  let taken = union(UNROUTED, setOfIps(ownNode));
  const add = (destinations: IntervalSet, about: string): void => {
    const left = difference(destinations, taken);
    for (const family of FAMILIES) {
      const example = nth(ofFamily(left, family), 0n);
      if (example !== undefined) ways.push(...waysTo(view, planned, pod, example, about));
    }
    taken = union(taken, left);
  };
  for (const policy of shown) add(meantBy(policy, outside), aboutText(policy));
  if (shown.length === all.length)
    add(outside, all.length === 0 ? 'everything' : 'everything else outside the cluster');
  const told = [
    ...explainPod(view, planned, pod).decisions,
    ...shown.flatMap(({ key }) => explainPolicy(view, planned, key).decisions),
  ];
  return {
    pod,
    to: undefined,
    // The first policy is told twice, and policies share gateways: each sentence needs to be read once.
    decisions: [...new Map(told.map((decision) => [decision.sentence, decision])).values()],
    policies: shown.flatMap(({ key }) => planned.policies.find((policy) => policy.key === key) ?? []),
    unshown: all.length - shown.length,
    ways,
  };
};

const waysTo = (view: ClusterView, planned: Plan, pod: PodView, to: Ip, about: string): TrafficOutcome[] => {
  const { policy, outcome } = explainPod(view, planned, pod, to);
  const destination = { ip: to, isOutside: contains(outsideOf(view.ranges), to) };
  if (outcome === undefined) return [];
  return addressesOf(pod, familyOf(to)).map((source) => ({ source, about, to: destination, policy, outcome }));
};

const addressesOf = ({ ipv4, ipv6 }: PodView, family: IpFamily): readonly Ip[] => (family === 4 ? ipv4 : ipv6);

const meantBy = ({ spec }: PolicyView, outside: IntervalSet): IntervalSet =>
  spec === undefined ? emptySet : difference(spec.destinations ?? outside, spec.exceptions);

const aboutText = ({ spec }: PolicyView): string => {
  if (spec?.destinations === undefined) return 'everything outside the cluster';
  const ranges = formatSet(spec.destinations);
  const shown = ranges.slice(0, RANGES_SHOWN).join(' ');
  return ranges.length > RANGES_SHOWN ? `${shown} and ${ranges.length - RANGES_SHOWN} more` : shown;
};
