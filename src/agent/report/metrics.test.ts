import assert from 'node:assert/strict';
import { test } from 'node:test';
import { policyKey } from '../../core/cluster/view.ts';
import type { UplinkLoss } from '../../core/node/uplink.ts';
import { ip } from '../../core/testing/address.ts';
import { createFakeConntrack } from '../../dataplane/conntrack/testing/fake-conntrack.ts';
import { createFakeNftables } from '../../dataplane/nft/testing/fake.ts';
import { createMetrics } from '../../runtime/metrics/metrics.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { gatewayNode } from '../testing/gateway-node.ts';
import { createAgentMetrics } from './metrics.ts';

/** A gateway node whose table counts. */
const countingNode = async () => {
  const { desired, policies } = gatewayNode('web', 'idle');
  const nftables = createFakeNftables();
  await nftables.apply(desired.table);
  const slots = new Map(policies.map(({ key, recorded }) => [recorded.slot ?? 0, key]));
  const [mark = ''] = [...desired.table.elements.slot_fwd.keys()].filter(
    (key) => slots.get(Number.parseInt(key, 16) & 0x3fff) === policyKey('shop', 'web'),
  );
  const [eip = ''] = desired.table.elements.eips4.keys();
  const conntrack = createFakeConntrack();
  const { registry, instruments } = createMetrics();
  const clock = new ManualClock();
  const log = createLog({ process: 'test', level: 'silent' });
  const outcome = () => undefined;
  const mirror = () => ({
    mirrored: 7,
    held: 8,
    dropped: 1,
    lagSeconds: 0.5,
    behind: 6,
    resets: 2,
    written: 3,
    refused: 4,
  });
  const kernel = { nftables, conntrack };
  const conflicts = () => [{ ip: ip('10.6.0.100'), mac: '66:00:00:00:00:99', interface: 'eth0' }];
  const uplinkLosses = (): UplinkLoss[] => [{ interface: 'eth0', family: 6, cause: 'silent', nextHop: ip('fe80::1') }];
  createAgentMetrics({
    instruments,
    kernel,
    clock,
    log,
    policyBySlot: () => slots,
    outcome,
    conflicts,
    uplinkLosses,
    silenceMs: () => 400,
    mirror,
  });
  const lines = async (name: string) => (await registry.metrics()).split('\n').filter((line) => line.startsWith(name));
  return { nftables, conntrack, clock, mark, eip, lines };
};

test('what the kernel counts is shown by policy and by EIP; what has no packet is not shown', async () => {
  const { nftables, mark, eip, lines } = await countingNode();
  nftables.kernel.count('slot_fwd', mark, { packets: 3, bytes: 300 });
  nftables.kernel.count('sent4', eip, { packets: 2, bytes: 200 });
  assert.deepEqual(await lines('sallyport_policy_packets_total'), [
    'sallyport_policy_packets_total{policy="shop/web"} 3',
  ]);
  assert.deepEqual(await lines('sallyport_policy_bytes_total'), [
    'sallyport_policy_bytes_total{policy="shop/web"} 300',
  ]);
  assert.deepEqual(await lines('sallyport_eip_bytes_total'), [
    `sallyport_eip_bytes_total{eip="${eip}",direction="sent"} 200`,
  ]);
  assert.ok((await lines('sallyport_dropped_packets_total')).length > 5, 'every reason is shown from the start');
});

test('the kernel is read once for the metrics of a scrape, and anew for a later one', async () => {
  const { nftables, clock, mark, lines } = await countingNode();
  await lines('sallyport');
  nftables.kernel.count('slot_fwd', mark, { packets: 9, bytes: 900 });
  assert.deepEqual(await lines('sallyport_policy_packets_total'), []);
  await clock.advance(1_001);
  assert.deepEqual(await lines('sallyport_policy_packets_total'), [
    'sallyport_policy_packets_total{policy="shop/web"} 9',
  ]);
});

test('a kernel that cannot be read costs its own values only', async () => {
  const { nftables, conntrack, lines } = await countingNode();
  conntrack.connect(undefined);
  conntrack.usage = { limit: 100, insertFailed: 4, dropped: 5 };
  nftables.kernel.failure = { code: 127, stdout: '', stderr: 'spawn nft ENOENT' };
  assert.deepEqual(await lines('sallyport_dropped_packets_total'), []);
  assert.deepEqual(await lines('sallyport_conntrack'), [
    'sallyport_conntrack_entries 2',
    'sallyport_conntrack_limit 100',
    'sallyport_conntrack_failures_total{kind="insert_failed"} 4',
    'sallyport_conntrack_failures_total{kind="dropped"} 5',
  ]);
});

test('the mirror tells how it stands', async () => {
  const { lines } = await countingNode();
  assert.deepEqual(await lines('sallyport_mirror'), [
    'sallyport_mirror_connections{side="owner"} 7',
    'sallyport_mirror_connections{side="successor"} 8',
    'sallyport_mirror_lag_seconds 0.5',
    'sallyport_mirror_behind 6',
    'sallyport_mirror_events_total{kind="made"} 3',
    'sallyport_mirror_events_total{kind="refused"} 4',
    'sallyport_mirror_events_total{kind="dropped"} 1',
    'sallyport_mirror_events_total{kind="reset"} 2',
  ]);
});

test('a family that is lost on an interface is shown', async () => {
  const { lines } = await countingNode();
  assert.deepEqual(await lines('sallyport_uplink_lost'), ['sallyport_uplink_lost{interface="eth0",family="ipv6"} 1']);
});

test('an EIP that another machine claims is shown with the MAC address of that machine', async () => {
  const { lines } = await countingNode();
  assert.deepEqual(await lines('sallyport_eip_in_use'), [
    'sallyport_eip_in_use{eip="10.6.0.100",mac="66:00:00:00:00:99"} 1',
  ]);
});
