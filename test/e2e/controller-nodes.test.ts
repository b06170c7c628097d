/** Nodes and tunnels that come, go, fail and return, on a real API server with a real controller process. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import { isInvalid } from '../../src/runtime/kube/api-error.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { bindingOf, conditionOf, nodes, World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

const tunnels = resourceOf('EgressTunnel');
let world: World;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  // Short times, so that a silent agent is given up within the patience of a test.
  const gatewayFailover = { tunnelMonitorPeriod: 1, tunnelUpdatePeriod: 1, eipEvictionTimeout: 3 };
  await world.controller('--config', world.config({ gatewayFailover }));
});
after(async () => {
  await world?.stop();
});

const phaseOf = async (node: string) => (await world.get('EgressTunnel', node))?.status?.phase;
const eventuallyPhase = (node: string, phase: string) =>
  eventually(`${node} is ${phase}`, async () => (await phaseOf(node)) === phase, 60_000);

test('a node gets a tunnel with mark and addresses, which is made anew when somebody deletes it', async () => {
  await world.node('tunnel1');
  await eventuallyPhase('tunnel1', 'Init');
  const first = await world.get('EgressTunnel', 'tunnel1');
  assert.match(first?.status?.mark ?? '', /^0x26[0-9a-f]{4}00$/);
  assert.match(first?.status?.tunnel?.ipv4 ?? '', /^172\.31\./);
  assert.equal(conditionOf(first?.status, 'Ready')?.reason, 'AgentStarting');
  await world.agent('tunnel1');
  await eventuallyPhase('tunnel1', 'Ready');
  await world.client.delete(tunnels, { name: 'tunnel1' });
  await eventually('another tunnel is there', async () => {
    const tunnel = await world.get('EgressTunnel', 'tunnel1');
    return tunnel?.metadata.uid !== first?.metadata.uid && tunnel?.status?.phase === 'Init';
  });
  const second = await world.get('EgressTunnel', 'tunnel1');
  assert.equal(second?.status?.mark, first?.status?.mark, 'the mark follows from the name');
  await world.client.delete(nodes, { name: 'tunnel1' });
  await eventually(
    'the tunnel goes with its node',
    async () => (await world.get('EgressTunnel', 'tunnel1')) === undefined,
  );
});

test('a tunnel that somebody makes for no node goes again, and one made before its node comes is not in the way', async () => {
  await world.client.create(tunnels, { metadata: { name: 'nobody1' } });
  await eventually('it is gone', async () => (await world.get('EgressTunnel', 'nobody1')) === undefined);
  await world.client.create(tunnels, { metadata: { name: 'early1' } });
  await world.node('early1');
  await eventuallyPhase('early1', 'Init');
});

test('a mark cannot be changed, and an address that is changed by hand is put back', async () => {
  const [node = ''] = await world.gatewayNodes('fixed', 1, { pool: 'fixed' });
  const before = (await world.get('EgressTunnel', node))?.status;
  const patch = (status: object) =>
    world.client.patch(tunnels, { name: node }, { kind: 'merge', value: { status } }, { subresource: 'status' });
  await assert.rejects(patch({ mark: '0x26123400' }), isInvalid);
  await patch({ tunnel: { ipv4: '172.31.9.9' }, phase: 'Failed' });
  await eventually('the status is as before', async () => {
    const status = (await world.get('EgressTunnel', node))?.status;
    return status?.tunnel?.ipv4 === before?.tunnel?.ipv4 && status?.phase === 'Ready';
  });
});

test('a gateway shows a node whose tunnel is not ready, and uses it as soon as it is', async () => {
  await world.node('slow1', { labels: { pool: 'slow' } });
  await world.gateway('slow', { ipv4: ['10.8.1.1'], labels: { pool: 'slow' } });
  await world.policy('default/slow', { gateway: 'slow' });
  await eventually('the node is listed with its phase', async () => {
    const [node] = (await world.get('EgressGateway', 'slow'))?.status?.nodeList ?? [];
    return node?.name === 'slow1' && node.status === 'Init';
  });
  const { uid } = (await world.get('EgressTunnel', 'slow1'))?.metadata ?? {};
  await world.client.delete(tunnels, { name: 'slow1' });
  await eventually('the tunnel is made anew', async () => {
    const tunnel = await world.get('EgressTunnel', 'slow1');
    return tunnel !== undefined && tunnel.metadata.uid !== uid;
  });
  await world.agent('slow1');
  const status = (await world.allocated(['default/slow'])).get('default/slow');
  assert.equal(status?.node, 'slow1', 'a node whose tunnel was missing is not forgotten');
});

test('R00005: nine EIPs of a lost node spread over the survivors, and stay there when it returns', async () => {
  const names = await world.gatewayNodes('lost', 4, { pool: 'lost' });
  await world.gateway('lost', { ipv4: ['10.8.2.1-10.8.2.60'], labels: { pool: 'lost' } });
  const keys = Array.from({ length: 36 }, (_, index) => `default/lost-${index}`);
  for (const key of keys) await world.policy(key, { gateway: 'lost', allocator: 'rr' });
  const before = await world.allocated(keys);
  const carriedBy = (statuses: typeof before, node: string) => keys.filter((key) => statuses.get(key)?.node === node);
  for (const name of names) assert.equal(carriedBy(before, name).length, 9, 'average spreads evenly');

  await world.node('lost1', { labels: { pool: 'lost' }, isReady: false });
  await eventuallyPhase('lost1', 'NodeNotReady');
  await eventually(
    'nothing is left on the lost node',
    async () => carriedBy(await world.allocated(keys), 'lost1').length === 0,
  );
  const during = await world.allocated(keys);
  for (const name of names.slice(1)) assert.equal(carriedBy(during, name).length, 12, `${name} carries its share`);
  for (const key of keys) {
    assert.deepEqual(during.get(key)?.eip, before.get(key)?.eip);
    assert.equal(during.get(key)?.slot, before.get(key)?.slot);
    if (before.get(key)?.node !== 'lost1') assert.equal(during.get(key)?.node, before.get(key)?.node, 'others stay');
  }
  await world.node('lost1', { labels: { pool: 'lost' } });
  await eventuallyPhase('lost1', 'Ready');
  const after = await world.allocated(keys);
  for (const key of keys) assert.deepEqual(bindingOf(after.get(key)), bindingOf(during.get(key)), 'no fail-back');
});

test('R00006: without any node traffic is dropped as the policy says; the first node back carries it all', async () => {
  const names = await world.gatewayNodes('dark', 2, { pool: 'dark' });
  const setReady = (name: string, isReady: boolean) => world.node(name, { labels: { pool: 'dark' }, isReady });
  await world.gateway('dark', { ipv4: ['10.8.3.1-10.8.3.9'], labels: { pool: 'dark' } });
  await world.policy('default/dark-drop', { gateway: 'dark', allocator: 'rr' });
  await world.policy('default/dark-open', { gateway: 'dark', allocator: 'rr', onUnavailable: 'NodeIP' });
  const keys = ['default/dark-drop', 'default/dark-open'];
  const before = await world.allocated(keys);
  for (const name of names) await setReady(name, false);
  const eventuallyProgrammed = (key: string, reason: string) =>
    eventually(
      `${key} is ${reason}`,
      async () => conditionOf(await world.policyStatus(key), 'Programmed')?.reason === reason,
    );
  await eventuallyProgrammed('default/dark-drop', 'TrafficDropped');
  await eventuallyProgrammed('default/dark-open', 'TrafficOnNodeIp');
  await setReady('dark2', true);
  await eventuallyPhase('dark2', 'Ready');
  await world.allocated(keys);
  await eventually('the node that is back carries both', async () => {
    const statuses = await world.allocated(keys);
    return keys.every((key) => statuses.get(key)?.node === 'dark2');
  });
  const during = await world.allocated(keys);
  for (const key of keys) assert.deepEqual(during.get(key)?.eip, before.get(key)?.eip);
  await setReady('dark1', true);
  await eventuallyPhase('dark1', 'Ready');
  const after = await world.allocated(keys);
  for (const key of keys) assert.equal(after.get(key)?.node, 'dark2', 'no drift when others return');
});

test('a label that is taken off a node moves its EIPs, one that is put on makes it a gateway node', async () => {
  await world.gatewayNodes('label', 2, { pool: 'label' });
  await world.gateway('label', { ipv4: ['10.8.4.1'], labels: { pool: 'label' } });
  await world.policy('default/label', { gateway: 'label' });
  const holder = (await world.allocated(['default/label'])).get('default/label')?.node ?? '';
  const other = holder === 'label1' ? 'label2' : 'label1';
  await world.node(holder, { labels: {} });
  await eventually(
    'the EIP is on the other node',
    async () => (await world.policyStatus('default/label'))?.node === other,
  );
  await world.client.delete(nodes, { name: other });
  await eventually('no node is left', async () => {
    const status = await world.policyStatus('default/label');
    return conditionOf(status, 'Allocated')?.reason === 'NoMatchingNode';
  });
  await world.node(holder, { labels: { pool: 'label' } });
  await eventually(
    'the node is a gateway node again',
    async () => (await world.policyStatus('default/label'))?.node === holder,
  );
});

test('an agent that falls silent loses its EIPs; one with a wrong clock does not', async () => {
  await world.gatewayNodes('beat', 2, { pool: 'beat' });
  await world.gateway('beat', { ipv4: ['10.8.5.1'], labels: { pool: 'beat' } });
  await world.policy('default/beat', { gateway: 'beat' });
  const holder = (await world.allocated(['default/beat'])).get('default/beat')?.node ?? '';
  const other = holder === 'beat1' ? 'beat2' : 'beat1';
  let beats = 0;
  // The holder beats once, with a clock that is a year ahead. The other goes on beating, with one that is a year behind.
  await world.agent(holder, { lastHeartbeatTime: '2037-01-01T00:00:00Z' });
  await eventually(
    `${holder} is given up`,
    async () => {
      beats += 1;
      const second = `${beats % 60}`.padStart(2, '0');
      const minute = `${Math.floor(beats / 60)}`.padStart(2, '0');
      await world.agent(other, { lastHeartbeatTime: `2017-01-01T00:${minute}:${second}Z` });
      return (await phaseOf(holder)) === 'HeartbeatTimeout';
    },
    60_000,
  );
  assert.equal(await phaseOf(other), 'Ready');
  await eventually('the EIP has moved', async () => (await world.policyStatus('default/beat'))?.node === other);
  await world.agent(holder, { lastHeartbeatTime: '2037-01-01T00:00:05Z' });
  await eventuallyPhase(holder, 'Ready');
});
