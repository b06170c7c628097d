import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PolicyView } from '../../core/cluster/view.ts';
import { indexPolicies } from '../../core/policies/policy-index.ts';
import { shadowsOf } from '../../core/policies/shadows.ts';
import { projectClusterPolicy, projectPolicy } from '../../core/project/index.ts';
import { ip } from '../../core/testing/address.ts';
import { PolicyRegister } from './policy-register.ts';
import { configOf, policy, usualCluster, viewOf } from './testing/cluster.ts';

const addresses = ['10.6.1.1', '10.6.1.2', 'fd00:6::1'].map(ip);

/** Few names and labels, so that policies meet. */
const anyPolicy = fc
  .record({
    key: fc.constantFrom('shop/a', 'shop/b', 'shop/c', 'team/a', 'a', 'b', 'c'),
    gateway: fc.constantFrom('', 'edge', 'team'),
    given: fc.constantFrom('', '10.6.1.1', '10.6.1.2'),
    eip: fc.constantFrom(undefined, { ipv4: '10.6.1.1' }, { ipv4: '10.6.1.2', ipv6: 'fd00:6::1' }),
    priority: fc.integer({ min: 0, max: 2 }),
    appliedTo: fc.constantFrom<object>(
      { podSelector: { matchLabels: { app: 'web' } } },
      { podSelector: { matchLabels: { app: 'web', tier: 'front' } } },
      { podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
      { podSubnet: ['10.244.0.0/24'] },
      { podSubnet: ['10.244.0.0/16'] },
    ),
    destSubnet: fc.constantFrom<string[]>([], ['192.0.2.0/24'], ['192.0.2.0/25']),
  })
  .map(({ key, gateway, given, eip, ...spec }): PolicyView => {
    const manifest = policy(key, { ...spec, egressGatewayName: gateway, egressIP: { ipv4: given } }, { eip });
    return key.includes('/') ? projectPolicy(manifest) : projectClusterPolicy(manifest);
  });

type Step = { readonly put: PolicyView } | { readonly remove: PolicyView };
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: anyPolicy.map((put): Step => ({ put })) },
    { weight: 1, arbitrary: anyPolicy.map((remove): Step => ({ remove })) },
  ),
  { maxLength: 20 },
);

/** The register after the steps, and the policies that it should know. */
const follow = (taken: readonly Step[]) => {
  const register = new PolicyRegister();
  const known = new Map<string, PolicyView>();
  for (const step of taken) {
    if ('put' in step) {
      register.put(step.put);
      known.set(step.put.key, step.put);
    } else {
      register.remove(step.remove.key);
      known.delete(step.remove.key);
    }
  }
  return { register, known: [...known.values()] };
};

const keysOf = (policies: Iterable<PolicyView>): string[] => [...policies].map(({ key }) => key).toSorted();

test('whatever comes and goes, the answers are those of a walk over all policies', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const { register, known } = follow(taken);
      for (const gateway of ['', 'edge', 'team', 'none']) {
        const wanted = known.filter(({ spec }) => spec?.gatewayName === gateway);
        assert.deepEqual(keysOf(register.naming(gateway)), keysOf(wanted));
      }
      for (const ip of addresses) {
        const wanted = known.filter(({ spec, recorded }) => {
          const asked = spec?.address.kind === 'given' ? Object.values(spec.address.eip) : [];
          return [...Object.values(recorded.eip), ...asked].includes(ip);
        });
        assert.deepEqual(keysOf(register.holding(ip)), keysOf(wanted));
      }
    }),
  );
});

test('the rivals of a policy are enough to find what shadows it', () => {
  const { ranges } = viewOf(usualCluster, configOf('both'));
  const namespaces = ['shop', 'team'].map((name) => ({ name, labels: {} }));
  fc.assert(
    fc.property(steps, anyPolicy, (taken, subject) => {
      const { register, known } = follow([...taken, { put: subject }]);
      assert.ok(subject.spec);
      const rivals = register.rivalsOf(subject, subject.spec);
      const found = shadowsOf(indexPolicies([...rivals, subject]), ranges, namespaces).get(subject.key);
      assert.deepEqual(found, shadowsOf(indexPolicies(known), ranges, namespaces).get(subject.key));
    }),
    { numRuns: 500 },
  );
});
