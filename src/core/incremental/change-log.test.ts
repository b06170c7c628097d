import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exchangedBetween, ListJournal, MapJournal, touchedBetween } from './change-log.ts';

/** Objects, because lists tell items apart by identity. */
const items = Array.from({ length: 8 }, (_, name) => ({ name }));

describe('a journal of lists', () => {
  it('tells what any two lists of the series differ in, as a comparison would', () => {
    const steps = fc.array(fc.record({ at: fc.nat(7), isCut: fc.boolean() }), { maxLength: 40 });
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(), (changes, first, second) => {
        const journal = new ListJournal<object>();
        const present = new Set<object>();
        const lists = [journal.mark([...present])];
        for (const { at, isCut } of changes) {
          const item = items[at] ?? assert.fail();
          if (present.delete(item)) journal.exchange(item, undefined);
          else {
            present.add(item);
            journal.exchange(undefined, item);
          }
          // Some lists are made after several changes only.
          if (!isCut) lists.push(journal.mark([...present]));
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
    const [one, other] = [new ListJournal<object>(), new ListJournal<object>()];
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

describe('a journal of maps', () => {
  it('names the keys that were touched in between', () => {
    const journal = new MapJournal<string>();
    const first = journal.mark(new Map([['a', 1]]));
    journal.touch('b');
    const second = journal.mark(new Map([...first, ['b', 2]]));
    journal.touch('a');
    journal.touch('b');
    const third = journal.mark(new Map([['b', 3]]));
    assert.deepEqual(touchedBetween(first, second), new Set(['b']));
    assert.deepEqual(touchedBetween(second, third), new Set(['a', 'b']));
    assert.deepEqual(touchedBetween(third, third), new Set());
    assert.equal(touchedBetween(first, new Map(third)), undefined);
  });
});
