/**
 * Shadows: which policies win over another one, as far as it can be said from the policies alone. A policy is reported
 * when it comes first, is about all pods of the other, and has destinations in common with it. A narrower policy that
 * comes first is how exceptions are written on purpose, so it is not reported.
 */

import { type Finding, finding, listed } from '../cluster/finding.ts';
import { ANY, covers, type Labels, matches } from '../cluster/labels.ts';
import { outsideOf } from '../cluster/outside.ts';
import type { ClusterRanges, ClusterView, PolicyKey, PolicySpecView } from '../cluster/view.ts';
import { containsAll, difference, type IntervalSet, overlaps } from '../ip/index.ts';
import { type PolicyIndex, type ReadPolicy, SUBNET_TOKEN } from './policy-index.ts';
import { placeIn } from './policy-order.ts';
import { comparePrecedence } from './precedence.ts';

/** A policy that wins over another one for all or some of the traffic of its pods. */
export interface Shadow {
  readonly by: PolicyKey;
  readonly extent: 'all' | 'some';
}

// Shadows are advice. Many policies with the same pods and other destinations are ordinary, and comparing each with
// each would cost more than planning: the first few that come into question are compared, and a few are shown.
const COMPARED = 64;
const SHOWN = 3;

/** The shadows on every policy that has some, in order of precedence; a policy that wins everything ends its list. */
export type Shadows = ReadonlyMap<PolicyKey, readonly Shadow[]>;

/** The shadows on all policies of the index. */
export const shadowsOf = (
  index: PolicyIndex,
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
): Map<PolicyKey, readonly Shadow[]> => {
  const shadowsOn = createLook(index.filed, ranges, namespaces);
  const result = new Map<PolicyKey, readonly Shadow[]>();
  for (const loser of index.ranked) {
    const shadows = shadowsOn(loser);
    if (shadows.length > 0) result.set(loser.policy.key, shadows);
  }
  return result;
};

/** Where policies are found that may win: those of a namespace (undefined: cluster policies) that are filed under a token. */
export type Filed = (namespace: string | undefined, token: string) => readonly ReadPolicy[];

/** A look at one policy after the other. */
export const createLook = (
  filed: Filed,
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
): ((loser: ReadPolicy) => readonly Shadow[]) => {
  const labelsByNamespace = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  const outside = outsideOf(ranges);
  const destinationsOf = ({ spec: { destinations = outside, exceptions } }: ReadPolicy): IntervalSet =>
    exceptions.intervals.length === 0 ? destinations : difference(destinations, exceptions);
  return (loser) => {
    const shadows: Shadow[] = [];
    const rivals = candidates(filed, loser);
    if (rivals.length === 0) return shadows;
    const lost = destinationsOf(loser);
    for (const winner of rivals) {
      const won = destinationsOf(winner);
      if (!overlaps(won, lost)) continue;
      const pods = podsInCommon(winner, loser, labelsByNamespace);
      if (pods === 'none') continue;
      const extent = pods === 'all' && containsAll(won, lost) ? 'all' : 'some';
      shadows.push({ by: winner.policy.key, extent });
      if (extent === 'all' || shadows.length === SHOWN) break;
    }
    return shadows;
  };
};

/** What the condition Shadowed of a policy says; undefined when nothing shadows it, as the condition is absent then. */
export const shadowedFinding = (key: PolicyKey, shadows: readonly Shadow[]): Finding | undefined => {
  const whole = shadows.find(({ extent }) => extent === 'all');
  if (whole !== undefined)
    return finding('ShadowedByPolicy', `Policy ${whole.by} wins over ${key} for all of its traffic.`);
  if (shadows.length === 0) return undefined;
  const names = listed(shadows.map(({ by }) => by));
  return finding('ShadowedByPolicy', `Of the traffic of policy ${key}, some belongs to ${names}.`);
};

/** The files in which policies are found that may be about all pods of this one. */
export const tokensOf = ({ appliedTo }: PolicySpecView): readonly string[] =>
  appliedTo.kind === 'subnet' ? [ANY, SUBNET_TOKEN] : appliedTo.pods.tokens;

/** A policy of one namespace is never about all pods of a cluster policy. */
const scopesOf = (namespace: string | undefined): readonly (string | undefined)[] =>
  namespace === undefined ? [undefined] : [namespace, undefined];

const candidates = (filed: Filed, loser: ReadPolicy): readonly ReadPolicy[] => {
  const tokens = tokensOf(loser.spec);
  const comingFirst: (readonly ReadPolicy[])[] = [];
  for (const scope of scopesOf(loser.policy.namespace)) {
    for (const token of tokens) {
      const file = filed(scope, token);
      const [first] = file;
      if (first === undefined || compareRead(first, loser) >= 0) continue;
      comingFirst.push(file.slice(0, Math.min(placeIn(file, loser, compareRead), COMPARED)));
    }
  }
  // One file is in order of precedence and names nobody twice.
  if (comingFirst.length <= 1) return comingFirst[0] ?? [];
  return [...new Set(comingFirst.flat())].toSorted(compareRead);
};

/** Orders policies, the winning one first. */
export const compareRead = (a: ReadPolicy, b: ReadPolicy): number => comparePrecedence(a.policy, b.policy);

/** Which pods of the loser the winner is about: 'some' only where addresses tell it. */
const podsInCommon = (
  winner: ReadPolicy,
  loser: ReadPolicy,
  labelsByNamespace: ReadonlyMap<string, Labels>,
): 'all' | 'some' | 'none' => {
  const [won, lost] = [winner.spec.appliedTo, loser.spec.appliedTo];
  if (won.namespaces !== undefined) {
    const { namespace } = loser.policy;
    const isInside =
      namespace === undefined
        ? lost.namespaces !== undefined && covers(won.namespaces, lost.namespaces)
        : matches(won.namespaces, labelsByNamespace.get(namespace) ?? {});
    if (!isInside) return 'none';
  }
  if (won.kind === 'labels') {
    if (won.pods.requirements.length === 0) return 'all';
    return lost.kind === 'labels' && covers(won.pods, lost.pods) ? 'all' : 'none';
  }
  if (lost.kind === 'labels' || !overlaps(won.subnet, lost.subnet)) return 'none';
  return containsAll(won.subnet, lost.subnet) ? 'all' : 'some';
};
