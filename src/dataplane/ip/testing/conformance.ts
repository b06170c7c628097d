/** What every Network must do, whatever kernel is below it: run on the fake in the unit tests, and on Linux in test/kernel. */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { ip } from '../../../core/testing/address.ts';
import { everything, networkDesired } from './desired.ts';
import { usualNames } from './fake-network.ts';
import { applied, essence, nodeTests, type World } from './node.ts';
import { drifts, foreign, takenAway, withRanges } from './tampering.ts';

const small = networkDesired({ gateways: [13], mtu: 1400, self: 21 });
const none = networkDesired({ gateways: [] });

const done = { changed: 0, refused: [] } as const;

/** Declares the suite. */
export const networkConformance = (name: string, open: () => Promise<World>): void => {
  const withNode = nodeTests(open);

  describe(`network: ${name}`, () => {
    withNode('what is desired is there, and the same value changes nothing', async (node) => {
      const network = node.network();
      const outcome = await applied(network, everything);
      assert.deepEqual(outcome.refused, []);
      const actual = await network.read();
      assert.deepEqual(
        actual.addresses.map(({ device, ip: held, prefixLength }) => `${device} ${held}/${prefixLength}`).toSorted(),
        everything.addresses
          .map(({ device, ip: held, prefixLength }) => `${device} ${held}/${prefixLength}`)
          .toSorted(),
      );
      assert.equal(actual.rules.length, everything.rules.length);
      assert.equal(actual.routes.length, everything.routes.length);
      assert.equal(actual.neighbours.length, everything.neighbours.length);
      assert.deepEqual(actual.forwardings.toSorted(byMac), everything.forwardings);
      assert.deepEqual(actual.links.map(({ name: link }) => link).toSorted(), ['egress.vxlan', 'egw-eip']);
      assert.deepEqual(await network.grow(everything), done);
      assert.deepEqual(await network.trim(everything), done);
      assert.deepEqual(await node.network().trim(everything), done, 'another agent, after a restart');
    });

    withNode('the way to a value does not matter', async (node) => {
      const network = node.network();
      await applied(network, small);
      const direct = essence(await network.read());
      for (const [index, other] of [everything, none, networkDesired({ port: 7790, eips: [100] })].entries()) {
        await applied(network, other);
        const outcome = await applied(network, small);
        assert.deepEqual(outcome.refused, []);
        assert.deepEqual(essence(await network.read()), direct, `way ${index}`);
        assert.deepEqual(await applied(network, small), done);
      }
    });

    withNode('what others change of ours comes back', async (node) => {
      const network = node.network();
      await applied(network, everything);
      const before = essence(await network.read());
      for (const drift of drifts) {
        await node.say(drift);
        assert.notDeepEqual(essence(await network.read()), before, `${drift}: must be seen`);
        const outcome = await applied(network, everything);
        assert.deepEqual(outcome.refused, [], drift);
        assert.deepEqual(essence(await network.read()), before, drift);
        assert.deepEqual(await applied(network, everything), done, `${drift}: once is enough`);
      }
    });

    withNode('our address takes no range with it, also where an older version gave it one', async (node) => {
      const network = node.network();
      await applied(network, everything);
      const before = essence(await network.read());
      for (const line of withRanges) await node.say(line);
      await applied(network, everything);
      assert.deepEqual(essence(await network.read()), before);
      assert.deepEqual(await applied(network, everything), done);
    });

    withNode('a rule that is there twice stays while it is desired, and then goes altogether', async (node) => {
      const network = node.network();
      await applied(network, everything);
      await node.say('ip rule add pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612 protocol 99');
      assert.equal((await network.read()).rules.length, everything.rules.length + 1);
      assert.deepEqual(await applied(network, everything), done);
      await network.remove();
      assert.deepEqual((await network.read()).rules, []);
    });

    withNode('what belongs to others stays', async (node) => {
      const network = node.network();
      for (const line of foreign) await node.say(line);
      await applied(network, everything);
      await network.remove();
      // Each can be taken away, so each was there.
      for (const line of foreign) await node.say(takenAway(line));
    });

    withNode('remove takes everything of ours', async (node) => {
      const network = node.network();
      const empty = essence(await network.read());
      await applied(network, everything);
      assert.deepEqual((await network.remove()).refused, []);
      assert.deepEqual(essence(await network.read()), empty);
      assert.deepEqual(await network.remove(), done);
    });

    withNode('devices that were renamed in the configuration leave nothing behind', async (node) => {
      const names = { tunnel: 'tunnel0', holder: 'eips0' };
      await applied(node.network(), everything);
      const network = node.network(names);
      const outcome = await applied(network, networkDesired({ names, eips: [100] }));
      assert.deepEqual(outcome.refused, []);
      assert.deepEqual((await network.read()).links.map(({ name: link }) => link).toSorted(), ['eips0', 'tunnel0']);
    });

    withNode('a device of others with our name is told and left, and the rest is done', async (node) => {
      const network = node.network();
      await node.say('ip link add egw-eip type veth peer name squatter');
      const { refused } = await applied(network, everything);
      assert.deepEqual(
        refused.map(({ what, reason }) => ({ what, reason })),
        [{ what: 'device egw-eip', reason: 'DeviceNameTaken' }],
      );
      assert.equal((await network.read()).routes.length, everything.routes.length);
      await node.say('ip link del egw-eip');
      assert.deepEqual((await applied(network, everything)).refused, []);
    });

    withNode('without the parent interface there is one refusal, and EIPs are held all the same', async (node) => {
      const network = node.network();
      const { refused } = await applied(network, networkDesired({ parent: 'eth9', eips: [100] }));
      assert.deepEqual(
        refused.map(({ reason }) => reason),
        ['ParentInterfaceMissing'],
      );
      assert.match(refused[0]?.message ?? '', /eth9/);
      assert.equal((await network.read()).addresses.length, 2);
    });

    withNode('a port or identifier that others use is told', async (node) => {
      const network = node.network();
      await node.say('ip link add taken type vxlan id 100 dev eth0 local 10.6.0.11 dstport 7789 nolearning gbp');
      assert.deepEqual(
        (await applied(network, everything)).refused.map(({ reason }) => reason),
        ['TunnelPortTaken'],
      );
      await node.say('ip link del taken');
      await node.say('ip link add taken type vxlan id 55 dev eth0 local 10.6.0.11 dstport 7789 nolearning');
      await node.say('ip link set taken up');
      assert.deepEqual(
        (await applied(network, everything)).refused.map(({ reason }) => reason),
        ['TunnelPortTaken'],
      );
      await node.say('ip link del taken');
      assert.deepEqual((await applied(network, everything)).refused, []);
    });

    withNode('one line that is refused stops no other', async (node) => {
      const network = node.network();
      await network.grow(networkDesired({ gateways: [] }));
      const bad = { device: usualNames.tunnel, ip: ip('172.31.0.40'), mac: '66:00' };
      const lost = { device: usualNames.tunnel, ip: ip('172.31.0.41'), mac: '66:00:00' };
      const desired = {
        ...everything,
        neighbours: [...everything.neighbours.slice(0, 3), bad, ...everything.neighbours.slice(3), lost],
      };
      const { refused } = await applied(network, {
        ...desired,
        proxies: [...everything.proxies, { device: 'eth9', ip: everything.proxies[0]?.ip ?? assert.fail() }],
      });
      assert.deepEqual(refused.map(({ ip: about }) => about).toSorted(), ['172.31.0.40', '172.31.0.41', 'fd06::100']);
      assert.deepEqual(new Set(refused.map(({ reason }) => reason)), new Set(['RouteRefused']));
      await applied(node.network(), everything);
      assert.deepEqual(await applied(network, everything), done, 'everything else was made');
    });

    withNode('the parent and the interfaces for announcing are found', async (node) => {
      const network = node.network();
      await applied(network, everything);
      const parent = { name: 'eth0', mtu: 1500, ipv4: '10.6.0.11', ipv6: 'fd06::11' };
      const defaults = [
        { family: 4, interface: 'eth0', nextHop: '10.6.0.1' },
        { family: 6, interface: 'eth0', nextHop: 'fd06::1' },
      ];
      const found = await network.readHost({ kind: 'defaultRoute' });
      const mac = found.interfaces[0]?.mac ?? '';
      assert.match(mac, /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
      const interfaces = [{ name: 'eth0', mac, networks: ['10.6.0.0/24', 'fd06::/64'] }];
      assert.deepEqual(found, { parent, interfaces, defaults });
      assert.deepEqual(await network.readHost({ kind: 'interface', name: 'eth0' }), { parent, interfaces, defaults });
      const missing = await network.readHost({ kind: 'interface', name: 'eth9' });
      assert.ok('finding' in missing.parent && missing.parent.finding.reason === 'ParentInterfaceMissing');
      const bare = await network.readHost({ kind: 'interface', name: 'peer0' });
      assert.ok('finding' in bare.parent && bare.parent.finding.reason === 'ParentAddressMissing');
    });
  });
};

const byMac = (a: { readonly mac: string }, b: { readonly mac: string }): number => (a.mac < b.mac ? -1 : 1);
