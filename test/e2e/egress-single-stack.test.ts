/**
 * Clusters of one address family. No node, pod or Service has an address of the other one, so that tunnels go over the
 * family of the cluster too: the IPv6-only cluster proves the IPv6 underlay.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Family } from '../../lab/cluster/shape.ts';
import { EgressWorld, eip, patientMs } from './egress-world.ts';
import { tellOfLab } from './witness.ts';

const clients = ['worker-1', 'gateway-1', 'gateway-2'];
const noAddressOf: Readonly<Record<Family, { readonly other: Family; readonly flag: string }>> = {
  ipv4: { other: 'ipv6', flag: '-6' },
  ipv6: { other: 'ipv4', flag: '-4' },
};

for (const family of ['ipv4', 'ipv6'] as const) {
  describe(`a cluster with ${family} only`, () => {
    const { other, flag } = noAddressOf[family];
    const name = `e2e-${family}-only`;
    let world: EgressWorld;
    tellOfLab(name);
    before(async () => {
      world = await EgressWorld.start(name, { families: [family], workers: 1 });
      await world.clients(
        ...clients.map((node) => ({ name: node, namespace: 'shop', node, labels: { team: 'shop' } })),
      );
      await world.clients({ name: 'stranger', namespace: 'shop', node: 'worker-1' });
    });
    after(() => world?.stop());

    test('nobody has an address of the other family', async () => {
      assert.equal(world.client('worker-1')[other], '');
      for (const node of clients) {
        const text = await world.lab.exec(node, ['ip', flag, '-br', 'address', 'show', 'scope', 'global']);
        assert.equal(text.trim(), '', node);
      }
    });

    test('pods on every node leave with the EIP of a policy, and with nothing else; a stranger does not', async () => {
      for (const client of clients) await world.untilSource(client, world.node(client));
      await world.gateway('main', { [family]: [eip(100)[family]] });
      const egressIP = { [family]: eip(100)[family] };
      const appliedTo = { podSelector: { matchLabels: { team: 'shop' } } };
      await world.policy('shop/all', { egressGatewayName: 'main', egressIP, appliedTo });
      await world.untilPolicy('shop/all', 'Programmed', 'True');
      await world.lab.resetCounts();
      for (const client of clients) {
        const seen = await world.sources(client, { limitMs: patientMs });
        assert.deepEqual(seen, [eip(100)[family], eip(100)[family]], client);
        const address = world.lab.status.outside[family];
        const { code, stdout } = await world.inPod(client, 'ping', '-c', '2', '-i', '0.2', '-W', '10', address);
        assert.equal(code, 0, stdout);
      }
      assert.deepEqual(await world.strangersAsking(eip(100)), []);
      await world.untilSource('stranger', world.node('worker-1'));
    });

    test('large segments and fragments pass the tunnel, whose ends have addresses of the family only', async () => {
      await world.untilSource('worker-1', eip(100), { bytes: 4_000 });
      const tunnel = await world.lab.exec('worker-1', ['bridge', 'fdb', 'show', 'dev', 'egress.vxlan']);
      for (const node of ['gateway-1', 'gateway-2'])
        assert.match(tunnel, new RegExp(`dst ${world.node(node)[family]} `));
      assert.doesNotMatch(tunnel, new RegExp(`dst ${world.node('gateway-1')[other]} `));
    });

    test('a policy that is deleted lets its pods leave as before', async () => {
      await world.deletePolicies('shop/all');
      for (const client of clients) await world.untilSource(client, world.node(client));
    });
  });
}
