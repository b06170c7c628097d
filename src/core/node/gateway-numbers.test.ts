import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { assignGatewayNumbers } from './gateway-numbers.ts';
import { GATEWAY_NUMBERS } from './numbers.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `node-${index}`);
const assigned = (nodes: readonly string[], previous: Readonly<Record<string, number>> = {}) =>
  Object.fromEntries(assignGatewayNumbers(new Set(nodes), new Map(Object.entries(previous))));

describe('assignGatewayNumbers', () => {
  it('starts at 1, in the order of names', () => {
    assert.deepEqual(assigned(['b', 'a', 'c']), { a: 1, b: 2, c: 3 });
  });

  it('keeps the numbers of nodes that stay, and gives a number that was free before to a new one', () => {
    assert.deepEqual(assigned(['a', 'd', 'c'], { a: 1, b: 2, c: 3 }), { a: 1, c: 3, d: 4 });
  });

  it('takes a number that has just become free when there is no other', () => {
    const full = names(GATEWAY_NUMBERS);
    const before = Object.fromEntries(full.map((name, index) => [name, index + 1]));
    assert.equal(assigned([...full.slice(1), 'new'], before).new, 1);
  });

  it('leaves the last nodes without a number when there are too many', () => {
    const given = assigned(names(GATEWAY_NUMBERS + 3));
    assert.equal(Object.keys(given).length, GATEWAY_NUMBERS);
  });

  it('does not trust what it is given', () => {
    assert.deepEqual(assigned(['a', 'b', 'c', 'd'], { a: 0, b: 256, c: 7, d: 7 }), { c: 7, a: 1, b: 2, d: 3 });
  });

  it('gives the very map back when it says the same', () => {
    const previous = new Map([['a', 3]]);
    assert.equal(assignGatewayNumbers(new Set(['a']), previous), previous);
  });

  it('never gives one number to two nodes, and never changes one that is in use', () => {
    const node = fc.constantFrom(...names(12));
    fc.assert(
      fc.property(fc.array(fc.uniqueArray(node)), (history) => {
        let before: ReadonlyMap<string, number> = new Map();
        for (const nodes of history) {
          const now = assignGatewayNumbers(new Set(nodes), before);
          assert.deepEqual([...now.keys()].toSorted(), nodes.toSorted());
          assert.equal(new Set(now.values()).size, now.size);
          for (const [name, number] of now) assert.ok(!before.has(name) || before.get(name) === number);
          before = now;
        }
      }),
    );
  });
});
