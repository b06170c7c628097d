/**
 * Policies by age, again and again. A cluster with thousands of policies changes one or two of them at a time: the order
 * of the last time is taken over, and two lists in order are compared without reading the policies that stayed.
 */

import type { PolicyView } from '../cluster/view.ts';
import { compareAge } from './precedence.ts';

/** What became of a list: the values that are in the old one only, and in the new one only. A changed policy is in both. */
export interface Changes {
  readonly gone: readonly PolicyView[];
  readonly come: readonly PolicyView[];
}

/** Beyond this many changes it costs less to sort anew. */
const FEW = 64;

/** Makes a function that sorts by age, and remembers the last list that it was given and what came out. */
export const createPolicyOrder = (): ((policies: readonly PolicyView[]) => readonly PolicyView[]) => {
  let given: readonly PolicyView[] = [];
  let sorted: readonly PolicyView[] = [];
  return (policies) => {
    const changes = changesInPlace(given, policies);
    sorted = (changes && merged(sorted, changes)) ?? policies.toSorted(compareAge);
    given = policies;
    return sorted;
  };
};

/** What is told about two lists, by places in them, in order of age. */
export interface Comparison {
  /** The very same value is in both. */
  readonly stays: (old: number, now: number) => void;
  /** A value is in the old list only. */
  readonly goes: (old: number) => void;
  /** A value is in the new list only; `replaced` is the place of the policy in the old one, if it was there. */
  readonly comes: (now: number, replaced: number | undefined) => void;
}

/** Compares two lists that are sorted by age. Values that stay are not read: that would cost more than all the rest. */
export const compareLists = (
  before: readonly PolicyView[],
  after: readonly PolicyView[],
  { stays, goes, comes }: Comparison,
): void => {
  let [old, now] = [0, 0];
  while (old < before.length || now < after.length) {
    const [a, b] = [before[old], after[now]];
    if (a === b) {
      stays(old++, now++);
      continue;
    }
    const order = a === undefined ? 1 : b === undefined ? -1 : compareAge(a, b);
    if (order <= 0) goes(old);
    if (order >= 0) comes(now, order === 0 ? old : undefined);
    if (order <= 0) old += 1;
    if (order >= 0) now += 1;
  }
};

/** How the values of two lists differ that are sorted by age. */
export const changesBetween = (before: readonly PolicyView[], after: readonly PolicyView[]): Changes => {
  const gone: PolicyView[] = [];
  const come: PolicyView[] = [];
  const put = (list: PolicyView[], policy: PolicyView | undefined): void => {
    if (policy !== undefined) list.push(policy);
  };
  compareLists(before, after, {
    stays: () => {},
    goes: (old) => put(gone, before[old]),
    comes: (now) => put(come, after[now]),
  });
  return { gone, come };
};

/**
 * How two lists in any order differ, if one came from the other by few changes that left the rest in its place, as it is
 * with the values of a Map; undefined when that is not so.
 */
const changesInPlace = (before: readonly PolicyView[], after: readonly PolicyView[]): Changes | undefined => {
  const gone: PolicyView[] = [];
  const come: PolicyView[] = [];
  let [old, now] = [0, 0];
  while (old < before.length || now < after.length) {
    const [a, b] = [before[old], after[now]];
    if (a !== b) {
      if (gone.length + come.length >= FEW) return undefined;
      const isGone = b === undefined || before[old + 1] === b || a?.key === b.key;
      const isCome = a === undefined || after[now + 1] === a || a.key === b?.key;
      if (a !== undefined && isGone) gone.push(a);
      if (b !== undefined && isCome) come.push(b);
      if (!isGone && !isCome) return undefined;
      old += isGone ? 1 : 0;
      now += isCome ? 1 : 0;
    } else {
      old += 1;
      now += 1;
    }
  }
  return { gone, come };
};

/** The sorted list with the changes; undefined when it does not have what is said to be gone. */
const merged = (sorted: readonly PolicyView[], { gone, come }: Changes): readonly PolicyView[] | undefined => {
  const list = [...sorted];
  for (const policy of gone) {
    const at = placeIn(list, policy, compareAge);
    if (list[at] !== policy) return undefined;
    list.splice(at, 1);
  }
  for (const policy of come) list.splice(placeIn(list, policy, compareAge), 0, policy);
  return list;
};

/** Where an item is in a sorted list, or belongs: the first place whose item does not come before it. */
export const placeIn = <T>(sorted: readonly T[], item: T, compare: (a: T, b: T) => number): number => {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = sorted[middle];
    if (at !== undefined && compare(at, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};
