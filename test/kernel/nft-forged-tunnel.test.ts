/**
 * Tunnel packets that no node has sent. Whoever gets one into a gateway node sends with an EIP of his choice, so they are
 * taken only from nodes, by the interface that carries the tunnel.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Nftables } from '../../src/dataplane/nft/nftables.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { type Forgery, forge } from './forged-tunnel.ts';
import { type Namespace, openNamespace } from './namespace.ts';
import { addresses, macs, type Network, openNetwork } from './nft-network.ts';
import { gateway, tableOf } from './nft-tables.ts';

/** A node that the tables know, and whose address others take here. */
const other = { 4: '10.9.0.13', 6: 'fd09::13' } as const;
const vteps = {
  vteps4: new Map([addresses[4].worker, addresses[4].gateway, other[4]].map((ip) => [ip, ''])),
  vteps6: new Map([addresses[6].worker, addresses[6].gateway, other[6]].map((ip) => [ip, ''])),
};

describe('a forged tunnel packet', () => {
  let network: Network;
  /** A pod of the gateway node. */
  let local: Namespace;
  before(async () => {
    network = await openNetwork('forged');
    local = await openNamespace('forged-local');
    await network.gateway.ip(
      `link add to-local type veth peer name eth0 netns ${local.name}`,
      'link set to-local up',
      'addr add 10.244.2.1/24 dev to-local',
      '-6 addr add fd44:2::1/64 dev to-local nodad',
    );
    await local.ip(
      'link set eth0 up',
      'addr add 10.244.2.2/24 dev eth0',
      '-6 addr add fd44:2::2/64 dev eth0 nodad',
      'route add default via 10.244.2.1',
      '-6 route add default via fd44:2::1',
    );
    for (const place of [network.pod, local, network.outside]) {
      await place.ip(`addr add ${other[4]}/32 dev lo`, `-6 addr add ${other[6]}/128 dev lo nodad`);
    }
    for (const node of [network.worker, network.gateway]) {
      await node.must('sysctl', '-q', '-w', 'net/ipv4/conf/all/rp_filter=0');
    }
  });
  after(async () => {
    await local?.close();
    await network?.[Symbol.asyncDispose]();
  });
  // No pod is under a policy: a slot comes from forged packets only.
  beforeEach(async () => {
    await network.workerTable.apply(tableOf(vteps));
    await network.gatewayTable.apply(tableOf({ ...gateway, ...vteps }));
    for (const node of [network.worker, network.gateway]) await node.must('conntrack', '-F');
    await network.sources();
  });

  const dropped = async (table: Nftables): Promise<number> => (await table.counters()).drops.foreign_tunnel.packets;

  const assertDropped = async (table: Nftables, forgery: Forgery): Promise<void> => {
    const earlier = await dropped(table);
    await forge(forgery);
    await eventually('the packet is dropped', async () => (await dropped(table)) > earlier);
    assert.deepEqual(await network.sources(), []);
  };

  for (const family of [4, 6] as const) {
    const at = addresses[family];
    describe(`over IPv${family}`, () => {
      it('of a pod, which the network plugin masquerades as its node, does not leave the worker', async () => {
        await assertDropped(network.workerTable, { from: network.pod, to: at.gateway });
      });

      it('of a pod with the address of another node does not leave the worker', async () => {
        await assertDropped(network.workerTable, { from: network.pod, as: other[family], to: at.gateway });
      });

      it('of a pod with the address of another node does not reach the gateway node that the pod is on', async () => {
        await assertDropped(network.gatewayTable, { from: local, as: other[family], to: at.gateway });
        await assertDropped(network.gatewayTable, { from: local, as: other[family], to: at.eip });
      });

      it('of a pod to a Service that leads to the tunnel of a node does not leave the worker', async () => {
        const service = family === 4 ? '10.96.0.1' : 'fd96::1';
        const ip = family === 4 ? 'ip' : 'ip6';
        const to = family === 4 ? `${at.gateway}:7789` : `[${at.gateway}]:7789`;
        await network.worker.nft(
          `table inet proxy { chain pre { type nat hook prerouting priority dstnat; ${ip} daddr ${service} udp dport 80 dnat to ${to}; }; }`,
        );
        try {
          await assertDropped(network.workerTable, { from: network.pod, to: service, port: 80 });
        } finally {
          await network.worker.nft('delete table inet proxy');
        }
      });

      it('of a machine beside the nodes is dropped by the gateway node', async () => {
        await assertDropped(network.gatewayTable, { from: network.outside, to: at.gateway });
      });

      it('is let through where it is no tunnel packet: the port of another machine', async () => {
        const earlier = await dropped(network.workerTable);
        await forge({ from: network.pod, to: at.outside, port: 7789 });
        await forge({ from: network.pod, to: at.outside, port: 7790 });
        await eventually('the second one has arrived', async () => (await network.sources()).includes(at.worker));
        assert.equal(await dropped(network.workerTable), earlier);
      });
    });
  }

  it('with the address of a node on the wire between nodes is taken if it has the MAC address of a tunnel, else dropped', async () => {
    const forgery = { from: network.outside, as: other[4], to: addresses[4].gateway };
    await assertDropped(network.gatewayTable, { ...forgery, mac: '66:00:00:00:00:99' });
    // What remains without encryption: docs/explanation/security.md.
    await forge({ ...forgery, mac: macs.worker });
    await eventually('the outside sees it', async () => (await network.sources()).includes(addresses[4].eip));
  });
});
