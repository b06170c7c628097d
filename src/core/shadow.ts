/**
 * Shadows: which policies win over another one, as far as it can be said from the policies alone. A policy is reported
 * when it comes first, is about all pods of the other, and has destinations in common with it. A narrower policy that
 * comes first is how exceptions are written on purpose, so it is not reported.
 */

import { type Finding, finding, listed } from './finding.ts';
import { containsAll, difference, emptySet, overlaps } from './ip/index.ts';
import { ANY, covers, type Labels, matches } from './labels.ts';
import { outsideOf } from './outside.ts';
import { type PolicyIndex, type RankedPolicy, SUBNET_TOKEN } from './policy-index.ts';
import type { ClusterRanges, ClusterView, PolicyKey } from './view.ts';

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
export const shadowsOf = (
  index: PolicyIndex,
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
): Map<PolicyKey, readonly Shadow[]> => {
  const labelsByNamespace = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  const outside = outsideOf(ranges);
  const destinations = index.ranked.map(({ spec }) => {
    const wanted = spec.destinations ?? outside;
    return spec.exceptions.intervals.length === 0 ? wanted : difference(wanted, spec.exceptions);
  });
  const result = new Map<PolicyKey, readonly Shadow[]>();
  for (const loser of index.ranked) {
    const shadows: Shadow[] = [];
    const lost = destinations[loser.rank] ?? emptySet;
    for (const winner of candidates(index, loser)) {
      const won = destinations[winner.rank] ?? emptySet;
      if (!overlaps(won, lost)) continue;
      const pods = podsInCommon(winner, loser, labelsByNamespace);
      if (pods === 'none') continue;
      const extent = pods === 'all' && containsAll(won, lost) ? 'all' : 'some';
      shadows.push({ by: winner.policy.key, extent });
      if (extent === 'all' || shadows.length === SHOWN) break;
    }
    if (shadows.length > 0) result.set(loser.policy.key, shadows);
  }
  return result;
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

const candidates = (index: PolicyIndex, { policy, spec, rank }: RankedPolicy): readonly RankedPolicy[] => {
  const tokens = spec.appliedTo.kind === 'subnet' ? [ANY, SUBNET_TOKEN] : spec.appliedTo.pods.tokens;
  // A policy of one namespace is never about all pods of a cluster policy.
  const scopes = policy.namespace === undefined ? [undefined] : [policy.namespace, undefined];
  const files: (readonly RankedPolicy[])[] = [];
  for (const scope of scopes) {
    for (const token of tokens) {
      const file = index.filed(scope, token);
      if ((file[0]?.rank ?? rank) < rank) files.push(file);
    }
  }
  const comingFirst = files.map((file) => {
    const end = file.findIndex((entry) => entry.rank >= rank);
    return file.slice(0, Math.min(end < 0 ? file.length : end, COMPARED));
  });
  // One file is in order of precedence and names nobody twice.
  if (comingFirst.length <= 1) return comingFirst[0] ?? [];
  return [...new Set(comingFirst.flat())].toSorted((a, b) => a.rank - b.rank);
};

/** Which pods of the loser the winner is about: 'some' only where addresses tell it. */
const podsInCommon = (
  winner: RankedPolicy,
  loser: RankedPolicy,
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
