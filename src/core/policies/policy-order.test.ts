import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyView } from '../cluster/view.ts';
import { projectPolicy } from '../project/index.ts';
import { policyObject } from '../testing/objects.ts';
import { changesBetween, createPolicyOrder, placeIn } from './policy-order.ts';
import { compareAge } from './precedence.ts';

const key = fc.nat({ max: 9 }).map((number) => `red/p${number}`);
/** Undefined: the policy goes. A second is an age: a policy that is made anew may be older or younger than before. */
const event = fc.tuple(key, fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 3 }));
const history = fc.array(fc.array(event, { maxLength: 4 }), { maxLength: 20 });

/** The lists of a Map in which the events of each step have happened. */
const listsOf = (steps: readonly (readonly (readonly [string, number | undefined])[])[]): PolicyView[][] => {
  const policies = new Map<string, PolicyView>();
  return steps.map((events) => {
    for (const [name, at] of events) {
      if (at === undefined) policies.delete(name);
      else policies.set(name, projectPolicy(policyObject(name, { at })));
    }
    return [...policies.values()];
  });
};

describe('createAgeOrder', () => {
  it('sorts as a sort does, whatever it has sorted before', () => {
    fc.assert(
      fc.property(history, (steps) => {
        const sorted = createPolicyOrder();
        for (const list of listsOf(steps)) assert.deepEqual(sorted(list), list.toSorted(compareAge));
      }),
    );
  });

  it('sorts many changes at once, and lists in another order', () => {
    const sorted = createPolicyOrder();
    const list = Array.from({ length: 300 }, (_, index) => projectPolicy(policyObject(`red/p${index}`, { at: index })));
    for (const some of [list, list.slice(100), list.toReversed(), list.slice(0, 50), list]) {
      assert.deepEqual(sorted(some), some.toSorted(compareAge));
    }
  });
});

describe('changesBetween', () => {
  it('tells what leads from one sorted list to the next', () => {
    fc.assert(
      fc.property(history, (steps) => {
        let before: PolicyView[] = [];
        for (const list of listsOf(steps)) {
          const after = list.toSorted(compareAge);
          const { gone, come } = changesBetween(before, after);
          const stayed = before.filter((policy) => !gone.includes(policy));
          assert.deepEqual([...stayed, ...come].toSorted(compareAge), after);
          assert.ok(
            stayed.every((policy) => after.includes(policy)),
            'what stays is the same value',
          );
          assert.ok(!come.some((policy) => before.includes(policy)), 'what comes was not there');
          before = after;
        }
      }),
    );
  });
});

describe('placeIn', () => {
  it('finds an item, and where one belongs', () => {
    const byNumber = (a: number, b: number): number => a - b;
    assert.deepEqual(
      [0, 1, 2, 3, 6].map((item) => placeIn([1, 3, 5], item, byNumber)),
      [0, 0, 1, 1, 3],
    );
    assert.equal(placeIn([], 1, byNumber), 0);
  });
});
