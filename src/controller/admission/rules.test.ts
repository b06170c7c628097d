import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gatewayDeletionRules, gatewayRules } from './gateway-rules.ts';
import { clusterInfoDeletionRules, sliceRules, statusRules, tunnelRules } from './guard-rules.ts';
import { judgeOf } from './handlers.ts';
import { policyRules } from './policy-rules.ts';
import type { Case } from './testing/case.ts';
import { cases } from './testing/cases.ts';
import {
  configOf,
  edgePools,
  gateway,
  isSameObject,
  type Manifest,
  policy,
  usualCluster,
  viewOf,
} from './testing/cluster.ts';
import { requestFor } from './testing/request.ts';

const ruleNames = [
  ...gatewayRules,
  ...gatewayDeletionRules,
  ...policyRules,
  ...clusterInfoDeletionRules,
  ...tunnelRules,
  ...statusRules,
  ...sliceRules,
].map(({ name }) => name);

const clusterWith = (others: readonly Manifest[] = []): readonly Manifest[] => [
  ...usualCluster.filter((manifest) => !others.some((other) => isSameObject(other, manifest))),
  ...others,
];

const verdictOn = (
  object: Manifest,
  { meanwhile, families = 'both', operation }: Pick<Case, 'meanwhile' | 'families' | 'operation'> = {},
) => {
  const cluster = clusterWith(meanwhile);
  const request = requestFor(object, cluster, operation);
  return judgeOf('validate')(request, viewOf(cluster, configOf(families)));
};

describe('every rule objects to what it is about', () => {
  for (const one of cases) {
    test(`${one.rule}: ${one.title}`, () => {
      const verdict = verdictOn(one.object, one);
      assert.deepEqual(
        verdict,
        one.reason === undefined
          ? { kind: 'allow', warnings: [one.message] }
          : { kind: 'deny', reason: one.reason, message: one.message, warnings: [] },
      );
    });
  }

  test('no rule is without a case', () => {
    assert.deepEqual(
      ruleNames.filter((name) => !cases.some(({ rule }) => rule === name)),
      [],
    );
  });
});

describe('nobody objects to', () => {
  const sameAs = (name: string): Manifest =>
    usualCluster.find(({ kind, metadata }) => kind === 'EgressGateway' && metadata.name === name) ?? assert.fail(name);
  const good: readonly (readonly [string, Manifest])[] = [
    [
      'a gateway with a pool of each family',
      gateway('new', { ippools: { ipv4: ['10.7.0.0/30'], ipv6: ['fd00:7::1-fd00:7::2'] } }),
    ],
    ['a gateway without pools', gateway('new', {})],
    ['a /8', gateway('new', { ippools: { ipv4: ['11.0.0.0/8'] } })],
    ['the cluster default itself', sameAs('edge')],
    [
      'a pool that grows',
      gateway('edge', {
        clusterDefault: true,
        ippools: { ...edgePools, ipv4: ['10.6.1.1-10.6.1.5'], ipv6: ['fd00:6::1-fd00:6::5'] },
      }),
    ],
    [
      'free addresses that leave the pool',
      gateway('edge', {
        clusterDefault: true,
        ippools: { ...edgePools, ipv4: ['10.6.1.1-10.6.1.2'], ipv6: ['fd00:6::1-fd00:6::2'] },
      }),
    ],
    ['a policy of the default gateway', policy('shop/new', {})],
    ['a policy with an EIP in use', policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv4: '10.6.1.2' } })],
    [
      'a policy with a whole pair',
      policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv4: '10.6.1.2', ipv6: 'fd00:6::2' } }),
    ],
    [
      'a policy with two free halves',
      policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv4: '10.6.1.3', ipv6: 'fd00:6::4' } }),
    ],
    [
      'the node IP of a gateway without pools',
      policy('shop/new', { egressGatewayName: 'bare', egressIP: { useNodeIP: true } }),
    ],
    ['a namespace that is allowed', policy('team/new', { egressGatewayName: 'team' })],
    ['a cluster policy, which allowedNamespaces does not bind', policy('new', { egressGatewayName: 'team' })],
    ['rebinding to another gateway', policy('batch', { egressGatewayName: 'team' })],
    ['a policy that is its own rival', policy('shop/web', { egressGatewayName: 'edge', priority: 3 })],
    [
      'destinations inside the cluster that are excepted',
      policy('shop/new', {
        egressGatewayName: 'edge',
        destSubnet: ['10.0.0.0/8'],
        exceptSubnet: ['10.96.0.0/16', '10.244.0.0/16'],
      }),
    ],
  ];
  for (const [title, object] of good) {
    test(title, () => assert.deepEqual(verdictOn(object), { kind: 'allow', warnings: [] }));
  }

  test('the deletion of a gateway whose policies are all being deleted', () => {
    const leaving = usualCluster
      .filter(({ kind }) => kind.endsWith('Policy'))
      .map((manifest) => ({
        ...manifest,
        metadata: { ...manifest.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      }));
    const verdict = verdictOn(sameAs('edge'), { meanwhile: leaving, operation: 'delete' });
    assert.deepEqual(verdict, { kind: 'allow', warnings: [] });
  });
});

describe('an update is refused only for what it changes', () => {
  const nodeInPool: Manifest = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n2', labels: { egress: 'true' } },
    status: { addresses: [{ type: 'InternalIP', address: '10.6.1.4' }] },
  };

  test('a node that got an address of the pool is a warning as long as the pools stay as they are', () => {
    const verdict = verdictOn(gateway('edge', { clusterDefault: true, ippools: edgePools, eipLimit: 9 }), {
      meanwhile: [nodeInPool],
    });
    assert.deepEqual(verdict, {
      kind: 'allow',
      warnings: [
        'spec.ippools: 10.6.1.4 belongs to the nodes of the cluster. Use addresses that nothing in the cluster has.',
      ],
    });
  });

  test('and a refusal when they change', () => {
    const wider = { ...edgePools, ipv4: ['10.6.1.1-10.6.1.5'], ipv6: ['fd00:6::1-fd00:6::5'] };
    const verdict = verdictOn(gateway('edge', { clusterDefault: true, ippools: wider }), { meanwhile: [nodeInPool] });
    assert.equal(verdict.kind === 'deny' && verdict.reason, 'PoolOverlapsCluster');
  });

  test('a policy whose gateway is gone can get another priority', () => {
    const lost = policy('shop/lost', { egressGatewayName: 'gone' });
    const verdict = verdictOn(policy('shop/lost', { egressGatewayName: 'gone', priority: 7 }), { meanwhile: [lost] });
    assert.equal(verdict.kind, 'allow');
    assert.match(verdict.warnings?.[0] ?? '', /names the gateway gone, which does not exist/);
  });

  test('finalizers of an object that is being deleted can be taken off, whatever its spec says', () => {
    const leaving = gateway(
      'edge',
      { ippools: { ipv4: ['172.18.0.3'] } },
      { deletionTimestamp: '2026-01-01T00:00:00Z' },
    );
    assert.deepEqual(verdictOn(leaving), { kind: 'allow' });
  });
});

test('whoever deletes a gateway is told of a policy that uses it through the default only', () => {
  const users = usualCluster.filter(({ kind }) => kind.endsWith('Policy'));
  const cluster = [...usualCluster.filter((manifest) => !users.includes(manifest)), policy('shop/plain', {})];
  const request = requestFor(gateway('edge', {}), cluster, 'delete');
  const verdict = judgeOf('validate')(request, viewOf(cluster, configOf('both')));
  assert.match(
    verdict.kind === 'allow' ? (verdict.warnings ?? []).join() : '',
    /serves EgressPolicy shop\/plain until/,
  );
});

test('the reference page has every rule with its effect and its message', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/reference/admission.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (refused: `(\w+)`|warning) \| (.+) \|$/gm)].map(
    ([, rule, , reason, message]) => ({ rule, reason, message }),
  );
  const wanted = ruleNames.map((name) => {
    const one = cases.find(({ rule }) => rule === name) ?? assert.fail(name);
    return { rule: name, reason: one.reason, message: one.message };
  });
  assert.deepEqual(rows, wanted);
});
