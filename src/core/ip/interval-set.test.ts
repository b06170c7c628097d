import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Interval, type Ip, ipAt } from '../../api/ip/address.ts';
import { intervalOfCidr, parseCidr, parseCidrMasking } from '../../api/ip/cidr.ts';
import {
  addresses,
  cidrCover,
  contains,
  containsAll,
  count,
  equals,
  firstFree,
  formatSet,
  nth,
  nthFree,
  overlaps,
  placeOf,
} from './interval-query.ts';
import {
  difference,
  emptySet,
  type IntervalSet,
  intersection,
  ofFamily,
  parseSet,
  setOf,
  setOfIps,
  union,
} from './interval-set.ts';

/**
 * The naive model is a Set of positions inside a small universe. The universe takes 16 addresses at each end of
 * both families and 16 in the middle of IPv4, so that every law is also tried where the line begins and ends.
 */
const WINDOW = 16n;
const IPV6 = 1n << 128n;
const windows = [0n, 0x0a000000n, (1n << 32n) - WINDOW, IPV6, 2n * IPV6 - WINDOW];

const interval: fc.Arbitrary<Interval> = fc
  .tuple(fc.constantFrom(...windows), fc.bigInt(0n, WINDOW - 1n), fc.bigInt(0n, WINDOW - 1n))
  .map(([start, a, b]) => (a < b ? { first: start + a, last: start + b } : { first: start + b, last: start + a }));
const intervals = fc.array(interval, { maxLength: 12 });

interface Both {
  readonly set: IntervalSet;
  readonly model: ReadonlySet<bigint>;
}
const both: fc.Arbitrary<Both> = intervals.map((list) => ({ set: setOf(list), model: modelOf(list) }));

const modelOf = (list: readonly Interval[]): Set<bigint> => {
  const model = new Set<bigint>();
  for (const { first, last } of list) for (let position = first; position <= last; position += 1n) model.add(position);
  return model;
};
const ascending = (model: Iterable<bigint>): Ip[] => [...model].sort((a, b) => (a < b ? -1 : 1)).map(ipAt);

/** Holds the addresses of the model, and its intervals are sorted, disjoint and not adjacent. */
const assertIs = (set: IntervalSet, model: ReadonlySet<bigint>): void => {
  assert.deepEqual([...addresses(set)], ascending(model));
  set.intervals.forEach((next, index) => {
    assert.ok(next.first <= next.last);
    const previous = set.intervals[index - 1];
    assert.ok(previous === undefined || previous.last + 1n < next.first);
  });
};

describe('IntervalSet agrees with a naive set of addresses', () => {
  it('when it is made, in any order', () => {
    fc.assert(
      fc.property(intervals, (list) => {
        assertIs(setOf(list), modelOf(list));
        assert.ok(equals(setOf(list), setOf(list.toReversed())));
      }),
    );
  });

  it('in union, intersection and difference', () => {
    fc.assert(
      fc.property(both, both, (a, b) => {
        assertIs(union(a.set, b.set), a.model.union(b.model));
        assertIs(intersection(a.set, b.set), a.model.intersection(b.model));
        assertIs(difference(a.set, b.set), a.model.difference(b.model));
      }),
      { numRuns: 300 },
    );
  });

  it('in count, contains, containsAll, overlaps and equals', () => {
    fc.assert(
      fc.property(both, both, interval, (a, b, { first }) => {
        assert.equal(count(a.set), BigInt(a.model.size));
        assert.equal(contains(a.set, ipAt(first)), a.model.has(first));
        assert.equal(containsAll(a.set, b.set), b.model.isSubsetOf(a.model));
        assert.equal(overlaps(a.set, b.set), !a.model.isDisjointFrom(b.model));
        assert.equal(equals(a.set, b.set), a.model.symmetricDifference(b.model).size === 0);
        // Random pairs are seldom related, so the related ones are made here.
        assert.ok(containsAll(union(a.set, b.set), a.set));
        assert.ok(equals(union(difference(a.set, b.set), intersection(a.set, b.set)), a.set));
      }),
      { numRuns: 300 },
    );
  });

  it('in the n-th and the n-th free address, below, inside and past the end', () => {
    fc.assert(
      fc.property(both, both, fc.bigInt(-1n, 5n * WINDOW), (pool, used, n) => {
        const at = (model: ReadonlySet<bigint>): Ip | undefined => (n < 0n ? undefined : ascending(model)[Number(n)]);
        assert.equal(nth(pool.set, n), at(pool.model));
        const address = nth(pool.set, n);
        if (address !== undefined) assert.equal(placeOf(pool.set, address), n);
        assert.equal(nthFree(pool.set, used.set, n), at(pool.model.difference(used.model)));
      }),
      { numRuns: 300 },
    );
  });

  it('in the CIDR cover, which is exact and minimal', () => {
    fc.assert(
      fc.property(both, ({ set, model }) => {
        const cover = cidrCover(set);
        const blocks = cover.map(intervalOfCidr);
        assertIs(setOf(blocks), model);
        assert.equal(
          blocks.reduce((sum, block) => sum + block.last - block.first + 1n, 0n),
          BigInt(model.size),
          'blocks do not overlap',
        );
        // Minimal: no two neighbours are the halves of one larger block.
        for (const [index, block] of blocks.entries()) {
          const next = blocks[index + 1];
          const size = block.last - block.first + 1n;
          const areHalves =
            next?.first === block.last + 1n && next.last - next.first + 1n === size && (block.first & size) === 0n;
          assert.ok(!areHalves, `${cover[index]} and ${cover[index + 1]} are one block`);
        }
      }),
    );
  });

  it('in text, which reads back to the same set', () => {
    fc.assert(
      fc.property(both, ({ set }) => {
        const parsed = parseSet(formatSet(set), parseCidr);
        assert.ok(parsed.ok && equals(parsed.value, set));
        const fromIps = setOfIps(addresses(set));
        assert.ok(equals(fromIps, set));
        assert.ok(equals(union(ofFamily(set, 4), ofFamily(set, 6)), set));
        assert.ok(!overlaps(ofFamily(set, 4), ofFamily(set, 6)));
      }),
    );
  });
});

describe('IntervalSet', () => {
  const parsed = (...texts: string[]): IntervalSet => {
    const set = parseSet(texts, parseCidrMasking);
    assert.ok(set.ok);
    return set.value;
  };

  it('merges neighbours and prints the shortest form of each interval', () => {
    const set = parsed('10.0.1.0/24', '10.0.0.0/24', 'fd00::1', '10.2.0.1-10.2.0.3', 'fd00::/126', '10.9.0.1-10.9.0.1');
    assert.deepEqual(formatSet(set), ['10.0.0.0/23', '10.2.0.1-10.2.0.3', '10.9.0.1', 'fd00::/126']);
  });

  it('covers an odd range with the fewest CIDRs', () => {
    assert.deepEqual(cidrCover(parsed('10.0.0.1-10.0.0.6')), [
      '10.0.0.1/32',
      '10.0.0.2/31',
      '10.0.0.4/31',
      '10.0.0.6/32',
    ]);
    assert.deepEqual(cidrCover(parsed('0.0.0.0-255.255.255.255', '::/0')), ['0.0.0.0/0', '::/0']);
    assert.equal(cidrCover(parsed('::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe')).length, 254);
  });

  it('answers for a /8, a /64 and a /0 without expanding them', () => {
    const huge = parsed('10.0.0.0/8', 'fd00::/64', '2000::/3');
    assert.equal(count(ofFamily(huge, 4)), 1n << 24n);
    assert.equal(count(parsed('::/0')), 1n << 128n);
    assert.equal(nth(huge, (1n << 24n) + 5n), '2000::5');
    assert.equal(firstFree(huge, parsed('10.0.0.0-10.255.255.254')), '10.255.255.255');
    assert.deepEqual([...addresses(parsed('fd00::/64')).take(3)], ['fd00::', 'fd00::1', 'fd00::2']);
  });

  it('says which entry of a list is bad', () => {
    assert.deepEqual(parseSet(['10.0.0.1', '10.0.0.0/24', '10.0.0.9/24'], parseCidr), {
      ok: false,
      reason: 'HostBitsSet',
      message:
        '"10.0.0.9/24" has bits set behind the prefix; write 10.0.0.0/24 for the block or 10.0.0.9 for the address.',
      index: 2,
    });
  });

  it('is not changed by being combined', () => {
    const a = parsed('10.0.0.0/30');
    const b = parsed('10.0.0.2-10.0.0.9');
    const before = structuredClone([a, b]);
    union(a, b);
    difference(a, b);
    intersection(a, b);
    assert.deepEqual([a, b], before);
    assert.deepEqual(formatSet(emptySet), []);
    assert.equal(firstFree(emptySet, emptySet), undefined);
  });
});
