/**
 * Gateways on a real API server, with a real controller process. The names of cases (G00006, ...) are those of the list
 * that users of spidernet-io/egressgateway know.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { bindingOf, conditionOf, World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

let world: World;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  await world.controller('--config', world.config({ enableIPv6: true }));
});
after(async () => {
  await world?.stop();
});

const usageOf = async (gateway: string) => (await world.get('EgressGateway', gateway))?.status?.ipUsage;
const nodeNamesOf = async (gateway: string) =>
  (await world.get('EgressGateway', gateway))?.status?.nodeList?.map(({ name }) => name) ?? [];
const eventuallyUsage = (gateway: string, ipv4Total: number, ipv4Free: number) =>
  eventually(`${gateway} has ${ipv4Free} of ${ipv4Total} addresses free`, async () => {
    const usage = await usageOf(gateway);
    return usage?.ipv4Total === ipv4Total && usage.ipv4Free === ipv4Free;
  });

/** Waits until the controller has looked at a policy, and returns why it is accepted or not. */
const reasonAccepted = async (key: string): Promise<string> => {
  let reason: string | undefined;
  await eventually(`${key} is looked at`, async () => {
    reason = conditionOf(await world.policyStatus(key), 'Accepted')?.reason;
    return reason !== undefined;
  });
  return reason ?? '';
};

test('G00006, G00007, G00008: single addresses, a range and a CIDR make a pool', async () => {
  await world.gateway('forms', { ipv4: ['10.6.0.1', '10.6.0.2', '10.6.0.10-10.6.0.19', '10.6.0.64/28'] });
  // A CIDR lends all but its first and its last address.
  await eventuallyUsage('forms', 26, 26);
});

test('the use of the pools is shown even when no node matches', async () => {
  await world.gateway('nobody', { ipv4: ['10.6.2.1-10.6.2.9'], labels: { pool: 'nobody' } });
  await world.policy('default/nobody', { gateway: 'nobody', allocator: 'rr' });
  await eventuallyUsage('nobody', 9, 8);
  const gateway = await world.get('EgressGateway', 'nobody');
  assert.equal(conditionOf(gateway?.status, 'Ready')?.reason, 'NoMatchingNode');
  // The policy is written when our finalizer holds the gateway, so it may come after the use of the pool.
  const reason = async (type: string) => conditionOf(await world.policyStatus('default/nobody'), type)?.reason;
  await eventually('the policy to have a status', async () => (await reason('Allocated')) !== undefined);
  assert.equal(await reason('Allocated'), 'NoMatchingNode');
  assert.equal(await reason('Programmed'), 'TrafficDropped');
});

test('a /8 and a /64 are pools like any other', async () => {
  await world.gatewayNodes('wide', 1, { pool: 'wide' });
  await world.gateway('wide', { ipv4: ['11.0.0.0/8'], labels: { pool: 'wide' } });
  await world.gateway('wide6', { ipv6: ['fd66:1::/64'], labels: { pool: 'wide' } });
  await world.policy('default/wide', { gateway: 'wide', allocator: 'rr' });
  const statuses = await world.allocated(['default/wide']);
  assert.match(statuses.get('default/wide')?.eip?.ipv4 ?? '', /^11\./);
  await eventuallyUsage('wide', 2 ** 24 - 2, 2 ** 24 - 3);
  await eventually('the /64 is counted', async () => (await usageOf('wide6'))?.ipv6Total === Number.MAX_SAFE_INTEGER);
  await world.policy('default/wide6', { gateway: 'wide6', allocator: 'rr' });
  const status = (await world.allocated(['default/wide6'])).get('default/wide6');
  assert.match(status?.eip?.ipv6 ?? '', /^fd66:1::/);
});

test('G00012: pools of both families give pairs, and grow together', async () => {
  await world.gatewayNodes('dual', 1, { pool: 'dual' });
  const pools = (last: number) => ({ ipv4: [`10.6.9.1-10.6.9.${last}`], ipv6: [`fd66:2::1-fd66:2::${last}`] });
  await world.gateway('dual', { ...pools(2), labels: { pool: 'dual' } });
  const keys = ['default/dual-1', 'default/dual-2', 'default/dual-3'];
  for (const key of keys.slice(0, 2)) await world.policy(key, { gateway: 'dual', allocator: 'rr' });
  const before = await world.allocated(keys.slice(0, 2));
  await world.gateway('dual', { ...pools(3), labels: { pool: 'dual' } });
  await eventuallyUsage('dual', 3, 1);
  await world.policy('default/dual-3', { gateway: 'dual', allocator: 'rr' });
  const after = await world.allocated(keys);
  for (const [key, status] of before) assert.deepEqual(bindingOf(after.get(key)), bindingOf(status));
  const pairs = keys.map((key) => after.get(key)?.eip);
  assert.equal(new Set(pairs.map((pair) => pair?.ipv4)).size, 3);
  assert.equal(new Set(pairs.map((pair) => pair?.ipv6)).size, 3);
});

test('a gateway with IPv6 only gives its policies an IPv6 EIP and no IPv4 one', async () => {
  await world.gatewayNodes('six', 1, { pool: 'six' });
  await world.gateway('six', { ipv6: ['fd06:6::1-fd06:6::9'], labels: { pool: 'six' } });
  await world.policy('default/six', { gateway: 'six', allocator: 'rr' });
  const status = (await world.allocated(['default/six'])).get('default/six');
  assert.match(status?.eip?.ipv6 ?? '', /^fd06:6::[1-9]$/);
  assert.equal(status?.eip?.ipv4, undefined);
});

test('G00013: an address that is added to a pool is free at once', async () => {
  await world.gateway('grows', { ipv4: ['10.6.3.1'] });
  await eventuallyUsage('grows', 1, 1);
  await world.gateway('grows', { ipv4: ['10.6.3.1', '10.6.3.2'] });
  await eventuallyUsage('grows', 2, 2);
});

test('G00009, G00011: an edit that adds no address, or more of one family than of the other, is refused', async () => {
  const ipv4 = ['10.6.8.1'];
  const ipv6 = ['fd06:8::1'];
  await world.gateway('edited', { ipv4, ipv6 });
  await eventuallyUsage('edited', 1, 1);
  await assert.rejects(world.gateway('edited', { ipv4: [...ipv4, '10.6.8.256'], ipv6 }), /10\.6\.8\.256/);
  await assert.rejects(world.gateway('edited', { ipv4: [...ipv4, '10.6.8.2'], ipv6 }), /ipv4.*ipv6|ipv6.*ipv4/);
  assert.deepEqual((await world.get('EgressGateway', 'edited'))?.spec?.ippools?.ipv4, ipv4);
});

test('G00014: nodeList and policies follow an edited nodeSelector, to other nodes, to none, and back', async () => {
  const [first = ''] = await world.gatewayNodes('selone', 1, { zone: 'one' });
  const [second = ''] = await world.gatewayNodes('seltwo', 1, { zone: 'two' });
  const pool = ['10.6.4.1-10.6.4.9'];
  await world.gateway('moves', { ipv4: pool, labels: { zone: 'one' } });
  await world.policy('default/moves', { gateway: 'moves', allocator: 'rr' });
  const before = (await world.allocated(['default/moves'])).get('default/moves');
  assert.equal(before?.node, first);
  const onNode = (node: string) =>
    eventually(`the policy is on ${node}`, async () => (await world.policyStatus('default/moves'))?.node === node);

  await world.gateway('moves', { ipv4: pool, labels: { zone: 'two' } });
  await onNode(second);
  await eventually('the node list follows', async () => (await nodeNamesOf('moves')).join() === second);
  await world.gateway('moves', { ipv4: pool, labels: { zone: 'three' } });
  await eventually('the node list is empty', async () => (await nodeNamesOf('moves')).length === 0);
  await eventually('the policy says why it has no way out', async () => {
    const status = await world.policyStatus('default/moves');
    return conditionOf(status, 'Allocated')?.reason === 'NoMatchingNode';
  });
  await world.gateway('moves', { ipv4: pool, labels: { zone: 'one' } });
  await onNode(first);
  const after = await world.policyStatus('default/moves');
  assert.deepEqual([after?.eip, after?.slot], [before.eip, before.slot], 'the EIP and the slot stay through all of it');
  await eventually('the move is told in an event', async () => {
    const events = await world.eventsAbout('moves');
    return events.some(({ reason, note }) => reason === 'EipMoved' && note.includes(second));
  });
});

test('G00017, P00002, P00003: policies without a gateway use the default of the namespace, else of the cluster', async () => {
  await world.gatewayNodes('default', 1, { pool: 'defaults' });
  await world.namespace('tenant', { 'spidernet.io/egressgateway-default': 'tenant' });
  await world.gateway('tenant', { ipv4: ['10.6.5.1'], labels: { pool: 'defaults' } });
  await world.gateway('cluster', { ipv4: ['10.6.5.2'], labels: { pool: 'defaults' }, clusterDefault: true });
  const keys = ['tenant/by-namespace', 'default/by-cluster', 'cluster-by-cluster'];
  for (const key of keys) await world.policy(key, {});
  const statuses = await world.allocated(keys);
  assert.deepEqual(
    keys.map((key) => statuses.get(key)?.eip?.ipv4),
    ['10.6.5.1', '10.6.5.2', '10.6.5.2'],
  );
  for (const key of keys) await world.deletePolicy(key);
  await world.client.delete(resourceOf('EgressGateway'), { name: 'cluster' });
  await eventually('a free gateway can go', async () => (await world.get('EgressGateway', 'cluster')) === undefined);
  await world.policy('default/orphan', {});
  await eventually('a policy without any gateway says so', async () => {
    const status = await world.policyStatus('default/orphan');
    return conditionOf(status, 'Accepted')?.reason === 'NoDefaultGateway';
  });
});

test('a gateway serves the namespaces that it allows, and follows their labels', async () => {
  await world.gatewayNodes('allow', 1, { pool: 'allow' });
  const allowedNamespaces = { names: ['vip'], selector: { matchLabels: { tier: 'gold' } } };
  await world.gateway('allow', { ipv4: ['10.6.8.1-10.6.8.9'], labels: { pool: 'allow' }, allowedNamespaces });
  for (const namespace of ['vip', 'plain']) await world.namespace(namespace);
  // Cluster policies are made by administrators, so they are not bound by it.
  const keys = ['vip/allow', 'plain/allow', 'allow'];
  for (const key of keys) await world.policy(key, { gateway: 'allow', allocator: 'rr' });
  await world.allocated(['vip/allow', 'allow']);
  await eventually('another namespace is refused', async () => {
    const status = await world.policyStatus('plain/allow');
    return conditionOf(status, 'Accepted')?.reason === 'NamespaceNotAllowed';
  });
  await world.namespace('plain', { tier: 'gold' });
  await world.allocated(keys);
});

test('G00018, G00019: a gateway without pools serves policies that use the node IP, and no others', async () => {
  const [node] = await world.gatewayNodes('bare', 1, { pool: 'bare' });
  await world.gateway('bare', { labels: { pool: 'bare' } });
  const withNodeIp = ['default/bare-node', 'bare-node'];
  const withEip = ['default/bare-eip', 'bare-eip'];
  for (const key of withNodeIp) await world.policy(key, { gateway: 'bare', useNodeIP: true });
  for (const key of withEip) await world.policy(key, { gateway: 'bare' });
  const statuses = await world.allocated(withNodeIp);
  for (const key of withNodeIp) {
    assert.equal(statuses.get(key)?.node, node);
    assert.equal(conditionOf(statuses.get(key), 'Allocated')?.reason, 'NodeIpAllocated');
    assert.deepEqual(statuses.get(key)?.eip ?? {}, {});
  }
  for (const key of withEip) {
    await eventually(`${key} is refused`, async () => {
      const status = await world.policyStatus(key);
      return conditionOf(status, 'Accepted')?.reason === 'PoolEmpty';
    });
  }
});

for (const key of ['default/keeps', 'keeps']) {
  const kind = key.includes('/') ? 'a policy' : 'a cluster policy alone';
  test(`G00020: a gateway that ${kind} uses stays until the policy is gone`, async () => {
    const gateway = `kept-${kind.length}`;
    await world.gatewayNodes(`${gateway}-`, 1, { pool: gateway });
    await world.gateway(gateway, { ipv4: [`10.6.6.${kind.length}`], labels: { pool: gateway } });
    await world.policy(key, { gateway });
    const before = (await world.allocated([key])).get(key);
    await world.client.delete(resourceOf('EgressGateway'), { name: gateway });
    // One that comes so soon that the controller has not heard of the deletion is served, and holds the gateway too.
    await eventually('a new policy is told that the gateway goes', async () => {
      await world.policy(`${key}-late`, { gateway });
      const reason = await reasonAccepted(`${key}-late`);
      await world.deletePolicy(`${key}-late`);
      assert.notEqual(reason, 'GatewayNotFound', 'the gateway went while a policy had its EIP');
      return reason === 'GatewayDeleting';
    });
    const during = await world.policyStatus(key);
    assert.deepEqual(bindingOf(during), bindingOf(before));
    assert.ok((await world.get('EgressGateway', gateway))?.metadata.deletionTimestamp, 'the gateway is still there');
    await world.deletePolicy(key);
    await eventually('the gateway is gone', async () => (await world.get('EgressGateway', gateway)) === undefined);
  });
}

test('a gateway that a foreign finalizer holds is let go by us and stops nobody', async () => {
  await world.gateway('foreign', { ipv4: ['10.6.7.1'] });
  await eventuallyUsage('foreign', 1, 1);
  const finalizers = { op: 'add', path: '/metadata/finalizers/-', value: 'example.org/audit' } as const;
  await world.client.patch(
    resourceOf('EgressGateway'),
    { name: 'foreign' },
    { kind: 'json', operations: [finalizers] },
  );
  await world.client.delete(resourceOf('EgressGateway'), { name: 'foreign' });
  await eventually('only the foreign finalizer is left', async () => {
    const gateway = await world.get('EgressGateway', 'foreign');
    return gateway?.metadata.finalizers?.join() === 'example.org/audit';
  });
  await world.gateway('after-foreign', { ipv4: ['10.6.7.2'] });
  await eventuallyUsage('after-foreign', 1, 1);
});
