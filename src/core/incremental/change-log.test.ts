import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exchangedBetween, ListChangeLog, MapChangeLog, touchedBetween } from './change-log.ts';

/** Objects, because lists tell items apart by identity. */
const items = Array.from({ length: 8 }, (_, name) => ({ name }));

describe('a change log of lists', () => {
  it('tells what any two lists of the series differ in, as a comparison would', () => {
    const steps = fc.array(fc.record({ at: fc.nat(7), isCut: fc.boolean() }), { maxLength: 40 });
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(), (changes, first, second) => {
        const changeLog = new ListChangeLog<object>();
        const present = new Set<object>();
        const lists = [changeLog.mark([...present])];
        for (const { at, isCut } of changes) {
          const item = items[at] ?? assert.fail();
          if (present.delete(item)) changeLog.exchange(item, undefined);
          else {
            present.add(item);
            changeLog.exchange(undefined, item);
          }
          // Some lists are made after several changes only.
          if (!isCut) lists.push(changeLog.mark([...present]));
        }
        const [from, to] = [first % lists.length, second % lists.length].toSorted((a, b) => a - b);
        const [earlier, later] = [lists[from ?? 0] ?? [], lists[to ?? 0] ?? []];
        const [before, after] = [new Set(earlier), new Set(later)];
        assert.deepEqual(exchangedBetween(earlier, later), {
          gone: before.difference(after),
          come: after.difference(before),
        });
      }),
    );
  });

  it('knows nothing of lists of others, of later ones, and of what is long ago', () => {
    const [one, other] = [new ListChangeLog<object>(), new ListChangeLog<object>()];
    const first = one.mark([]);
    assert.equal(exchangedBetween(first, other.mark([])), undefined);
    assert.equal(exchangedBetween(first, []), undefined);
    assert.equal(exchangedBetween([], []), undefined);
    for (let round = 0; round < 256; round += 1) one.exchange(undefined, { round });
    const recent = one.mark([]);
    assert.equal(exchangedBetween(first, recent)?.come.size, 256);
    assert.equal(exchangedBetween(recent, first), undefined);
    for (let round = 0; round < 256; round += 1) one.exchange(undefined, { round });
    const last = one.mark([]);
    assert.equal(exchangedBetween(first, last), undefined);
    assert.equal(exchangedBetween(recent, last)?.come.size, 256);
  });
});

describe('a change log of maps', () => {
  it('names the keys that were touched in between', () => {
    const changeLog = new MapChangeLog<string>();
    const first = changeLog.mark(new Map([['a', 1]]));
    changeLog.touch('b');
    const second = changeLog.mark(new Map([...first, ['b', 2]]));
    changeLog.touch('a');
    changeLog.touch('b');
    const third = changeLog.mark(new Map([['b', 3]]));
    assert.deepEqual(touchedBetween(first, second), new Set(['b']));
    assert.deepEqual(touchedBetween(second, third), new Set(['a', 'b']));
    assert.deepEqual(touchedBetween(third, third), new Set());
    assert.equal(touchedBetween(first, new Map(third)), undefined);
  });
});
