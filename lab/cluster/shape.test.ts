import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusOf } from '../status.ts';
import { freeEips, mostNodes, shapeOf, shapeSchema } from './shape.ts';

test('the default shape has two gateways before two workers, numbered alike in both families', () => {
  const shape = shapeOf({ gateways: 2, workers: 2, proxyModeByNode: new Map([['worker-2', 'iptables']]) });
  assert.deepEqual(
    shape.nodes.map((node) => [node.name, node.ipv4, node.ipv6, node.podCidr.ipv4, node.podCidr.ipv6, node.proxyMode]),
    [
      ['gateway-1', '10.77.0.11', 'fd77::11', '10.244.1.0/24', 'fd44:0:0:1::/64', 'nftables'],
      ['gateway-2', '10.77.0.12', 'fd77::12', '10.244.2.0/24', 'fd44:0:0:2::/64', 'nftables'],
      ['worker-1', '10.77.0.13', 'fd77::13', '10.244.3.0/24', 'fd44:0:0:3::/64', 'nftables'],
      ['worker-2', '10.77.0.14', 'fd77::14', '10.244.4.0/24', 'fd44:0:0:4::/64', 'iptables'],
    ],
  );
});

test('a lab of one family says so, and its status too', () => {
  const both = { gateways: 1, workers: 0, proxyModeByNode: new Map() };
  assert.deepEqual(shapeOf(both).families, ['ipv4', 'ipv6']);
  const shape = shapeOf({ ...both, families: ['ipv6'] });
  assert.deepEqual([shape.families, statusOf(shape).families], [['ipv6'], ['ipv6']]);
});

test('the largest lab shares no address with the EIPs, and no two nodes share one', () => {
  const { nodes } = shapeOf({ gateways: 8, workers: mostNodes - 8, proxyModeByNode: new Map() });
  const { ipv4, ipv6 } = freeEips();
  for (const all of [
    [...nodes.map((node) => node.ipv4), ...ipv4],
    [...nodes.map((node) => node.ipv6), ...ipv6],
    nodes.map((node) => node.podCidr.ipv6),
  ]) {
    assert.equal(new Set(all).size, all.length);
  }
});

test('a shape survives the record on disk, and the status names what a program needs', () => {
  const shape = shapeOf({ gateways: 1, workers: 1, proxyModeByNode: new Map() });
  assert.deepEqual(shapeSchema.parse(JSON.parse(JSON.stringify(shape))), shape);
  const status = statusOf(shape);
  assert.deepEqual(status.nodes, [
    { name: 'gateway-1', ipv4: '10.77.0.11', ipv6: 'fd77::11', gateway: true },
    { name: 'worker-1', ipv4: '10.77.0.12', ipv6: 'fd77::12', gateway: false },
  ]);
  assert.ok(status.eips.ipv4.length >= 32 && status.eips.ipv6.length >= 32);
  assert.deepEqual(Object.keys(status.outside), ['ipv4', 'ipv6', 'httpPort', 'tcpPort', 'udpPort']);
});
