/**
 * Shadows: which policies win over another one, as far as it can be said from the policies alone. A policy is reported
 * when it comes first, is about all pods of the other, and has destinations in common with it. A narrower policy that
 * comes first is how exceptions are written on purpose, so it is not reported.
 */

import { type Finding, finding, listed } from './finding.ts';
import { containsAll, difference, type IntervalSet, overlaps } from './ip/index.ts';
import { ANY, covers, type Labels, matches } from './labels.ts';
import { outsideOf } from './outside.ts';
import { anchorsOf, indexPolicies, type PolicyIndex, type RankedPolicy, SUBNET_TOKEN } from './policy-index.ts';
import { compareAge } from './precedence.ts';
import { isSameList } from './same-list.ts';
import type { ClusterRanges, ClusterView, PolicyKey, PolicySpecView, PolicyView } from './view.ts';

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
  const shadowsOn = createLook(index, ranges, namespaces);
  const result = new Map<PolicyKey, readonly Shadow[]>();
  for (const loser of index.ranked) {
    const shadows = shadowsOn(loser);
    if (shadows.length > 0) result.set(loser.policy.key, shadows);
  }
  return result;
};

/**
 * Makes a function that does the same for policies that are sorted by age. It remembers what it found, and looks again
 * only at policies that changed and at those over which one of them might win.
 */
export const createShadows = (): ((
  policies: readonly PolicyView[],
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
) => Shadows) => {
  interface Last {
    readonly policies: readonly PolicyView[];
    readonly ranges: ClusterRanges;
    readonly namespaces: ClusterView['namespaces'];
    readonly shadows: Shadows;
  }
  let last: Last | undefined;
  const look = (policies: Last['policies'], ranges: ClusterRanges, namespaces: Last['namespaces']): Shadows => {
    if (last?.ranges !== ranges || !isSameList(last.namespaces, namespaces)) {
      return shadowsOf(indexPolicies(policies), ranges, namespaces);
    }
    const changed = changedBetween(last.policies, policies);
    if (changed.length === 0) return last.shadows;
    const touched = touchedBy(changed, policies);
    const result = new Map(last.shadows);
    for (const { key } of changed) result.delete(key);
    const index = indexPolicies(rivalsOf(touched, policies));
    const shadowsOn = createLook(index, ranges, namespaces);
    for (const loser of index.ranked) {
      if (!touched.has(loser.policy)) continue;
      const shadows = shadowsOn(loser);
      if (shadows.length > 0) result.set(loser.policy.key, shadows);
      else result.delete(loser.policy.key);
    }
    return result;
  };
  return (policies, ranges, namespaces) => {
    const shadows = look(policies, ranges, namespaces);
    last = { policies, ranges, namespaces, shadows };
    return shadows;
  };
};

/** The policies that are in one of two lists only, or in both with another spec: both forms of them. Lists are sorted by age. */
const changedBetween = (before: readonly PolicyView[], after: readonly PolicyView[]): readonly PolicyView[] => {
  const changed: PolicyView[] = [];
  let [old, now] = [0, 0];
  while (old < before.length || now < after.length) {
    const [a, b] = [before[old], after[now]];
    const order = a === undefined ? 1 : b === undefined ? -1 : a === b ? 0 : compareAge(a, b);
    if (order <= 0) old += 1;
    if (order >= 0) now += 1;
    if (order === 0 && a?.spec === b?.spec && a?.isDeleting === b?.isDeleting) continue;
    if (order <= 0 && a !== undefined) changed.push(a);
    if (order >= 0 && b !== undefined) changed.push(b);
  }
  return changed;
};

/** Files of the index: tokens by namespace; undefined stands for cluster policies. */
class Files {
  readonly #tokens = new Map<string | undefined, Set<string>>();

  add(namespace: string | undefined, tokens: readonly string[]): void {
    const known = this.#tokens.get(namespace) ?? new Set();
    this.#tokens.set(namespace, known);
    for (const token of tokens) known.add(token);
  }

  hasAny(namespace: string | undefined, tokens: readonly string[]): boolean {
    const known = this.#tokens.get(namespace);
    if (known === undefined) return false;
    // Every policy is asked in every plan: no function per call.
    for (const token of tokens) if (known.has(token)) return true;
    return false;
  }
}

/** The policies over which one of the changed ones, which may be gone by now, could win; and those themselves. */
const touchedBy = (changed: readonly PolicyView[], policies: readonly PolicyView[]): ReadonlySet<PolicyView> => {
  const keys = new Set(changed.map(({ key }) => key));
  const files = new Files();
  for (const { namespace, spec } of changed) if (spec !== undefined) files.add(namespace, anchorsOf(spec));
  return new Set(
    policies.filter(({ key, namespace, spec }) => {
      if (spec === undefined) return false;
      const tokens = tokensOf(spec);
      const isOfNamespace = namespace !== undefined && files.hasAny(namespace, tokens);
      return isOfNamespace || files.hasAny(undefined, tokens) || keys.has(key);
    }),
  );
};

/** These policies with all that could win over one of them. */
const rivalsOf = (losers: ReadonlySet<PolicyView>, policies: readonly PolicyView[]): readonly PolicyView[] => {
  const files = new Files();
  for (const { namespace, spec } of losers) {
    if (spec !== undefined) for (const scope of scopesOf(namespace)) files.add(scope, tokensOf(spec));
  }
  return policies.filter(
    (policy) => losers.has(policy) || (policy.spec && files.hasAny(policy.namespace, anchorsOf(policy.spec))),
  );
};

/** A look at one policy after the other. */
const createLook = (
  index: PolicyIndex,
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
): ((loser: RankedPolicy) => readonly Shadow[]) => {
  const labelsByNamespace = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  const outside = outsideOf(ranges);
  const destinationsOf = ({ spec: { destinations = outside, exceptions } }: RankedPolicy): IntervalSet =>
    exceptions.intervals.length === 0 ? destinations : difference(destinations, exceptions);
  return (loser) => {
    const shadows: Shadow[] = [];
    const rivals = candidates(index, loser);
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
const tokensOf = ({ appliedTo }: PolicySpecView): readonly string[] =>
  appliedTo.kind === 'subnet' ? [ANY, SUBNET_TOKEN] : appliedTo.pods.tokens;

/** A policy of one namespace is never about all pods of a cluster policy. */
const scopesOf = (namespace: string | undefined): readonly (string | undefined)[] =>
  namespace === undefined ? [undefined] : [namespace, undefined];

const candidates = (index: PolicyIndex, { policy, spec, rank }: RankedPolicy): readonly RankedPolicy[] => {
  const tokens = tokensOf(spec);
  const files: (readonly RankedPolicy[])[] = [];
  for (const scope of scopesOf(policy.namespace)) {
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
