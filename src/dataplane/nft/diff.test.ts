import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MapChangeLog } from '../../core/incremental/change-log.ts';
import { type ContainerChange, diffElements } from './diff.ts';
import { type StoredElements, storedOf } from './stored.ts';
import { smallTable, smallTableWith, TABLE_NUMBERS, tableFrom } from './testing/tables.ts';

const small = storedOf(smallTable.elements);
const storedTable = fc
  .array(fc.nat(), { minLength: TABLE_NUMBERS, maxLength: TABLE_NUMBERS })
  .map((numbers) => storedOf(tableFrom(numbers).elements));

/** What a container holds after a change: the meaning of a change in four lines. */
const changed = (held: ReadonlyMap<string, string>, change: ContainerChange | undefined): Map<string, string> => {
  const left = new Map(change?.isFlushed === true ? [] : held);
  for (const key of change?.deletedKeys ?? []) assert.ok(left.delete(key), `${key} is not there`);
  for (const [key, value] of change?.added ?? []) {
    assert.ok(!left.has(key), `${key} is there already`);
    left.set(key, value);
  }
  return left;
};

/** A change whose lists are sorted: their order means nothing. */
const inOrder = (change: ContainerChange): ContainerChange => ({
  ...change,
  deletedKeys: change.deletedKeys.toSorted(),
  added: change.added.toSorted(([a], [b]) => (a < b ? -1 : 1)),
});

describe('the difference of two tables', () => {
  it('is empty for the same content', () => {
    fc.assert(
      fc.property(storedTable, (table) => {
        assert.deepEqual(diffElements(table, structuredClone(table)), []);
      }),
    );
  });

  it('turns any table into any other, deleting only what is there and adding only what is not', () => {
    fc.assert(
      fc.property(storedTable, storedTable, (before, after) => {
        const changes = new Map(diffElements(before, after).map((change) => [change.name, change]));
        for (const [name, wanted] of Object.entries(after)) {
          // The entries of a record have its keys.
          const key = name as keyof StoredElements;
          assert.deepEqual(changed(before[key], changes.get(key)), wanted);
        }
      }),
    );
  });

  it('is the same when a journal tells which keys may be others', () => {
    const steps = fc.array(fc.record({ key: fc.nat(5), value: fc.option(fc.nat(2), { nil: undefined }) }));
    fc.assert(
      fc.property(steps, fc.nat(), (touches, first) => {
        const journal = new MapChangeLog<string>();
        const maps: ReadonlyMap<string, string>[] = [journal.mark(new Map())];
        for (const { key, value } of touches) {
          const next = new Map(maps.at(-1));
          if (value === undefined) next.delete(`10.244.1.${key}`);
          else next.set(`10.244.1.${key}`, `0x2500000${value}`);
          journal.touch(`10.244.1.${key}`);
          maps.push(journal.mark(next));
        }
        const [before = new Map(), after = new Map()] = [maps[first % maps.length], maps.at(-1)];
        const changesOf = (from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>) =>
          diffElements({ ...small, pod4: from }, { ...small, pod4: to });
        const [told, compared] = [changesOf(before, after), changesOf(before, new Map(after))];
        assert.deepEqual(told.map(inOrder), compared.map(inOrder));
      }),
    );
  });

  it('counts each element once, also one with another value', () => {
    const pod4 = new Map([
      ['10.244.1.1', '0x25000009'],
      ['10.244.1.9', '0x25000001'],
    ]);
    const [change] = diffElements(small, storedOf(smallTableWith({ pod4 }).elements));
    assert.equal(change?.differing, 3);
    assert.deepEqual(change.deletedKeys, ['10.244.1.1', '10.244.1.2']);
  });

  it('finds a key that took the place of another', () => {
    const vteps4 = new Map([
      ['10.6.0.11', ''],
      ['10.6.0.13', ''],
    ]);
    const [change] = diffElements(small, storedOf(smallTableWith({ vteps4 }).elements));
    assert.deepEqual([change?.deletedKeys, change?.added], [['10.6.0.12'], [['10.6.0.13', '']]]);
  });

  it('writes plain ranges whole and joined ones one by one', () => {
    const less = smallTableWith({
      cluster4: new Map([['10.96.0.0/12', '']]),
      dst6: new Map([['0x25000001 . 2001:db8::/32', '0x26000001']]),
    });
    const changes = diffElements(small, storedOf(less.elements));
    assert.deepEqual(
      changes.map(({ name, isFlushed, added, differing }) => [name, isFlushed, added.length, differing]),
      [
        ['cluster4', true, 1, 4],
        ['dst6', false, 0, 1],
      ],
    );
  });

  it('counts what an address sends and receives from the moment a slot leaves with it', () => {
    const changes = diffElements(small, storedOf(smallTableWith({ slot_eip6: new Map() }).elements));
    assert.deepEqual(
      changes.map(({ name, deletedKeys }) => [name, ...deletedKeys]),
      [
        ['slot_eip6', '0x28000002'],
        ['sent6', 'fd06::e:100'],
        ['received6', 'fd06::e:100'],
      ],
    );
  });
});
