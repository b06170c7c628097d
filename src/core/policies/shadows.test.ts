import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type PolicyView, policyKey } from '../cluster/view.ts';
import { projectClusterInfo, projectClusterPolicy, projectPolicy } from '../project/index.ts';
import { type PolicyShape, policyObject } from '../testing/objects.ts';
import { createIncrementalShadows } from './incremental-shadows.ts';
import { indexPolicies } from './policy-index.ts';
import { compareAge } from './precedence.ts';
import { shadowsOf } from './shadows.ts';

const ranges = projectClusterInfo({
  metadata: { name: 'default' },
  status: { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'] } } },
});
const namespaces = [{ name: 'red', labels: { team: 'x' } }];

/** What shadows each policy: `by all` or `by some`. */
const shadows = (policies: Readonly<Record<string, PolicyShape>>): Record<string, string[]> => {
  const views = Object.entries(policies).map(([key, shape], at) =>
    (key.includes('/') ? projectPolicy : projectClusterPolicy)(policyObject(key, { at, ...shape })),
  );
  const found = shadowsOf(indexPolicies(views), ranges, namespaces);
  return Object.fromEntries([...found].map(([key, list]) => [key, list.map(({ by, extent }) => `${by} ${extent}`)]));
};

const app = (name: string, more: Record<string, string> = {}) => ({
  podSelector: { matchLabels: { app: name, ...more } },
});
const subnet = (...podSubnet: string[]) => ({ podSubnet });

describe('shadowsOf', () => {
  const cases: readonly [string, Readonly<Record<string, PolicyShape>>, Record<string, string[]>][] = [
    [
      'the same pods, every destination',
      { 'red/a': { appliedTo: app('x') }, 'red/b': { appliedTo: app('x') } },
      { 'red/b': ['red/a all'] },
    ],
    [
      'the lower priority number wins',
      { 'red/a': { appliedTo: app('x'), priority: 2 }, 'red/b': { appliedTo: app('x') } },
      { 'red/a': ['red/b all'] },
    ],
    ['other pods', { 'red/a': { appliedTo: app('x') }, 'red/b': { appliedTo: app('y') } }, {}],
    ['another namespace', { 'red/a': { appliedTo: app('x') }, 'blue/b': { appliedTo: app('x') } }, {}],
    [
      'a wider selector first',
      { 'red/a': { appliedTo: app('x') }, 'red/b': { appliedTo: app('x', { tier: 'web' }) } },
      { 'red/b': ['red/a all'] },
    ],
    [
      'an exception first is on purpose',
      { 'red/a': { appliedTo: app('x', { tier: 'web' }) }, 'red/b': { appliedTo: app('x') } },
      {},
    ],
    [
      'some destinations',
      { 'red/a': { appliedTo: app('x'), destSubnet: ['1.1.1.0/24'] }, 'red/b': { appliedTo: app('x') } },
      { 'red/b': ['red/a some'] },
    ],
    [
      'all destinations',
      { 'red/a': { appliedTo: app('x') }, 'red/b': { appliedTo: app('x'), destSubnet: ['1.1.1.0/24'] } },
      { 'red/b': ['red/a all'] },
    ],
    [
      'disjoint destinations',
      {
        'red/a': { appliedTo: app('x'), destSubnet: ['1.1.1.0/24'] },
        'red/b': { appliedTo: app('x'), destSubnet: ['1.1.2.0/24'] },
      },
      {},
    ],
    [
      'everything outside does not hold a pod range',
      { 'red/a': { appliedTo: app('x') }, 'red/b': { appliedTo: app('x'), destSubnet: ['10.244.0.0/24'] } },
      {},
    ],
    [
      'exceptions leave something',
      {
        'red/a': { appliedTo: app('x'), exceptSubnet: ['1.1.1.1'] },
        'red/b': { appliedTo: app('x'), destSubnet: ['1.1.1.0/24'] },
      },
      { 'red/b': ['red/a some'] },
    ],
    [
      'a cluster policy with a lower number',
      { 'red/a': { appliedTo: app('x'), priority: 1 }, c: { appliedTo: app('x') } },
      { 'red/a': ['c all'] },
    ],
    [
      'a cluster policy for selected namespaces',
      {
        'red/a': { appliedTo: app('x'), priority: 1 },
        c: { appliedTo: { namespaceSelector: { matchLabels: { team: 'x' } } } },
      },
      { 'red/a': ['c all'] },
    ],
    [
      'a cluster policy for other namespaces',
      {
        'red/a': { appliedTo: app('x'), priority: 1 },
        c: { appliedTo: { namespaceSelector: { matchLabels: { team: 'y' } } } },
      },
      {},
    ],
    [
      'a namespaced policy is never about all pods of a cluster policy',
      { 'red/a': { appliedTo: app('x') }, c: { appliedTo: app('x') } },
      {},
    ],
    [
      'addresses inside addresses',
      { 'red/a': { appliedTo: subnet('10.244.0.0/24') }, 'red/b': { appliedTo: subnet('10.244.0.7') } },
      { 'red/b': ['red/a all'] },
    ],
    [
      'addresses in part',
      { 'red/a': { appliedTo: subnet('10.244.0.0/24') }, 'red/b': { appliedTo: subnet('10.244.0.0/23') } },
      { 'red/b': ['red/a some'] },
    ],
    [
      'addresses under a policy for every pod',
      { 'red/b': { appliedTo: subnet('10.244.0.0/23'), priority: 1 }, c: { appliedTo: { podSelector: {} } } },
      { 'red/b': ['c all'] },
    ],
    [
      'addresses and labels cannot be compared',
      { 'red/a': { appliedTo: subnet('10.244.0.0/24') }, 'red/b': { appliedTo: app('x') } },
      {},
    ],
  ];
  for (const [name, policies, expected] of cases) {
    it(name, () => assert.deepEqual(shadows(policies), expected));
  }

  it('stops at the first policy that takes everything, and shows at most three', () => {
    const policies = Object.fromEntries(
      Array.from({ length: 6 }, (_, index) => [
        `red/p${index}`,
        { appliedTo: app('x'), destSubnet: [`1.1.${index}.0/24`] },
      ]),
    );
    assert.deepEqual(shadows({ ...policies, 'red/z': { appliedTo: app('x') } })['red/z'], [
      'red/p0 some',
      'red/p1 some',
      'red/p2 some',
    ]);
  });
});

describe('createShadows', () => {
  const keys = ['red/a', 'red/b', 'red/c', 'blue/a', 'blue/b', 'a', 'b', 'c'] as const;
  const shape = fc.record({
    at: fc.nat({ max: 3 }),
    priority: fc.nat({ max: 2 }),
    isDeleting: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    appliedTo: fc.constantFrom<object>(
      app('shop'),
      app('shop', { tier: 'web' }),
      app('web'),
      { podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
      { podSelector: {} },
      subnet('10.244.1.0/24'),
      subnet('10.244.0.0/16'),
      { podSelector: { matchLabels: { 'not a key': 'x' } } },
    ),
    destSubnet: fc.constantFrom([], ['198.51.100.0/24'], ['198.51.100.7']),
  });
  /** Undefined: the policy goes. */
  const event = fc.tuple(fc.constantFrom(...keys), fc.option(shape, { nil: undefined, freq: 4 }));

  it('finds after any history what a look at everything finds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(event, { minLength: 1, maxLength: 3 }), { maxLength: 25, size: 'max' }),
        (history) => {
          const shadowsFor = createIncrementalShadows();
          const policies = new Map<string, PolicyView>();
          for (const [index, events] of history.entries()) {
            for (const [key, wanted] of events) {
              if (wanted === undefined) policies.delete(key);
              else
                policies.set(
                  key,
                  (key.includes('/') ? projectPolicy : projectClusterPolicy)(policyObject(key, wanted)),
                );
            }
            // A namespace now and then changes its labels, and a binding that is written makes new views.
            const known = index % 7 < 5 ? namespaces : [{ name: 'red', labels: {} }];
            const views = [...policies.values()]
              .map((view) => (index % 3 === 0 ? { ...view } : view))
              .toSorted(compareAge);
            const fresh = shadowsOf(indexPolicies(views), ranges, known);
            const { on } = shadowsFor(views, ranges, known);
            const found = keys.map((key) => [key, on(policyKey(undefined, key))]);
            assert.deepEqual(
              found,
              keys.map((key) => [key, fresh.get(policyKey(undefined, key)) ?? []]),
            );
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
