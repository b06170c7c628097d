import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyView } from '../cluster/view.ts';
import { projectClusterPolicy, projectPolicy } from '../project/index.ts';
import { type PolicyShape, policyObject } from '../testing/objects.ts';
import { comparePrecedence, precedenceSentence } from './precedence.ts';

const policyOf = (key: string, shape: PolicyShape = {}): PolicyView =>
  key.includes('/') ? projectPolicy(policyObject(key, shape)) : projectClusterPolicy(policyObject(key, shape));

describe('comparePrecedence', () => {
  const ordered = [
    policyOf('red/zero', { priority: 0, at: 9 }),
    policyOf('cluster-zero', { at: 0 }),
    policyOf('red/old', { priority: 5, at: 1 }),
    policyOf('red/young', { priority: 5, at: 2 }),
    policyOf('red/young-too', { priority: 5, at: 2 }),
    policyOf('cluster-old', { priority: 5, at: 0 }),
    policyOf('red/unreadable', { priority: -1 }),
  ];

  it('orders by priority, kind, age and name', () => {
    const keys = ordered.map(({ key }) => key);
    assert.deepEqual(
      ordered
        .toReversed()
        .toSorted(comparePrecedence)
        .map(({ key }) => key),
      keys,
    );
  });

  it('is total: no two policies are equal, and every order of input gives the same', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(ordered, { minLength: 2 }), (some) => {
        const [a, b] = some;
        assert.ok(a && b && comparePrecedence(a, b) !== 0);
        assert.equal(Math.sign(comparePrecedence(a, b)), -Math.sign(comparePrecedence(b, a)));
        assert.deepEqual(some.toSorted(comparePrecedence), some.toReversed().toSorted(comparePrecedence));
      }),
    );
  });

  it('says why, with the value that decides', () => {
    const [first, cluster, old, young, alike] = ordered;
    assert.ok(first && cluster && old && young && alike);
    assert.equal(precedenceSentence(first, old), 'red/zero comes first: priority 0 is before 5.');
    assert.match(precedenceSentence(first, cluster), /a policy of the namespace is before a cluster policy/);
    assert.match(precedenceSentence(old, young), /it is older/);
    assert.match(precedenceSentence(young, alike), /by name/);
  });
});
