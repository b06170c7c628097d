/**
 * Destinations: where the traffic of a class goes, as disjoint ranges. The kernel finds the range of a packet in one
 * lookup and knows no precedence, so precedence is worked out here.
 */

import type { PolicyView } from '../cluster/view.ts';
import { difference, emptySet, formatSet, type IntervalSet, type IpFamily, ofFamily, union } from '../ip/index.ts';
import type { Class } from './classes.ts';

/** Some destinations of a class, also as nft writes ranges, and the policy that decides about them. */
export interface DestinationRanges {
  readonly addresses: IntervalSet;
  readonly ranges: Readonly<Record<IpFamily, readonly string[]>>;
  /** Undefined: they are left alone, although they are outside the cluster. */
  readonly policy: PolicyView | undefined;
}

/** The destinations of a class. Ranges of two parts have no address in common. */
export interface Destinations {
  readonly parts: readonly DestinationRanges[];
  /** Decides about everything outside the cluster that is in no part; undefined: nothing does. */
  readonly otherwise: PolicyView | undefined;
}

/**
 * Works out the destinations. The first policy that is about an address has it; an exception is not about it, so the
 * next policy gets its turn. While `outside` is undefined nobody knows what is outside the cluster, and policies without
 * destinations are about nothing.
 */
export const destinationsOf = ({ policies }: Class, outside: IntervalSet | undefined): Destinations => {
  const parts: DestinationRanges[] = [];
  let decided = emptySet;
  let otherwise: PolicyView | undefined;
  for (const policy of policies) {
    const { spec } = policy;
    if (spec === undefined) continue;
    const wanted = spec.destinations ?? outside;
    if (wanted === undefined) continue;
    const meant = difference(difference(wanted, spec.exceptions), decided);
    // The first policy about everything needs no ranges: what no part has falls to it.
    if (spec.destinations === undefined && otherwise === undefined) otherwise = policy;
    else parts.push(partOf(meant, policy));
    decided = union(decided, meant);
  }
  if (otherwise !== undefined && outside !== undefined) parts.push(partOf(difference(outside, decided), undefined));
  return { parts, otherwise };
};

const partOf = (set: IntervalSet, policy: PolicyView | undefined): DestinationRanges => ({
  addresses: set,
  ranges: { 4: formatSet(ofFamily(set, 4)), 6: formatSet(ofFamily(set, 6)) },
  policy,
});

/**
 * Makes a function that gives the destinations of classes. It remembers those of the last call, and works out again
 * only classes of which a policy, or what is outside, has changed.
 */
export const createDestinations = () => {
  let known = new Map<string, { class: Class; outside: IntervalSet | undefined; found: Destinations }>();
  return (classes: ReadonlyMap<string, Class>, outside: IntervalSet | undefined): ReadonlyMap<string, Destinations> => {
    const next: typeof known = new Map();
    for (const one of classes.values()) {
      const last = known.get(one.name);
      const isSame =
        last !== undefined &&
        last.outside === outside &&
        last.class.policies.every((policy, index) => policy === one.policies[index]);
      next.set(one.name, isSame ? last : { class: one, outside, found: destinationsOf(one, outside) });
    }
    known = next;
    return new Map([...next].map(([name, { found }]) => [name, found]));
  };
};
