import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { assignUnique, type ValueClaim } from './assign-unique.ts';

const space = (size: number) => ({ size, at: (place: number) => place + 1 });
const claim = (name: string, recorded?: number, hash = 0): ValueClaim<number> => ({ name, recorded, hash: () => hash });

const claims = fc
  .uniqueArray(
    fc.record({
      name: fc.string({ maxLength: 3 }),
      recorded: fc.option(fc.integer({ min: 1, max: 12 })),
      hash: fc.nat(),
    }),
    {
      selector: ({ name }) => name,
      maxLength: 15,
    },
  )
  .map((list) => list.map(({ name, recorded, hash }) => claim(name, recorded ?? undefined, hash)));

describe('assignDistinct', () => {
  it('keeps records; of two with the same one the first keeps it', () => {
    const given = assignUnique([claim('old', 3), claim('young', 3, 2)], space(5));
    assert.deepEqual(
      [...given],
      [
        ['old', 3],
        ['young', 4],
      ],
    );
  });

  it('does not give out what is reserved', () => {
    assert.deepEqual([...assignUnique([claim('new', undefined, 0)], space(3), [1, 2])], [['new', 3]]);
  });

  it('starts at the place of the hash, so that a freed value is not the next one given', () => {
    assert.deepEqual([...assignUnique([claim('new', undefined, 6)], space(10))], [['new', 7]]);
  });

  it('leaves out those for whom nothing is left', () => {
    const given = assignUnique([claim('a', 1), claim('b'), claim('c')], space(2));
    assert.deepEqual(
      [...given],
      [
        ['a', 1],
        ['b', 2],
      ],
    );
  });

  it('never gives a value twice, gives as many as there are, and is a fixed point', () => {
    fc.assert(
      fc.property(claims, (list) => {
        const given = assignUnique(list, space(12));
        assert.equal(new Set(given.values()).size, given.size);
        assert.equal(given.size, Math.min(12, list.length));
        const again = assignUnique(
          list.map(({ name, hash }) => ({ name, recorded: given.get(name), hash })),
          space(12),
        );
        assert.deepEqual(again, given);
      }),
    );
  });
});
