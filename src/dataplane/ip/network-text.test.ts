/** What is said to the kernel, word by word. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NetworkDesired } from '../../core/node/desired.ts';
import { ip } from '../../core/testing/address.ts';
import type { Programs } from '../program.ts';
import { createNetwork } from './network.ts';
import { networkDesired } from './testing/desired.ts';
import { createFakeNetwork, type FakeNetwork, hostLines, runningClock, usualNames } from './testing/fake-network.ts';

/** What has been said since the last call, or since the node was made. */
const listenTo = (network: FakeNetwork): (() => string) => {
  let heard = hostLines.length;
  return () => {
    const fresh = network.kernel.said.slice(heard);
    heard = network.kernel.said.length;
    return fresh.join('\n');
  };
};

const apply = async (network: FakeNetwork, desired: NetworkDesired): Promise<void> => {
  await network.grow(desired);
  await network.trim(desired);
};

const text = (...lines: readonly string[]): string => lines.join('\n');

describe('what is said to the kernel', () => {
  test('a worker: routes before rules, who receives before routes', async () => {
    const network = createFakeNetwork();
    const said = listenTo(network);
    await apply(network, networkDesired({ gateways: [12] }));
    assert.equal(
      said(),
      text(
        'ip: link add name egress.vxlan type vxlan id 100 dev eth0 local 10.6.0.11 dstport 7789 nolearning gbp udpcsum',
        'ip: link set dev egress.vxlan alias sallyport address 66:00:00:00:00:0b mtu 1450 up',
        'bridge: fdb replace 66:00:00:00:00:0c dev egress.vxlan dst 10.6.0.12',
        'ip: addr replace 172.31.0.11/32 dev egress.vxlan',
        'ip: addr replace fd11::11/128 dev egress.vxlan nodad',
        'ip: neigh replace 172.31.0.12 lladdr 66:00:00:00:00:0c dev egress.vxlan nud permanent',
        'ip: neigh replace fd11::12 lladdr 66:00:00:00:00:0c dev egress.vxlan nud permanent',
        'ip: route replace 172.31.0.12 dev egress.vxlan',
        'ip: route replace fd11::12 dev egress.vxlan',
        'ip: route replace default via 172.31.0.12 dev egress.vxlan onlink table 2612',
        'ip: route replace default via fd11::12 dev egress.vxlan onlink table 2612',
        'ip: rule add pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
        'ip -6: rule add pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
      ),
    );
  });

  test('an EIP and a worker that replies go back to', async () => {
    const network = createFakeNetwork();
    await apply(network, networkDesired({ gateways: [12] }));
    const said = listenTo(network);
    said();
    await apply(network, networkDesired({ gateways: [12], workers: [12], eips: [100] }));
    assert.equal(
      said(),
      text(
        'ip: link add name egw-eip type dummy',
        'ip: link set dev egw-eip alias sallyport up',
        'ip: addr replace 10.6.0.100/32 dev egw-eip',
        'ip: addr replace fd06::100/128 dev egw-eip nodad preferred_lft 0',
        'ip: neigh replace proxy fd06::100 dev eth0 protocol 38',
        'ip: route replace default via 172.31.0.12 dev egress.vxlan onlink table 2700012',
        'ip: route replace default via fd11::12 dev egress.vxlan onlink table 2700012',
        'ip: rule add pref 94 fwmark 0x2700000c/0xffffffff lookup 2700012',
        'ip -6: rule add pref 94 fwmark 0x2700000c/0xffffffff lookup 2700012',
      ),
    );
  });

  test('a gateway node that is gone: rules before routes', async () => {
    const network = createFakeNetwork();
    await apply(network, networkDesired({ gateways: [12, 13] }));
    const said = listenTo(network);
    said();
    await apply(network, networkDesired({ gateways: [13] }));
    assert.equal(
      said(),
      text(
        'ip -6: rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
        'ip: rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
        'ip: route del default via 172.31.0.12 dev egress.vxlan table 2612',
        'ip: route del ::/0 via fd11::12 dev egress.vxlan metric 1024 table 2612',
        'ip: route del 172.31.0.12 dev egress.vxlan',
        'ip: route del fd11::12 dev egress.vxlan',
        'ip: neigh del 172.31.0.12 dev egress.vxlan',
        'ip: neigh del fd11::12 dev egress.vxlan',
        'bridge: fdb del 66:00:00:00:00:0c dev egress.vxlan dst 10.6.0.12',
      ),
    );
  });

  test('a jump over the rules lands on one', async () => {
    const network = createFakeNetwork();
    const said = listenTo(network);
    await apply(network, networkDesired({ gateways: [], hasJump: true }));
    assert.deepEqual(
      said()
        .split('\n')
        .filter((line) => line.startsWith('ip: rule')),
      [
        'ip: rule add pref 93 fwmark 0x0/0xff000000 goto 95',
        'ip: rule add pref 95 fwmark 0x26000000/0xffff0000 lookup 2600',
      ],
    );
  });

  test('MAC address and MTU change in place, and neighbours that went with the MAC address are written again', async () => {
    const network = createFakeNetwork();
    await apply(network, networkDesired({ gateways: [12] }));
    const said = listenTo(network);
    said();
    await apply(network, networkDesired({ gateways: [12], mtu: 1400 }));
    assert.equal(said(), 'ip: link set dev egress.vxlan mtu 1400');
    await apply(network, { ...networkDesired({ gateways: [12], mtu: 1400 }), ...newMac });
    assert.equal(
      said(),
      text(
        'ip: link set dev egress.vxlan address 66:00:00:00:00:ff',
        'ip: neigh replace 172.31.0.12 lladdr 66:00:00:00:00:0c dev egress.vxlan nud permanent',
        'ip: neigh replace fd11::12 lladdr 66:00:00:00:00:0c dev egress.vxlan nud permanent',
      ),
    );
  });

  test('another port is another device', async () => {
    const network = createFakeNetwork();
    await apply(network, networkDesired({ gateways: [] }));
    const said = listenTo(network);
    said();
    await apply(network, networkDesired({ gateways: [], port: 7790 }));
    assert.equal(
      said(),
      text(
        'ip: link del dev egress.vxlan',
        'ip: link add name egress.vxlan type vxlan id 100 dev eth0 local 10.6.0.11 dstport 7790 nolearning gbp udpcsum',
        'ip: link set dev egress.vxlan alias sallyport address 66:00:00:00:00:0b mtu 1450 up',
        'ip: addr replace 172.31.0.11/32 dev egress.vxlan',
        'ip: addr replace fd11::11/128 dev egress.vxlan nodad',
      ),
    );
  });

  test('tunnel addresses that an older version gave their range: IPv6 knows each once, so the old one goes first', async () => {
    const network = createFakeNetwork();
    const desired = networkDesired({ gateways: [] });
    const withRange = desired.addresses.map((one) => ({ ...one, prefixLength: one.prefixLength === 32 ? 16 : 112 }));
    await apply(network, { ...desired, addresses: withRange });
    const said = listenTo(network);
    said();
    await apply(network, desired);
    assert.equal(
      said(),
      text(
        'ip: addr del fd11::11/112 dev egress.vxlan',
        'ip: addr replace 172.31.0.11/32 dev egress.vxlan',
        'ip: addr replace fd11::11/128 dev egress.vxlan nodad',
        'ip: addr del 172.31.0.11/16 dev egress.vxlan',
      ),
    );
  });

  test('the tunnel joins packets if that is desired, without another word to ip', async () => {
    const network = createFakeNetwork();
    const desired = networkDesired({ gateways: [] });
    const links = desired.links.map((link) => (link.kind === 'vxlan' ? { ...link, hasGro: true } : link));
    await apply(network, desired);
    assert.equal(network.kernel.hasGro('egress.vxlan'), false);
    const said = listenTo(network);
    said();
    await apply(network, { ...desired, links });
    assert.equal(network.kernel.hasGro('egress.vxlan'), true);
    network.kernel.say('ethtool -K egress.vxlan gro off');
    network.distrust();
    await apply(network, { ...desired, links });
    assert.equal(network.kernel.hasGro('egress.vxlan'), true);
    assert.equal(said(), '');
  });

  test('over IPv6, and without checksums', async () => {
    const network = createFakeNetwork();
    const said = listenTo(network);
    const [link] = networkDesired().links;
    assert.ok(link?.kind === 'vxlan');
    const nothing = { addresses: [], rules: [], routes: [], neighbours: [], forwardings: [], proxies: [] };
    for (const hasChecksums of [true, false]) {
      for (const local of [ip('10.6.0.11'), ip('fd06::11')]) {
        await apply(network, { ...nothing, links: [{ ...link, local, hasChecksums }] });
      }
    }
    assert.deepEqual(
      said()
        .split('\n')
        .filter((line) => line.includes('link add'))
        .map((line) => line.slice(line.indexOf('local'))),
      [
        'local 10.6.0.11 dstport 7789 nolearning gbp udpcsum',
        'local fd06::11 dstport 7789 nolearning gbp noudp6zerocsumtx udp6zerocsumrx',
        'local 10.6.0.11 dstport 7789 nolearning gbp noudpcsum',
        'local fd06::11 dstport 7789 nolearning gbp udp6zerocsumtx udp6zerocsumrx',
      ],
    );
  });

  test('a trim right after a grow with the same value does not read again', async () => {
    const { kernel } = createFakeNetwork();
    let reads = 0;
    const programs: Programs = {
      ...kernel.programs,
      run: async (argv, options) => {
        if (argv.includes('-d')) reads += 1;
        return kernel.programs.run(argv, options);
      },
    };
    const network = createNetwork({ programs, names: usualNames, clock: runningClock });
    const desired = networkDesired();
    await network.grow(desired);
    await network.grow(desired);
    reads = 0;
    await network.trim(desired);
    assert.equal(reads, 0);
    await network.trim(desired);
    assert.equal(reads, 2, 'later, the kernel may have changed: IPv4 and IPv6 are read');
    await network.grow(desired);
    reads = 0;
    await network.trim(networkDesired());
    assert.equal(reads, 2, 'and for another value it was not asked');
  });

  test('remove: rules, entries on devices of others, devices', async () => {
    const network = createFakeNetwork();
    await apply(network, networkDesired({ gateways: [12], eips: [100] }));
    const said = listenTo(network);
    said();
    await network.remove();
    assert.equal(
      said(),
      text(
        'ip -6: rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
        'ip: rule del pref 94 fwmark 0x260c0000/0xffff0000 lookup 2612',
        'ip: neigh del proxy fd06::100 dev eth0',
        'ip: link del dev egress.vxlan',
        'ip: link del dev egw-eip',
      ),
    );
  });
});

const newMac = {
  links: networkDesired({ mtu: 1400 }).links.map((link) =>
    link.kind === 'vxlan' ? { ...link, mac: '66:00:00:00:00:ff' } : link,
  ),
};
