import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Condition } from '../../api/condition.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import { mergePatch } from '../testing/merge.ts';
import { clearing, type StatusOwnership, shows } from './owned-status.ts';

/** As if the count of pods were somebody else's. */
const ownership: StatusOwnership<PolicyStatus> = {
  fieldsOf: ({ eip, node, slot }) => ({ eip, node, slot }),
  conditionTypes: ['Accepted', 'Allocated', 'Shadowed'],
};

const condition = (type: string, reason = 'Valid'): Condition => ({
  type,
  status: 'True',
  reason,
  message: '',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const wanted: PolicyStatus = {
  eip: { ipv4: '10.6.1.1' },
  node: 'a',
  slot: 7,
  observedGeneration: 1,
  conditions: [condition('Accepted'), condition('Allocated', 'EipAllocated')],
};

describe('shows', () => {
  const cases: readonly [string, PolicyStatus | undefined, boolean][] = [
    ['the same', wanted, true],
    ['no status', undefined, false],
    ['fields of others', { ...wanted, matchedPods: 3 }, true],
    ['conditions of others', { ...wanted, conditions: [...(wanted.conditions ?? []), condition('Audited')] }, true],
    ['conditions in another order', { ...wanted, conditions: wanted.conditions?.toReversed() }, true],
    ['an empty text instead of nothing', { ...wanted, eip: { ipv4: '10.6.1.1', ipv6: '' } }, true],
    ['another node', { ...wanted, node: 'b' }, false],
    ['an address too many', { ...wanted, eip: { ipv4: '10.6.1.1', ipv6: 'fd00::1' } }, false],
    ['an older generation', { ...wanted, observedGeneration: 0 }, false],
    ['a condition too few', { ...wanted, conditions: [condition('Accepted')] }, false],
    [
      'a condition of ours too many',
      { ...wanted, conditions: [...(wanted.conditions ?? []), condition('Shadowed')] },
      false,
    ],
    ['another reason', { ...wanted, conditions: [condition('Accepted'), condition('Allocated', 'X')] }, false],
  ];
  for (const [name, status, expected] of cases) {
    it(`${expected ? 'takes' : 'does not take'} ${name}`, () =>
      assert.equal(shows(status, wanted, ownership), expected));
  }
});

describe('clearing', () => {
  const address = fc.constantFrom('', '10.6.1.1', '10.6.1.2');
  const status: fc.Arbitrary<PolicyStatus> = fc.record(
    {
      eip: fc.record({ ipv4: address, ipv6: address }, { requiredKeys: [] }),
      node: fc.constantFrom('', 'a', 'b'),
      slot: fc.integer({ min: 1, max: 3 }),
      matchedPods: fc.nat(3),
      conditions: fc.uniqueArray(
        fc.constantFrom('Accepted', 'Shadowed', 'Audited').map((type) => condition(type)),
        {
          selector: ({ type }) => type,
        },
      ),
    },
    { requiredKeys: [] },
  );

  it('leaves nothing of ours that is not wanted, and everything of others', () => {
    fc.assert(
      fc.property(status, status, (before, wish) => {
        const patch = clearing(before, wish, ownership);
        // A merge patch of a status is a status again; the type of mergePatch does not say so.
        const after = (patch === undefined ? before : mergePatch(before, patch)) as PolicyStatus;
        assert.equal(clearing(after, wish, ownership), undefined);
        assert.equal(after.matchedPods, before.matchedPods);
        const foreign = (each: PolicyStatus) => each.conditions?.some(({ type }) => type === 'Audited') ?? false;
        assert.equal(foreign(after), foreign(before));
        for (const field of ['node', 'slot'] as const) if (!wish[field]) assert.ok(!after[field]);
      }),
    );
  });

  it('has nothing to clear in what is wanted', () => {
    fc.assert(
      fc.property(status, (each) => {
        assert.equal(clearing(each, each, ownership), undefined);
        assert.ok(shows(each, each, ownership));
      }),
    );
  });
});
