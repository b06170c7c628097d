import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judgeOf } from './handlers.ts';
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

const ours = 'egressgateway.spidernet.io/egressgateway';

const patchOf = (object: Manifest, families: 'both' | 'ipv4' = 'both', others: readonly Manifest[] = []) => {
  const cluster = [...usualCluster.filter((one) => !others.some((other) => isSameObject(other, one))), ...others];
  const verdict = judgeOf('mutate')(requestFor(object, cluster), viewOf(cluster, configOf(families)));
  return verdict.kind === 'patch'
    ? Object.fromEntries(verdict.operations.map((step) => [step.path, step.op === 'remove' ? undefined : step.value]))
    : {};
};

const defaultsOf = (...args: Parameters<typeof patchOf>) => {
  const patch = patchOf(...args);
  return [patch['/spec/ippools/ipv4DefaultEIP'], patch['/spec/ippools/ipv6DefaultEIP']];
};

describe('the finalizer of a gateway', () => {
  test('is added to those of the user', () => {
    const object = gateway('new', {}, { finalizers: ['example.com/kept'] });
    assert.deepEqual(patchOf(object), { '/metadata/finalizers': ['example.com/kept', ours] });
  });

  test('is added where there are none, and not twice', () => {
    assert.deepEqual(patchOf(gateway('new', {})), { '/metadata/finalizers': [ours] });
    assert.deepEqual(patchOf(gateway('new', {}, { finalizers: [ours] })), {});
  });

  test('is not put back on a gateway that is being deleted', () => {
    assert.deepEqual(patchOf(gateway('edge', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })), {});
  });
});

describe('the default EIP', () => {
  const pools = { ipv4: ['10.7.0.5', '10.7.0.1-10.7.0.3'], ipv6: ['fd00:7::1-fd00:7::4'] };
  const fresh = gateway('new', { ippools: pools });

  test('is the first place of both pools', () => {
    assert.deepEqual(defaultsOf(fresh), ['10.7.0.1', 'fd00:7::1']);
  });

  test('is the first place that no policy has', () => {
    const holder = policy('shop/holder', { egressGatewayName: 'edge' }, { eip: { ipv6: 'fd00:7::1' } });
    const asker = policy('shop/asker', { egressGatewayName: 'edge', egressIP: { ipv4: '10.7.0.2' } });
    assert.deepEqual(defaultsOf(fresh, 'both', [holder, asker]), ['10.7.0.3', 'fd00:7::3']);
  });

  test('is shared when every place is taken', () => {
    const takers = [1, 2].map((n) =>
      policy(`shop/t${n}`, { egressGatewayName: 'edge' }, { eip: { ipv4: `10.8.0.${n}` } }),
    );
    const full = gateway('new', { ippools: { ipv4: ['10.8.0.1-10.8.0.2'] } });
    assert.deepEqual(defaultsOf(full, 'both', takers), ['10.8.0.1', undefined]);
  });

  test('is completed at the place of the half that is given', () => {
    const half = gateway('new', { ippools: { ...pools, ipv4DefaultEIP: '10.7.0.5' } });
    assert.deepEqual(defaultsOf(half), [undefined, 'fd00:7::4']);
    const other = gateway('new', { ippools: { ...pools, ipv6DefaultEIP: 'fd00:7::2' } });
    assert.deepEqual(defaultsOf(other), ['10.7.0.2', undefined]);
  });

  test('has no family that is turned off', () => {
    assert.deepEqual(defaultsOf(fresh, 'ipv4'), ['10.7.0.1', undefined]);
  });

  test('of a manifest that is applied again without it stays, though policies use it', () => {
    const { ipv4, ipv6 } = edgePools;
    assert.deepEqual(defaultsOf(gateway('edge', { ippools: { ipv4, ipv6 } })), ['10.6.1.1', 'fd00:6::1']);
  });

  test('of a manifest whose pool no longer holds it is chosen anew', () => {
    const moved = gateway('edge', { ippools: { ipv4: ['10.6.1.2-10.6.1.3'], ipv6: ['fd00:6::2-fd00:6::3'] } });
    assert.deepEqual(defaultsOf(moved), ['10.6.1.3', 'fd00:6::3']);
  });

  test('that is wrong is left for validation to refuse', () => {
    assert.deepEqual(defaultsOf(gateway('new', { ippools: { ipv4: ['10.7.0.1'], ipv4DefaultEIP: '10.9.9.9' } })), [
      undefined,
      undefined,
    ]);
    assert.deepEqual(defaultsOf(gateway('new', { ippools: { ipv4: ['seven'] } })), [undefined, undefined]);
  });

  test('of a /8 and a /64 is found at once', () => {
    const huge = gateway('new', { ippools: { ipv6: ['fd00:7::/64'] } });
    assert.deepEqual(defaultsOf(huge), [undefined, 'fd00:7::']);
    assert.deepEqual(defaultsOf(gateway('new', { ippools: { ipv4: ['11.0.0.0/8'] } })), ['11.0.0.1', undefined]);
  });
});

describe('the gateway of a policy that names none', () => {
  const named = (key: string, others: readonly Manifest[] = []) =>
    patchOf(policy(key, {}), 'both', others)['/spec/egressGatewayName'];

  test('is the cluster default', () => {
    assert.equal(named('shop/new'), 'edge');
    assert.equal(named('new'), 'edge');
  });

  test('is that of the namespace label before the cluster default', () => {
    const labelled: Manifest = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'team', labels: { 'spidernet.io/egressgateway-default': 'team' } },
    };
    assert.equal(named('team/new', [labelled]), 'team');
  });

  test('is left open where there is no default, where the label is wrong, and where the name is given', () => {
    assert.equal(named('shop/new', [gateway('edge', { ippools: edgePools })]), undefined);
    assert.equal(named('lost/new'), undefined);
    assert.deepEqual(patchOf(policy('shop/new', { egressGatewayName: 'bare' })), {});
  });

  test('is left open in a policy that cannot be read', () => {
    assert.deepEqual(patchOf({ ...policy('shop/new', {}), spec: 'all pods' }), {});
    assert.deepEqual(patchOf({ ...policy('shop/new', {}), spec: undefined }), {});
  });
});

test('nothing is left to fill in after it was filled in', () => {
  const filled: readonly Manifest[] = [
    gateway(
      'new',
      { ippools: { ipv4: ['10.7.0.1'], ipv6: ['fd00:7::1'], ipv4DefaultEIP: '10.7.0.1', ipv6DefaultEIP: 'fd00:7::1' } },
      { finalizers: [ours] },
    ),
    policy('shop/new', { egressGatewayName: 'edge' }),
  ];
  for (const object of filled) assert.deepEqual(patchOf(object), {});
});
