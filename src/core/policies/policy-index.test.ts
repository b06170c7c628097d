import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PodView, PolicyView } from '../cluster/view.ts';
import { projectClusterPolicy, projectPod, projectPolicy } from '../project/index.ts';
import { type PolicyShape, policyObject } from '../testing/objects.ts';
import { appliesTo, createPolicyIndexer, indexPolicies, policiesOfPod } from './policy-index.ts';
import { comparePrecedence } from './precedence.ts';

const policyOf = (key: string, appliedTo: object, shape: PolicyShape = {}): PolicyView =>
  (key.includes('/') ? projectPolicy : projectClusterPolicy)(policyObject(key, { ...shape, appliedTo }));

const podOf = (
  over: {
    labels?: Record<string, string>;
    ips?: string[];
    hostNetwork?: boolean;
    phase?: string;
    namespace?: string;
  } = {},
): PodView =>
  projectPod({
    metadata: { name: 'pod', namespace: over.namespace ?? 'red', labels: over.labels ?? { app: 'shop' } },
    spec: { nodeName: 'a', hostNetwork: over.hostNetwork ?? false },
    status: { phase: over.phase ?? 'Running', podIPs: (over.ips ?? ['10.244.1.7', 'fd44::7']).map((ip) => ({ ip })) },
  });

describe('appliesTo', () => {
  const shop = { podSelector: { matchLabels: { app: 'shop' } } };
  const cases: readonly [string, PolicyView, PodView, Record<string, string>, boolean][] = [
    ['a pod with the labels', policyOf('red/p', shop), podOf(), {}, true],
    ['not a pod of another namespace', policyOf('red/p', shop), podOf({ namespace: 'blue' }), {}, false],
    [
      'not a host-network pod: its address is the node',
      policyOf('red/p', shop),
      podOf({ hostNetwork: true }),
      {},
      false,
    ],
    [
      'not a pod that succeeded: its address may be reused',
      policyOf('red/p', shop),
      podOf({ phase: 'Succeeded' }),
      {},
      false,
    ],
    ['not a pod that failed', policyOf('red/p', shop), podOf({ phase: 'Failed' }), {}, false],
    ['not a pod without an address', policyOf('red/p', shop), podOf({ ips: [] }), {}, false],
    ['an address of podSubnet', policyOf('red/p', { podSubnet: ['10.244.1.0/24'] }), podOf(), {}, true],
    [
      'a range of podSubnet, by the other family',
      policyOf('red/p', { podSubnet: ['fd44::1-fd44::9'] }),
      podOf(),
      {},
      true,
    ],
    ['not an address outside podSubnet', policyOf('red/p', { podSubnet: ['10.244.2.0/24'] }), podOf(), {}, false],
    ['podSubnet only in its own namespace', policyOf('blue/p', { podSubnet: ['10.244.1.0/24'] }), podOf(), {}, false],
    ['every pod, for a cluster policy with an empty selector', policyOf('c', { podSelector: {} }), podOf(), {}, true],
    [
      'pods of selected namespaces',
      policyOf('c', { namespaceSelector: { matchLabels: { team: 'x' } } }),
      podOf(),
      { team: 'x' },
      true,
    ],
    [
      'not pods of other namespaces',
      policyOf('c', { namespaceSelector: { matchLabels: { team: 'x' } } }),
      podOf(),
      {},
      false,
    ],
    [
      'nothing, when the selector cannot be read',
      policyOf('red/p', { podSelector: { matchLabels: { 'no key': 'x' } } }),
      podOf(),
      {},
      false,
    ],
  ];
  for (const [name, policy, pod, namespaceLabels, expected] of cases) {
    it(name, () => assert.equal(appliesTo(policy, pod, namespaceLabels), expected));
  }
});

describe('policiesOfPod', () => {
  const requirement = fc.oneof(
    fc.record({
      key: fc.constantFrom('a', 'b'),
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.constantFrom(['1'], ['1', '2']),
    }),
    fc.record({ key: fc.constantFrom('a', 'b'), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  );
  const appliedTo = fc.oneof(
    fc
      .array(requirement, { minLength: 1, maxLength: 2 })
      .map((matchExpressions) => ({ podSelector: { matchExpressions } })),
    fc.constantFrom({ podSubnet: ['10.244.1.0/25'] }, { podSubnet: ['10.244.1.128/25'] }),
  );
  const policies = fc
    .array(fc.record({ appliedTo, scope: fc.constantFrom('red/', 'blue/', ''), priority: fc.nat(2) }), {
      maxLength: 12,
    })
    .map((list) =>
      list.map((one, index) =>
        policyOf(`${one.scope}p${index}`, one.appliedTo, { priority: one.priority, at: index % 3 }),
      ),
    );
  const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2', '3'), { maxKeys: 2 });

  it('finds exactly the policies that apply, in order of precedence', () => {
    fc.assert(
      fc.property(policies, labels, fc.integer({ min: 1, max: 254 }), (list, on, last) => {
        const pod = podOf({ labels: on, ips: [`10.244.1.${last}`] });
        const expected = list.filter((policy) => appliesTo(policy, pod, {})).toSorted(comparePrecedence);
        assert.deepEqual(policiesOfPod(indexPolicies(list), pod, {}), expected);
      }),
      { numRuns: 300 },
    );
  });

  it('finds the same with what was filed before, whatever comes and goes', () => {
    const steps = fc.array(fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(policies, labels, steps, (list, on, kept) => {
        const index = createPolicyIndexer();
        const pod = podOf({ labels: on });
        for (const isIn of kept) {
          const some = list.filter((_, place) => isIn[place]);
          const [found, fresh] = [index(some), indexPolicies(some)];
          assert.deepEqual(found.ranked, fresh.ranked);
          assert.deepEqual(policiesOfPod(found, pod, {}), policiesOfPod(fresh, pod, {}));
          assert.equal(index(some.toReversed()), found, 'the same policies have the same index');
        }
      }),
      { numRuns: 200 },
    );
  });

  it('leaves out policies that are being deleted', () => {
    const going = policyOf('red/p', { podSelector: { matchLabels: { app: 'shop' } } }, { isDeleting: true });
    assert.deepEqual(policiesOfPod(indexPolicies([going]), podOf(), {}), []);
  });
});
