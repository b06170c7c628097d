/** Policies on a real API server, with a real controller process; see controller-gateways.test.ts for the case names. */
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
  await world.controller();
  await world.gatewayNodes('node', 3);
});
after(async () => {
  await world?.stop();
});

/** The EIPs of a gateway with their policies, as its status lists them. */
const listedEips = async (gateway: string) =>
  ((await world.get('EgressGateway', gateway))?.status?.nodeList ?? []).flatMap(({ name, eips = [] }) =>
    eips.map(({ ipv4, policies = [] }) => ({
      node: name,
      ipv4,
      policies: policies.map((policy) => (policy.namespace ? `${policy.namespace}/${policy.name}` : policy.name)),
    })),
  );

test('P00008: policies with the default allocator share the default EIP, and every one of them is recorded', async () => {
  await world.gateway('shared', { ipv4: ['10.7.1.1-10.7.1.9'], default4: '10.7.1.4' });
  const keys = ['default/one', 'default/two', 'three'];
  for (const key of keys) await world.policy(key, { gateway: 'shared' });
  const statuses = await world.allocated(keys);
  assert.deepEqual(new Set(keys.map((key) => statuses.get(key)?.eip?.ipv4)), new Set(['10.7.1.4']));
  assert.equal(new Set(keys.map((key) => statuses.get(key)?.node)).size, 1, 'one EIP is on one node');
  assert.equal(new Set(keys.map((key) => statuses.get(key)?.slot)).size, 3, 'every policy has a slot of its own');
  await eventually('the gateway lists all three', async () => {
    const [eip, ...others] = await listedEips('shared');
    return others.length === 0 && eip?.policies.join() === keys.toSorted().join();
  });
  await world.deletePolicy('default/one');
  await eventually('the EIP stays with the others', async () => {
    const [eip] = await listedEips('shared');
    return eip?.ipv4 === '10.7.1.4' && eip.policies.length === 2;
  });
});

test('P00009, P00010, P00022: rr takes a free EIP, and a given EIP wins over the allocator', async () => {
  await world.gateway('given', { ipv4: ['10.7.2.1-10.7.2.9'] });
  await world.policy('default/rr', { gateway: 'given', allocator: 'rr' });
  await world.policy('default/given', { gateway: 'given', allocator: 'rr', ipv4: '10.7.2.7' });
  await world.policy('given', { gateway: 'given', ipv4: '10.7.2.8' });
  const statuses = await world.allocated(['default/rr', 'default/given', 'given']);
  assert.match(statuses.get('default/rr')?.eip?.ipv4 ?? '', /^10\.7\.2\.[1-9]$/);
  assert.equal(statuses.get('default/given')?.eip?.ipv4, '10.7.2.7');
  assert.equal(statuses.get('given')?.eip?.ipv4, '10.7.2.8');
});

test('P00004: an EIP outside the pool is refused with a reason, and put right by an edit', async () => {
  await world.gateway('outside', { ipv4: ['10.7.3.1-10.7.3.9'] });
  await world.policy('default/outside', { gateway: 'outside', ipv4: '10.7.4.1' });
  await eventually('the policy is refused', async () => {
    const status = await world.policyStatus('default/outside');
    return conditionOf(status, 'Accepted')?.reason === 'EipOutsidePool';
  });
  const refused = await world.policyStatus('default/outside');
  assert.match(conditionOf(refused, 'Accepted')?.message ?? '', /10\.7\.4\.1/);
  assert.equal(conditionOf(refused, 'Programmed')?.reason, 'NotAccepted');
  await eventually('an event tells it', async () => {
    const events = await world.eventsAbout('outside');
    return events.some(({ reason }) => reason === 'EipOutsidePool');
  });
  await world.policy('default/outside', { gateway: 'outside', ipv4: '10.7.3.2' });
  const status = (await world.allocated(['default/outside'])).get('default/outside');
  assert.equal(status?.eip?.ipv4, '10.7.3.2');
  assert.equal(status?.observedGeneration, 2);
});

test('P00015, P00016: a policy with the node IP has a node and no EIP, and follows the nodeSelector', async () => {
  const labels = (pool: string) => ({ pool });
  const [first] = await world.gatewayNodes('ipone', 1, labels('ip-one'));
  const [second] = await world.gatewayNodes('iptwo', 1, labels('ip-two'));
  await world.gateway('node-ip', { labels: labels('ip-one') });
  await world.policy('default/node-ip', { gateway: 'node-ip', useNodeIP: true });
  const before = (await world.allocated(['default/node-ip'])).get('default/node-ip');
  assert.deepEqual([before?.node, before?.eip ?? {}], [first, {}]);
  await world.gateway('node-ip', { labels: labels('ip-two') });
  await eventually('it leaves through the other node', async () => {
    const status = await world.policyStatus('default/node-ip');
    return status?.node === second && status?.slot === before?.slot;
  });
});

test('P00018, P00019: another EIP or gateway is an ordinary edit, and moves nothing else', async () => {
  await world.gateway('old', { ipv4: ['10.7.5.1-10.7.5.3'] });
  await world.gateway('new', { ipv4: ['10.7.6.1-10.7.6.3'] });
  for (const key of ['default/stays', 'default/goes']) await world.policy(key, { gateway: 'old', allocator: 'rr' });
  const before = await world.allocated(['default/stays', 'default/goes']);
  await world.policy('default/goes', { gateway: 'new', allocator: 'rr' });
  await eventually('the policy has an EIP of the new gateway', async () => {
    const status = await world.policyStatus('default/goes');
    return status?.eip?.ipv4?.startsWith('10.7.6.') === true;
  });
  await eventually('the old gateway is rid of it', async () => (await listedEips('old')).length === 1);
  assert.deepEqual(bindingOf(await world.policyStatus('default/stays')), bindingOf(before.get('default/stays')));
  await eventually('the rebinding is told in an event', async () => {
    const events = await world.eventsAbout('goes');
    return events.some(({ reason }) => reason === 'PolicyRebound');
  });
});

test('P00020: a deleted policy leaves nothing behind, and its EIP is free again', async () => {
  await world.gateway('cleans', { ipv4: ['10.7.7.1'] });
  await world.policy('default/cleans', { gateway: 'cleans', allocator: 'rr' });
  await world.allocated(['default/cleans']);
  await eventually('the gateway lists it', async () => (await listedEips('cleans')).length === 1);
  await world.deletePolicy('default/cleans');
  await eventually('the gateway lists nothing', async () => (await listedEips('cleans')).length === 0);
  assert.equal((await world.get('EgressGateway', 'cleans'))?.status?.ipUsage?.ipv4Free, 1);
  await eventually('the release is told in an event', async () => {
    const events = await world.eventsAbout('cleans');
    return events.some(({ reason, note }) => reason === 'EipReleased' && note.includes('10.7.7.1'));
  });
});

const modes: readonly (readonly [string, { policy: string; limit?: number }, string])[] = [
  ['average spreads EIPs evenly', { policy: 'average' }, '2,2,2'],
  ['minimum fills one node', { policy: 'minimum' }, '6'],
  ['limit fills a node up to the limit before the next', { policy: 'limit', limit: 4 }, '2,4'],
];
for (const [index, [name, mode, expected]] of modes.entries()) {
  test(`nodeSelector.policy: ${name}`, async () => {
    await world.gateway(`mode-${index}`, { ipv4: [`10.7.1${index}.1-10.7.1${index}.9`], ...mode });
    const keys = Array.from({ length: 6 }, (_, number) => `default/mode-${index}-${number}`);
    // One after the other, so that each is placed with the others on record.
    for (const key of keys) {
      await world.policy(key, { gateway: `mode-${index}`, allocator: 'rr' });
      await world.allocated([key]);
    }
    const statuses = await world.allocated(keys);
    const loads = [...Map.groupBy(keys, (key) => statuses.get(key)?.node).values()].map(({ length }) => length);
    assert.equal(loads.toSorted().join(), expected);
  });
}

test('the allocator limit fills an EIP up to eipLimit before it takes the next', async () => {
  await world.gateway('limit', { ipv4: ['10.7.20.1-10.7.20.9'], eipLimit: 3 });
  const keys = Array.from({ length: 5 }, (_, number) => `default/limit-${number}`);
  for (const key of keys) {
    await world.policy(key, { gateway: 'limit', allocator: 'limit' });
    await world.allocated([key]);
  }
  const statuses = await world.allocated(keys);
  const uses = [...Map.groupBy(keys, (key) => statuses.get(key)?.eip?.ipv4).values()].map(({ length }) => length);
  assert.equal(uses.toSorted().join(), '2,3');
});

test('a pool that is used up is shared instead of refusing policies', async () => {
  await world.gateway('full', { ipv4: ['10.7.8.1-10.7.8.2'] });
  const keys = Array.from({ length: 6 }, (_, index) => `default/full-${index}`);
  for (const key of keys) await world.policy(key, { gateway: 'full', allocator: 'rr' });
  const statuses = await world.allocated(keys);
  const eips = keys.map((key) => statuses.get(key)?.eip?.ipv4);
  assert.deepEqual(new Set(eips), new Set(['10.7.8.1', '10.7.8.2']));
});

test('a status that somebody edits is put back, and nothing of the edit stays', async () => {
  await world.gateway('edited', { ipv4: ['10.7.9.1-10.7.9.9'] });
  await world.policy('default/edited', { gateway: 'edited', allocator: 'rr' });
  const before = (await world.allocated(['default/edited'])).get('default/edited');
  const policies = resourceOf('EgressPolicy');
  const ref = { namespace: 'default', name: 'edited' };
  const value = { status: { eip: { ipv4: '10.7.9.9', ipv6: 'fd00::1' }, node: 'nobody', slot: 1 } };
  await world.client.patch(policies, ref, { kind: 'merge', value }, { subresource: 'status' });
  await eventually('the status is as before', async () => {
    const status = await world.policyStatus('default/edited');
    return status?.node === before?.node && status?.slot === before?.slot && status?.eip?.ipv6 === undefined;
  });
  assert.deepEqual(bindingOf(await world.policyStatus('default/edited')), bindingOf(before));

  // A refused policy has no binding; one that is written into it by hand has to go.
  await world.policy('default/bindless', { gateway: 'nowhere' });
  await eventually('the policy is refused', async () => {
    const status = await world.policyStatus('default/bindless');
    return conditionOf(status, 'Accepted')?.reason === 'GatewayNotFound';
  });
  const bindless = { namespace: 'default', name: 'bindless' };
  await world.client.patch(policies, bindless, { kind: 'merge', value }, { subresource: 'status' });
  await eventually('the forged binding is gone', async () => {
    const status = await world.policyStatus('default/bindless');
    return status?.slot === undefined && status?.node === undefined && status?.eip?.ipv4 === undefined;
  });
});
