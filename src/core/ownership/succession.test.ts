import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { byRendezvous, hashText } from '../values/hash.ts';
import { SUCCESSORS, successorsOf } from './succession.ts';

const ready = (names: readonly string[]) => names.map((name) => ({ name, hash: hashText(name) }));
const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { maxLength: 9 });

describe('successorsOf', () => {
  it('is the start of the rendezvous order without the owner', () => {
    fc.assert(
      fc.property(names, fc.nat(), (all, subject) => {
        const [owner] = all;
        const expected = ready(all.slice(1)).toSorted(byRendezvous(subject)).slice(0, SUCCESSORS);
        assert.deepEqual(
          successorsOf(subject, owner, ready(all)),
          expected.map(({ name }) => name),
        );
      }),
    );
  });

  it('keeps its order when another node goes', () => {
    fc.assert(
      fc.property(names, fc.nat(), (all, subject) => {
        const before = successorsOf(subject, undefined, ready(all));
        const [gone] = before;
        const after = successorsOf(subject, undefined, ready(all.filter((name) => name !== gone)));
        assert.deepEqual(after.slice(0, before.length - 1), before.slice(1));
      }),
    );
  });

  it('spreads the EIPs of a lost node over all others', () => {
    const all = ready(['a', 'b', 'c', 'd', 'e']);
    const next = Array.from({ length: 100 }, (_, index) => successorsOf(hashText(`10.6.1.${index}`), 'a', all)[0]);
    assert.deepEqual([...new Set(next)].toSorted(), ['b', 'c', 'd', 'e']);
  });
});
