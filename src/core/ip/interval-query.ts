/** Questions to an IntervalSet. None of them expands an interval; only `addresses` visits every address, lazily. */
import { familyAt, type Interval, type Ip, ipAt, positionOf, widthOf } from '../../api/ip/address.ts';
import { type Cidr, cidrOf, intervalOfCidr } from '../../api/ip/cidr.ts';
import { type IntervalSet, remaining, shared } from './interval-set.ts';

/** True when the address is in the set; takes the logarithm of the number of intervals. */
export const contains = (set: IntervalSet, ip: Ip): boolean => {
  const position = positionOf(ip);
  const interval = lastStartingAtOrBefore(set, position);
  return interval !== undefined && position <= interval.last;
};

/** True when every address of `part` is in `whole`; the empty set is part of every set. */
export const containsAll = (whole: IntervalSet, part: IntervalSet): boolean =>
  part.intervals.every(({ first, last }) => {
    // Intervals of a set are never adjacent, so a part that lies inside at all lies inside one of them.
    const interval = lastStartingAtOrBefore(whole, first);
    return interval !== undefined && last <= interval.last;
  });

/** True when at least one address is in both sets. */
export const overlaps = (a: IntervalSet, b: IntervalSet): boolean => shared(a, b).next().done !== true;

/** True when both sets hold the same addresses, however they were written. */
export const equals = (a: IntervalSet, b: IntervalSet): boolean =>
  a.intervals.length === b.intervals.length &&
  a.intervals.every(({ first, last }, index) => {
    const other = b.intervals[index];
    return first === other?.first && last === other.last;
  });

/** The number of addresses. */
export const count = (set: IntervalSet): bigint => set.intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);

/** The address number `n` in ascending order, counted from 0; undefined when the set is smaller. */
export const nth = (set: IntervalSet, n: bigint): Ip | undefined => nthOf(set.intervals, n);

/** How many addresses of the set come before this one: for an address of the set the inverse of `nth`. */
export const placeOf = (set: IntervalSet, ip: Ip): bigint => {
  const position = positionOf(ip);
  let before = 0n;
  for (const { first, last } of set.intervals) {
    if (position <= first) break;
    before += (position <= last ? position - 1n : last) - first + 1n;
  }
  return before;
};

/** The address number `n`, counted from 0, of those in `pool` that are not in `used`; undefined when there are fewer. */
export const nthFree = (pool: IntervalSet, used: IntervalSet, n: bigint): Ip | undefined =>
  nthOf(remaining(pool, used), n);

/** The lowest address of `pool` that is not in `used`; undefined when the pool is exhausted. */
export const firstFree = (pool: IntervalSet, used: IntervalSet): Ip | undefined => nthFree(pool, used, 0n);

/** Every address in ascending order, one at a time: take as many as you need. */
export function* addresses(set: IntervalSet): Generator<Ip, undefined> {
  for (const { first, last } of set.intervals) {
    for (let position = first; position <= last; position += 1n) yield ipAt(position);
  }
}

/** The fewest CIDRs that hold exactly the addresses of the set, in ascending order. */
export const cidrCover = (set: IntervalSet): Cidr[] => set.intervals.flatMap((interval) => [...blocks(interval)]);

/** The set as entries in ascending order, the shortest form of each: address, CIDR or range. Parsing them gives the set again. */
export const formatSet = (set: IntervalSet): string[] =>
  set.intervals.map((interval) => {
    if (interval.first === interval.last) return ipAt(interval.first);
    const [block] = blocks(interval);
    const isOneBlock = block !== undefined && intervalOfCidr(block).last === interval.last;
    return isOneBlock ? block : `${ipAt(interval.first)}-${ipAt(interval.last)}`;
  });

const sizeOf = ({ first, last }: Interval): bigint => last - first + 1n;

const nthOf = (intervals: Iterable<Interval>, n: bigint): Ip | undefined => {
  if (n < 0n) return undefined;
  let skip = n;
  for (const interval of intervals) {
    const size = sizeOf(interval);
    if (skip < size) return ipAt(interval.first + skip);
    skip -= size;
  }
  return undefined;
};

const lastStartingAtOrBefore = (set: IntervalSet, position: bigint): Interval | undefined => {
  let low = 0;
  let high = set.intervals.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const interval = set.intervals[middle];
    if (interval !== undefined && interval.first <= position) low = middle + 1;
    else high = middle;
  }
  return set.intervals[low - 1];
};

/** The largest aligned block at the start of the interval, then of what is left: greedy is minimal here. */
function* blocks({ first, last }: Interval): Generator<Cidr, undefined> {
  const width = widthOf[familyAt(first)];
  let start = first;
  while (start <= last) {
    let hostBits = 0;
    let size = 1n;
    // Doubling keeps the block aligned to its size and inside the interval.
    while (hostBits < width && (start & size) === 0n && start + 2n * size - 1n <= last) {
      size *= 2n;
      hostBits += 1;
    }
    yield cidrOf(start, width - hostBits);
    start += size;
  }
}
