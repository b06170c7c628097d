/**
 * IntervalSet is an immutable set of addresses of both families, kept as intervals and never expanded: a /8 and a
 * /64 are one interval each. Its intervals are sorted, disjoint and never adjacent, so equal sets have equal
 * intervals. This file makes and combines sets; interval-query.ts asks them questions.
 */
import { familyAt, type Interval, type Ip, type IpFamily, positionOf } from '../../api/ip/address.ts';
import type { CidrParser } from '../../api/ip/cidr.ts';
import { type Entry, parseEntry } from '../../api/ip/entry.ts';
import { accept, type Parsed } from '../../api/ip/reason.ts';

declare const brand: unique symbol;

/** Made only by the functions of this file, which keep the intervals sorted and merged. */
export interface IntervalSet {
  readonly intervals: readonly Interval[];
  readonly [brand]: true;
}

/** The set of all addresses in the given intervals, which may come in any order and overlap. */
export const setOf = (intervals: Iterable<Interval>): IntervalSet => sealed(merged([...intervals]));

/** The set of single addresses; naming one twice changes nothing. */
export const setOfIps = (ips: Iterable<Ip>): IntervalSet =>
  setOf(
    Iterator.from(ips).map((ip) => {
      const position = positionOf(ip);
      return { first: position, last: position };
    }),
  );

/** Reads a list of entries; the first bad one refuses the list and its place is in `index`. */
export const parseSet = (texts: readonly string[], cidrParser: CidrParser): Parsed<IntervalSet> =>
  parseEntries(texts, cidrParser, (entry) => entry.interval);

/** Reads a list of entries and takes from each the interval that `choose` gives. */
export const parseEntries = (
  texts: readonly string[],
  cidrParser: CidrParser,
  choose: (entry: Entry) => Interval,
): Parsed<IntervalSet> => {
  const intervals: Interval[] = [];
  for (const [index, text] of texts.entries()) {
    const entry = parseEntry(text, cidrParser);
    if (!entry.ok) return { ...entry, index };
    intervals.push(choose(entry.value));
  }
  return accept(setOf(intervals));
};

/** Addresses in either set. */
export const union = (a: IntervalSet, b: IntervalSet): IntervalSet => setOf([...a.intervals, ...b.intervals]);

/** Addresses in both sets. */
export const intersection = (a: IntervalSet, b: IntervalSet): IntervalSet => sealed([...shared(a, b)]);

/** Addresses of `a` that are not in `b`. */
export const difference = (a: IntervalSet, b: IntervalSet): IntervalSet => sealed([...remaining(a, b)]);

/** The addresses of one family. */
export const ofFamily = (set: IntervalSet, family: IpFamily): IntervalSet =>
  sealed(set.intervals.filter((interval) => familyAt(interval.first) === family));

/** The intervals of the intersection, in order, found one at a time. */
export function* shared(a: IntervalSet, b: IntervalSet): Generator<Interval, undefined> {
  let i = 0;
  let j = 0;
  for (;;) {
    const left = a.intervals[i];
    const right = b.intervals[j];
    if (left === undefined || right === undefined) return;
    let { first, last } = left;
    if (right.first > first) first = right.first;
    if (right.last < last) last = right.last;
    if (first <= last) yield { first, last };
    if (left.last < right.last) i += 1;
    else j += 1;
  }
}

/** The intervals of the difference, in order, found one at a time: a free address needs only the first few. */
export function* remaining(a: IntervalSet, b: IntervalSet): Generator<Interval, undefined> {
  let j = 0;
  for (const { first, last } of a.intervals) {
    let start = first;
    for (;;) {
      const hole = b.intervals[j];
      if (hole === undefined || hole.first > last) break;
      if (hole.first > start) yield { first: start, last: hole.first - 1n };
      if (hole.last >= start) start = hole.last + 1n;
      // A hole that reaches past this interval may also cut the next one.
      if (hole.last > last) break;
      j += 1;
    }
    if (start <= last) yield { first: start, last };
  }
}

const merged = (intervals: Interval[]): readonly Interval[] => {
  intervals.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  const result: Interval[] = [];
  for (const next of intervals) {
    const previous = result.at(-1);
    if (previous === undefined || next.first > previous.last + 1n) result.push(next);
    else if (next.last > previous.last) result[result.length - 1] = { first: previous.first, last: next.last };
  }
  // An array that grew has room for 17; sets are kept, by the thousand, and a copy has just the room it needs.
  return result.slice();
};

// The brand exists only for the compiler; callers of `sealed` promise sorted, disjoint, non-adjacent intervals.
const sealed = (intervals: readonly Interval[]): IntervalSet => ({ intervals }) as IntervalSet;

/** The set without addresses. */
export const emptySet: IntervalSet = sealed([]);
