import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hashText } from '../values/hash.ts';
import { type Carrier, selectNode } from './selection.ts';

const carrier = (name: string, eips: number, policies = eips): Carrier => ({
  name,
  hash: hashText(name),
  eips,
  policies,
});
const choose = (
  carriers: readonly Carrier[],
  nodePolicy: 'average' | 'minimum' | 'limit',
  policies = 1,
  nodeLimit = 5,
) => selectNode(carriers, { nodePolicy, nodeLimit }, policies, hashText('10.6.1.21'))?.name;

const carriers = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 })
  .chain((names) => fc.tuple(...names.map((name) => fc.nat(9).map((eips) => carrier(name, eips)))));

describe('selectNode', () => {
  const table: readonly [string, readonly Carrier[], 'average' | 'minimum' | 'limit', number, string | undefined][] = [
    ['average takes the fewest EIPs', [carrier('a', 2), carrier('b', 1), carrier('c', 3)], 'average', 1, 'b'],
    ['minimum takes the most', [carrier('a', 2), carrier('b', 1), carrier('c', 3)], 'minimum', 1, 'c'],
    ['limit takes the fullest with room', [carrier('a', 2), carrier('b', 4), carrier('c', 5)], 'limit', 1, 'b'],
    ['limit looks for room for all policies of the EIP', [carrier('a', 2), carrier('b', 4)], 'limit', 3, 'a'],
    ['limit counts policies, not EIPs', [carrier('a', 1, 5), carrier('b', 3, 3)], 'limit', 1, 'b'],
    ['more than 127 EIPs are no limit', [carrier('a', 500), carrier('b', 501)], 'average', 1, 'a'],
    ['no carrier, no choice', [], 'average', 1, undefined],
  ];
  for (const [name, given, mode, policies, expected] of table) {
    it(name, () => assert.equal(choose(given, mode, policies), expected));
  }

  it('with every node at the limit takes one all the same', () => {
    assert.ok(['a', 'b'].includes(choose([carrier('a', 5), carrier('b', 7)], 'limit') ?? ''));
  });

  it('does not depend on the order of nodes', () => {
    fc.assert(
      fc.property(
        carriers,
        fc.constantFrom('average' as const, 'minimum' as const, 'limit' as const),
        (given, mode) => {
          assert.equal(choose(given, mode), choose(given.toReversed(), mode));
        },
      ),
    );
  });

  it('never goes above the limit while a node has room', () => {
    fc.assert(
      fc.property(carriers, fc.integer({ min: 1, max: 3 }), (given, policies) => {
        const chosen = given.find(({ name }) => name === choose(given, 'limit', policies));
        const hasRoom = given.some((one) => one.policies + policies <= 5);
        assert.ok(chosen);
        if (hasRoom) assert.ok(chosen.policies + policies <= 5);
      }),
    );
  });

  it('decides ties by the EIP, so that equal nodes share', () => {
    const equal = ['a', 'b', 'c'].map((name) => carrier(name, 1));
    const chosen = Array.from({ length: 60 }, (_, index) =>
      selectNode(equal, { nodePolicy: 'average', nodeLimit: 5 }, 1, hashText(`10.6.1.${index}`)),
    );
    assert.equal(new Set(chosen.map((one) => one?.name)).size, 3);
  });
});
