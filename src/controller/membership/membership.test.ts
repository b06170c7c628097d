import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { NamespaceView, PodView, PolicyKey, PolicyView } from '../../core/cluster/view.ts';
import { projectClusterPolicy, projectPod, projectPolicy } from '../../core/project/index.ts';
import { endpointsOf } from '../../core/slices/endpoints.ts';
import { policyObject } from '../../core/testing/objects.ts';
import { Membership } from './membership.ts';

interface PodShape {
  readonly labels?: Record<string, string>;
  readonly ip?: string;
  readonly node?: string;
  readonly isHostNetwork?: boolean;
  readonly phase?: string;
}

const podOf = (key: string, shape: PodShape = {}): PodView => {
  const [namespace = '', name = ''] = key.split('/');
  return projectPod({
    metadata: { namespace, name, labels: shape.labels ?? { app: 'shop' } },
    spec: { nodeName: shape.node ?? 'a', hostNetwork: shape.isHostNetwork ?? false },
    status: { phase: shape.phase ?? 'Running', podIP: shape.ip ?? '10.244.0.1' },
  });
};

const policyOf = (key: string, appliedTo: object, uid = 'first'): PolicyView => {
  const object = policyObject(key, { appliedTo, uid });
  return key.includes('/') ? projectPolicy(object) : projectClusterPolicy(object);
};

const shop = { podSelector: { matchLabels: { app: 'shop' } } };
const podsOf = (membership: Membership, { key }: PolicyView): string[] =>
  membership.endpoints(key).map(({ ns, pod }) => `${ns}/${pod}`);

describe('Membership', () => {
  it('tells which policies have other endpoints after a change of a pod', () => {
    const membership = new Membership();
    const policy = policyOf('red/shop', shop);
    const other = policyOf('red/other', { podSelector: { matchLabels: { app: 'other' } } });
    for (const each of [policy, other]) membership.setPolicy(each.key, each);
    assert.deepEqual(membership.setPod('red/p1', podOf('red/p1')), [policy.key]);
    assert.deepEqual(membership.setPod('red/p1', podOf('red/p1')), [], 'the same again is no change');
    assert.deepEqual(membership.setPod('red/p1', podOf('red/p1', { ip: '10.244.0.2' })), [policy.key]);
    assert.deepEqual(
      membership.setPod('red/p1', podOf('red/p1', { labels: { app: 'other' } })).toSorted(),
      [other.key, policy.key],
      'a pod that moves from one policy to the other changes both',
    );
    assert.deepEqual([podsOf(membership, policy), podsOf(membership, other)], [[], ['red/p1']]);
    assert.deepEqual(membership.setPod('red/p1', undefined), [other.key]);
    assert.equal(membership.count(other.key), 0);
  });

  it('leaves out pods that policies cannot be about', () => {
    const membership = new Membership();
    const policy = policyOf('red/shop', shop);
    membership.setPolicy(policy.key, policy);
    for (const shape of [{ isHostNetwork: true }, { phase: 'Succeeded' }, { phase: 'Failed' }, { ip: '' }]) {
      assert.deepEqual(membership.setPod('red/p1', podOf('red/p1', shape)), [], JSON.stringify(shape));
    }
    membership.setPod('red/p1', podOf('red/p1'));
    assert.deepEqual(
      membership.setPod('red/p1', podOf('red/p1', { phase: 'Failed' })),
      [policy.key],
      'a pod that ends',
    );
    assert.deepEqual(podsOf(membership, policy), []);
  });

  it('never mixes up the same labels in two namespaces', () => {
    const membership = new Membership();
    const [red, blue] = [policyOf('red/shop', shop), policyOf('blue/shop', shop)];
    for (const key of ['red/p', 'blue/p']) membership.setPod(key, podOf(key));
    for (const each of [red, blue]) membership.setPolicy(each.key, each);
    assert.deepEqual([podsOf(membership, red), podsOf(membership, blue)], [['red/p'], ['blue/p']]);
  });

  it('follows the labels of namespaces', () => {
    const membership = new Membership();
    const policy = policyOf('shop', { ...shop, namespaceSelector: { matchLabels: { team: 'a' } } });
    membership.setPolicy(policy.key, policy);
    membership.setPod('red/p', podOf('red/p'));
    assert.deepEqual(podsOf(membership, policy), []);
    assert.deepEqual(membership.setNamespace('red', { team: 'a' }), [policy.key]);
    assert.deepEqual(podsOf(membership, policy), ['red/p']);
    assert.deepEqual(membership.setNamespace('red', { team: 'a' }), []);
    assert.deepEqual(membership.setNamespace('red', { team: 'b' }), [policy.key]);
    assert.deepEqual(podsOf(membership, policy), []);
  });

  it('knows pods by address', () => {
    const membership = new Membership();
    const policy = policyOf('red/subnet', { podSubnet: ['10.244.0.0-10.244.0.9'] });
    membership.setPolicy(policy.key, policy);
    assert.deepEqual(membership.setPod('red/p', podOf('red/p', { ip: '10.244.0.10' })), []);
    assert.deepEqual(membership.setPod('red/p', podOf('red/p', { ip: '10.244.0.9' })), [policy.key]);
  });

  it('does not look again at a policy of which only the status has changed', () => {
    const membership = new Membership();
    const policy = policyOf('red/shop', shop);
    assert.deepEqual(membership.setPolicy(policy.key, policy), [policy.key]);
    assert.deepEqual(membership.setPolicy(policy.key, { ...policy, recorded: { ...policy.recorded, slot: 7 } }), []);
    assert.equal(membership.policy(policy.key)?.recorded.slot, 7);
    assert.deepEqual(membership.setPolicy(policy.key, policyOf('red/shop', shop, 'second')), [policy.key], 'a new uid');
    assert.deepEqual(membership.setPolicy(policy.key, undefined), [policy.key]);
    assert.deepEqual(membership.setPolicy(policy.key, undefined), [], 'gone twice');
  });

  it('has no endpoints for a policy that is being deleted', () => {
    const membership = new Membership();
    const policy = policyOf('red/shop', shop);
    membership.setPod('red/p', podOf('red/p'));
    membership.setPolicy(policy.key, policy);
    assert.deepEqual(membership.setPolicy(policy.key, { ...policy, isDeleting: true }), [policy.key]);
    assert.deepEqual(podsOf(membership, policy), []);
  });

  // Few names and labels, so that events hit each other.
  const name = fc.constantFrom('p1', 'p2', 'p3');
  const namespace = fc.constantFrom('red', 'blue');
  const labelled = fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('x', 'y'), { maxKeys: 2 });
  const selector = fc.oneof(
    fc.constant({}),
    labelled.map((matchLabels) => ({ matchLabels })),
    fc
      .record({
        key: fc.constantFrom('app', 'tier'),
        operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
      })
      .map(({ key, operator }) => ({
        matchExpressions: [{ key, operator, values: operator.endsWith('In') ? ['x', 'y'] : [] }],
      })),
  );
  const podShape = fc.record({
    labels: labelled,
    // Most pods can be under a policy, so that changes of such pods meet.
    ip: fc.constantFrom('10.244.0.1', '10.244.0.2', '10.244.9.1', ''),
    node: fc.constantFrom('a', 'b'),
    isHostNetwork: fc.constantFrom(false, false, false, true),
    phase: fc.constantFrom('Running', 'Running', 'Running', 'Succeeded'),
  });
  const chosen = fc.oneof(
    selector.map((podSelector) => ({ podSelector })),
    fc.constant({ podSubnet: ['10.244.0.0/24'] }),
  );
  const event = fc.oneof(
    fc.record({ kind: fc.constant('pod' as const), namespace, name, shape: fc.option(podShape) }),
    fc.record({ kind: fc.constant('namespace' as const), namespace, labels: fc.option(labelled) }),
    fc.record({ kind: fc.constant('policy' as const), namespace, name, chosen: fc.option(chosen) }),
    fc.record({
      kind: fc.constant('cluster policy' as const),
      name,
      chosen: fc.option(chosen),
      namespaceSelector: selector,
    }),
  );

  it('agrees with asking every policy about every pod, and names every policy whose endpoints changed', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const membership = new Membership();
        const pods = new Map<string, PodView>();
        const namespaces = new Map<string, NamespaceView>();
        const policies = new Map<PolicyKey, PolicyView>();
        const setPolicy = (policy: PolicyView, isThere: boolean): PolicyKey[] => {
          if (isThere) policies.set(policy.key, policy);
          else policies.delete(policy.key);
          return membership.setPolicy(policy.key, isThere ? policy : undefined);
        };
        const apply = (one: (typeof events)[number]): PolicyKey[] => {
          switch (one.kind) {
            case 'pod': {
              const key = `${one.namespace}/${one.name}`;
              const pod = one.shape === null ? undefined : podOf(key, one.shape);
              if (pod === undefined) pods.delete(key);
              else pods.set(key, pod);
              return membership.setPod(key, pod);
            }
            case 'namespace':
              if (one.labels === null) namespaces.delete(one.namespace);
              else namespaces.set(one.namespace, { name: one.namespace, labels: one.labels });
              return membership.setNamespace(one.namespace, one.labels ?? undefined);
            case 'policy':
              return setPolicy(policyOf(`${one.namespace}/${one.name}`, one.chosen ?? {}), one.chosen !== null);
            case 'cluster policy': {
              const appliedTo = { ...one.chosen, namespaceSelector: one.namespaceSelector };
              return setPolicy(policyOf(one.name, appliedTo), one.chosen !== null);
            }
          }
        };
        const listed = () =>
          new Map([...policies.values()].map((policy) => [policy.key, endpointsOf(policy, pods.values(), namespaces)]));
        let before = listed();
        for (const one of events) {
          const changed = new Set(apply(one));
          const after = listed();
          for (const [key, endpoints] of after) {
            assert.deepEqual(membership.endpoints(key), endpoints, key);
            assert.equal(membership.count(key), endpoints.length);
            assert.deepEqual(membership.nodes(key), [...new Set(endpoints.map(({ node }) => node))].toSorted());
            if (JSON.stringify(before.get(key)) !== JSON.stringify(endpoints)) assert.ok(changed.has(key), key);
          }
          before = after;
        }
      }),
      { numRuns: 300 },
    );
  });
});
