import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { hostOf, type ParentChoice } from './host.ts';
import type { AddressListed, LinkListed, Listing, RouteListed } from './listing.ts';
import { usualNames } from './testing/fake-network.ts';

const address = (text: string, facts: Partial<AddressListed> = {}): AddressListed => {
  const [held = '', length = ''] = text.split('/');
  return {
    ip: ip(held),
    prefixLength: Number(length),
    isLinkLocal: held.startsWith('fe80:'),
    isSecondary: false,
    isTentative: false,
    isForever: true,
    isDeprecated: false,
    ...facts,
  };
};

const link = (name: string, addresses: readonly AddressListed[], facts: Partial<LinkListed> = {}): LinkListed => ({
  name,
  kind: undefined,
  isUp: true,
  isEthernet: true,
  mtu: 1500,
  mac: '02:00:00:00:00:01',
  alias: undefined,
  master: undefined,
  vxlan: undefined,
  addresses,
  ...facts,
});

const route = (destination: string, device: string, facts: Partial<RouteListed> = {}): RouteListed => ({
  family: 4,
  table: 254,
  type: 'unicast',
  destination,
  via: undefined,
  device,
  metric: 0,
  source: undefined,
  isComplex: false,
  ...facts,
});

const listing = (links: readonly LinkListed[], routes: readonly RouteListed[]): Listing => ({
  links,
  routes,
  rules: [],
  neighbours: [],
  proxies: [],
  forwardings: [],
});

const byRoute: ParentChoice = { kind: 'defaultRoute' };
const parentOf = (links: readonly LinkListed[], routes: readonly RouteListed[], choice: ParentChoice = byRoute) => {
  const { parent } = hostOf(listing(links, routes), choice, usualNames);
  return 'finding' in parent ? parent.finding : parent;
};
const announcing = (...links: readonly LinkListed[]): readonly string[] =>
  hostOf(listing(links, []), byRoute, usualNames).interfaces.map(({ name }) => name);

describe('the interface that carries the tunnel', () => {
  const eth0 = link('eth0', [address('10.6.0.11/24'), address('fd06::11/64')]);
  const eth1 = link('eth1', [address('10.7.0.11/24')], { mtu: 9000 });
  const both = [eth0, eth1];

  test('the default route with the lowest metric wins', () => {
    const routes = [route('default', 'eth0', { metric: 200 }), route('default', 'eth1', { metric: 100 })];
    assert.deepEqual(parentOf(both, routes), { name: 'eth1', mtu: 9000, ipv4: '10.7.0.11', ipv6: undefined });
  });

  test('IPv4 comes before IPv6, whatever the metric', () => {
    const routes = [route('default', 'eth0', { family: 6, metric: 1 }), route('default', 'eth1', { metric: 500 })];
    assert.deepEqual(parentOf(both, routes), { name: 'eth1', mtu: 9000, ipv4: '10.7.0.11', ipv6: undefined });
  });

  test('a node with IPv6 only', () => {
    const only = link('eth0', [address('fd06::11/64'), address('fe80::1/64')]);
    const parent = parentOf([only], [route('default', 'eth0', { family: 6, metric: 1024 })]);
    assert.deepEqual(parent, { name: 'eth0', mtu: 1500, ipv4: undefined, ipv6: 'fd06::11' });
  });

  test('routes in other tables, and those that lead nowhere or into our own tunnel, do not count', () => {
    const tunnel = link(usualNames.tunnel, [address('172.31.0.1/16')], { kind: 'vxlan' });
    const routes = [
      route('default', usualNames.tunnel),
      route('default', 'eth1', { table: 100 }),
      route('default', 'eth1', { type: 'unreachable' }),
      route('default', 'eth0', { metric: 300 }),
    ];
    const parent = { name: 'eth0', mtu: 1500, ipv4: '10.6.0.11', ipv6: 'fd06::11' };
    assert.deepEqual(parentOf([tunnel, ...both], routes), parent);
  });

  test('of several ways of one route, the first', () => {
    const parent = parentOf(both, [route('default', 'eth1', { isComplex: true, via: ip('10.7.0.1') })]);
    assert.deepEqual(parent, { name: 'eth1', mtu: 9000, ipv4: '10.7.0.11', ipv6: undefined });
  });

  test('default routes of all interfaces are told, of each family the best first', () => {
    const [first, second, sixth] = [ip('10.6.0.1'), ip('10.6.0.2'), ip('fd06::1')];
    const routes = [
      route('default', 'eth0', { via: second, metric: 200 }),
      route('default', 'eth0', { via: first, metric: 100 }),
      route('default', 'eth0', { family: 6, via: sixth }),
      route('default', 'eth1', { via: ip('10.7.0.1'), metric: 300 }),
    ];
    const { defaults } = hostOf(listing(both, routes), byRoute, usualNames);
    assert.deepEqual(defaults, [
      { family: 4, interface: 'eth0', nextHop: first },
      { family: 4, interface: 'eth0', nextHop: second },
      { family: 4, interface: 'eth1', nextHop: ip('10.7.0.1') },
      { family: 6, interface: 'eth0', nextHop: sixth },
    ]);
  });

  test('a named interface needs no route', () => {
    const parent = parentOf(both, [route('default', 'eth0')], { kind: 'interface', name: 'eth1' });
    assert.deepEqual(parent, { name: 'eth1', mtu: 9000, ipv4: '10.7.0.11', ipv6: undefined });
  });

  test('addresses that stay with the node come before those that wander or fade', () => {
    const busy = link('eth0', [
      address('10.6.0.5/32'),
      address('10.6.0.9/24', { isSecondary: true }),
      address('10.6.0.11/24'),
      address('fd06::1/64', { isDeprecated: true }),
      address('fd06::2/64', { isTentative: true }),
      address('fd06::3/128'),
      address('fd06::9/64'),
      address('fe80::1/64'),
    ]);
    const routes = [route('default', 'eth0')];
    assert.deepEqual(parentOf([busy], routes), { name: 'eth0', mtu: 1500, ipv4: '10.6.0.11', ipv6: 'fd06::9' });
    const named = [route('default', 'eth0', { source: ip('10.6.0.5') })];
    assert.deepEqual(parentOf([busy], named), { name: 'eth0', mtu: 1500, ipv4: '10.6.0.5', ipv6: 'fd06::9' });
  });

  test('what is missing is a finding that says what and what to do', () => {
    const remedy = 'Correct tunnelDetectMethod or tunnelDetectCustomInterface, or bring the interface up.';
    assert.deepEqual(parentOf(both, []), {
      reason: 'ParentInterfaceMissing',
      sentence: `The node has no default route, so no interface was found for the tunnel. ${remedy}`,
    });
    assert.deepEqual(parentOf(both, [], { kind: 'interface', name: 'eth9' }), {
      reason: 'ParentInterfaceMissing',
      sentence: `The interface eth9 for the tunnel does not exist. ${remedy}`,
    });
    const down = link('eth0', [address('10.6.0.11/24')], { isUp: false });
    assert.deepEqual(parentOf([down], [], { kind: 'interface', name: 'eth0' }), {
      reason: 'ParentInterfaceMissing',
      sentence: `The interface eth0 for the tunnel is down. ${remedy}`,
    });
    const bare = link('eth0', [address('fe80::1/64')]);
    assert.deepEqual(parentOf([bare], [route('default', 'eth0')]), {
      reason: 'ParentAddressMissing',
      sentence:
        'The interface eth0 for the tunnel has no usable address. Give it an address, or choose another interface in the configuration.',
    });
  });
});

describe('the interfaces on which EIPs are announced', () => {
  const own = [address('10.6.0.11/24')];

  test('network cards, bonds, VLANs and bridges with an address of their own', () => {
    assert.deepEqual(
      announcing(
        link('eth0', own),
        link('bond0', own, { kind: 'bond' }),
        link('eth0.5', own, { kind: 'vlan' }),
        link('br0', own, { kind: 'bridge' }),
        link('single0', [address('192.0.2.7/32')]),
      ),
      ['bond0', 'br0', 'eth0', 'eth0.5', 'single0'],
    );
  });

  test('an uplink that is a veth pair, as in a cluster of containers', () => {
    assert.deepEqual(announcing(link('eth0', own, { kind: 'veth' })), ['eth0']);
  });

  test('not: pods, ports, tunnels, what is down, what is no Ethernet, what is ours', () => {
    const none: readonly LinkListed[] = [
      link('cali1', [address('fe80::1/64')], { kind: 'veth' }),
      link('veth1', [address('10.244.1.1/32')], { kind: 'veth' }),
      link('veth2', [], { kind: 'veth', master: 'cni0' }),
      link('eth1', own, { master: 'bond0' }),
      link('flannel.1', [address('10.244.1.0/32')], { kind: 'vxlan' }),
      link('kube-ipvs0', [address('10.96.0.1/32')], { kind: 'dummy' }),
      link('eth2', own, { isUp: false }),
      link('tun0', own, { isEthernet: false }),
      link('lo', [address('127.0.0.1/8')], { isEthernet: false }),
      link(usualNames.tunnel, own, { kind: 'vxlan' }),
      link(usualNames.holder, own, { kind: 'bridge' }),
    ];
    assert.deepEqual(announcing(...none), []);
  });

  test('their networks are what is reached without a router', () => {
    const host = hostOf(
      listing(
        [link('eth0', own)],
        [
          route('default', 'eth0', { via: ip('10.6.0.1') }),
          route('10.6.0.0/24', 'eth0'),
          route('10.9.0.0/16', 'eth0', { via: ip('10.6.0.9') }),
          route('10.8.0.0/16', 'eth1'),
          route('10.6.0.0/24', 'eth0', { metric: 100 }),
          route('192.0.2.1', 'eth0'),
          route('fd06::/64', 'eth0', { family: 6 }),
          route('fe80::/64', 'eth0', { family: 6 }),
          route('10.5.0.0/16', 'eth0', { table: 100 }),
        ],
      ),
      byRoute,
      usualNames,
    );
    assert.deepEqual(host.interfaces, [
      { name: 'eth0', mac: '02:00:00:00:00:01', networks: ['10.6.0.0/24', 'fd06::/64'] },
    ]);
  });
});
