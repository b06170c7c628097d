/**
 * What the controller does about failover, on a real API server with a real controller process; agents are played by the
 * test. It names voters one by one, makes the key and the Lease, records what agents decided, and moves with the latest epoch.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { RecordedElectorate } from '../../src/api/egress-cluster-info.ts';
import { failoverNames } from '../../src/api/names.ts';
import { type Secret, secretResource } from '../../src/runtime/certs/secret.ts';
import { leaseResource } from '../../src/runtime/control/lease-record.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { nodes, World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

const drained = { 'egressgateway.spidernet.io/drain': 'true' };
const eip = '10.8.9.1';
const labels = { pool: 'owned' };
let world: World;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  const gatewayFailover = { tunnelMonitorPeriod: 1, tunnelUpdatePeriod: 1, eipEvictionTimeout: 2 };
  await world.controller('--config', world.config({ gatewayFailover, failover: { graceSeconds: 8 } }));
});
after(async () => {
  await world?.stop();
});

const electorate = async (): Promise<RecordedElectorate | undefined> =>
  (await world.get('EgressClusterInfo', 'default'))?.status?.electorate;
const eventuallyVoters = (text: string) =>
  eventually(`the electorate is ${text}`, async () => {
    const { generation, voters, apiVotes } = (await electorate()) ?? { generation: 0, voters: [], apiVotes: false };
    return `${generation}: ${voters.join(' ')}${apiVotes ? ' api' : ''}` === text;
  });
let beats = 0;
/** What an agent reports: the electorate that it goes by, and the EIP if it owns it in an epoch. */
const report = async (node: string, epoch?: number): Promise<void> => {
  beats += 1;
  const lastHeartbeatTime = new Date(Date.UTC(2026, 0, 1) + beats * 1_000).toISOString();
  const eips = epoch === undefined ? [] : [{ ip: eip, epoch }];
  await world.agent(node, { lastHeartbeatTime, report: { eips, electorate: await electorate() } });
};
const recorded = async (): Promise<string> => {
  const status = await world.policyStatus('default/owned');
  return `${status?.node} ${status?.epoch ?? 0}`;
};
const eventuallyRecorded = (text: string) =>
  eventually(`${text} is on record`, async () => (await recorded()) === text, 60_000);

test('the key and the Lease are made, and made again; a deleted key comes back as it was', async () => {
  const [secret, lease] = [
    { namespace: 'sallyport', name: failoverNames.secret },
    { namespace: 'sallyport', name: failoverNames.lease },
  ];
  const key = async () => (await world.client.get<Secret>(secretResource, secret))?.data?.key;
  await eventually('there is a key', async () => Buffer.from((await key()) ?? '', 'base64').length === 32);
  const first = await key();
  await world.client.delete(secretResource, secret);
  await eventually('there is a key again', async () => (await key()) !== undefined);
  assert.equal(await key(), first);
  await world.client.delete(leaseResource, lease);
  await eventually('there is a Lease', async () => (await world.client.get(leaseResource, lease)) !== undefined);
});

test('voters are named when there is a gateway, and change one by one when agents have the last', async () => {
  await world.gatewayNodes('vote', 3, labels);
  assert.equal(await electorate(), undefined);
  await world.gateway('owned', { ipv4: [eip], labels });
  await eventuallyVoters('1: vote1 vote2 vote3');
  await world.gatewayNodes('late', 1, labels);
  await world.node('vote3', { labels, isReady: false });
  await Promise.all(['vote1', 'vote2', 'late1'].map((name) => report(name)));
  await eventuallyVoters('2: late1 vote1 vote2 vote3');
  await Promise.all(['vote1', 'vote2'].map((name) => report(name)));
  assert.equal((await electorate())?.generation, 2, 'late1 has not reported yet');
  await report('late1');
  await eventuallyVoters('3: late1 vote1 vote2');
  await world.node('vote3', { labels });
});

test('a take-over is recorded with its epoch, told in events, and not undone', async () => {
  await world.policy('default/owned', { gateway: 'owned' });
  const owner = (await world.allocated(['default/owned'])).get('default/owned')?.node ?? '';
  const [next = '', third = ''] = ['vote1', 'vote2', 'late1'].filter((name) => name !== owner);
  await report(owner, 1);
  await report(next, 2);
  await eventuallyRecorded(`${next} 2`);
  await report(owner);
  await eventually('there is an event', async () =>
    (await world.eventsAbout('owned')).some(
      ({ reason, note }) => reason === 'EipTakenOver' && note.includes(`Node ${next} has taken over ${eip} from`),
    ),
  );
  await eventually('the gateway shows it', async () => {
    const { nodeList = [] } = (await world.get('EgressGateway', 'owned'))?.status ?? {};
    return nodeList.some(({ name, eips = [] }) => name === next && eips.some(({ epoch }) => epoch === 2));
  });
  // It loses its majority for a moment and takes its own EIP again: nothing to write. Then it is drained.
  await report(next, 4);
  await world.client.apply(nodes, { metadata: { name: next, annotations: drained } }, { fieldManager: 'e2e-drain' });
  await eventually('it is elsewhere, by the latest epoch', async () => {
    const [node, epoch] = (await recorded()).split(' ');
    return node !== next && epoch === '4';
  });
  const [moved = ''] = (await recorded()).split(' ');
  await report(third, 5);
  await report(next);
  await eventuallyRecorded(moved === third ? `${third} 4` : `${third} 5`);
});

test('an agent that others watch may be away for the grace; nothing moves', async () => {
  const [owner = ''] = (await recorded()).split(' ');
  const others = ['vote1', 'vote2', 'vote3', 'late1'].filter((name) => name !== owner);
  const before = await recorded();
  await report(owner, 5);
  const silentSinceMs = Date.now();
  await eventually(
    'the controller gives it up',
    async () => {
      for (const name of others) await report(name);
      return (await world.get('EgressTunnel', owner))?.status?.phase === 'HeartbeatTimeout';
    },
    30_000,
  );
  assert.ok(Date.now() - silentSinceMs > 8_000, 'not before the grace is over');
  await eventually('another node is named', async () => (await recorded()) !== before);
});
