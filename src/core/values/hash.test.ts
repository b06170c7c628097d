import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { byRendezvous, type Contender, hashPair, hashText } from './hash.ts';

const contenders = (names: readonly string[]): Contender[] => names.map((name) => ({ name, hash: hashText(name) }));

describe('hashes', () => {
  it('are the same for ever: a change would move EIPs in running clusters', () => {
    assert.equal(hashText(''), 2_872_998_923);
    assert.equal(hashText('node-a'), 1_002_562_564);
    assert.equal(hashText('10.6.1.21,fd00::21'), 2_497_330_042);
    assert.deepEqual([hashPair(1, 2), hashPair(2, 1)], [163_005_474, 1_155_079_965]);
  });

  it('spread names evenly', () => {
    const buckets = new Array<number>(8).fill(0);
    for (let index = 0; index < 8000; index += 1) {
      const bucket = hashText(`node-${index}`) % 8;
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const many of buckets) assert.ok(many > 850 && many < 1150, `${buckets}`);
  });
});

describe('byRendezvous', () => {
  it('does not depend on the order of contenders', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 8 }), fc.nat(), (names, subject) => {
        const order = byRendezvous(subject);
        assert.deepEqual(contenders(names).toSorted(order), contenders(names.toReversed()).toSorted(order));
      }),
    );
  });

  it('moves only the subjects of a contender that goes', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const firstOf = (from: readonly string[], subject: number): string =>
      contenders(from).toSorted(byRendezvous(hashText(`eip-${subject}`)))[0]?.name ?? '';
    for (let subject = 0; subject < 200; subject += 1) {
      const before = firstOf(names, subject);
      if (before !== 'c')
        assert.equal(
          firstOf(
            names.filter((name) => name !== 'c'),
            subject,
          ),
          before,
        );
    }
  });

  it('gives every contender its share', () => {
    const wins = new Map<string, number>();
    for (let subject = 0; subject < 1000; subject += 1) {
      const [first] = contenders(['a', 'b', 'c', 'd']).toSorted(byRendezvous(hashText(`10.6.1.${subject}`)));
      wins.set(first?.name ?? '', (wins.get(first?.name ?? '') ?? 0) + 1);
    }
    for (const many of wins.values()) assert.ok(many > 190 && many < 310, JSON.stringify([...wins]));
  });
});
