import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nodeGroupKey } from '../ownership/node-group.ts';
import { ip } from '../testing/address.ts';
import type { Claim, NodeDesired } from './desired.ts';
import type { HostView } from './input.ts';
import { createUplinkPlaces, uplinkFinding } from './uplink.ts';

const [router4, router6, inner] = [ip('10.6.0.1'), ip('fe80::1'), ip('192.168.0.1')];
/** The tunnel stands on eth1; the outside is behind eth0. */
const host: HostView = {
  parent: { name: 'eth1', mtu: 1500, ipv4: ip('192.168.0.11') as never, ipv6: undefined },
  interfaces: [
    { name: 'eth0', mac: '66:00:00:00:00:01', networks: ['10.6.0.0/16', 'fd06::/64'] },
    { name: 'eth1', mac: '66:00:00:00:00:02', networks: ['192.168.0.0/24'] },
    { name: 'eth2', mac: '66:00:00:00:00:03', networks: ['10.7.0.0/16'] },
  ],
  defaults: [
    { family: 4, interface: 'eth0', nextHop: router4 },
    { family: 4, interface: 'eth1', nextHop: inner },
    { family: 6, interface: 'eth0', nextHop: router6 },
  ],
};
const claim = (text: string, ...interfaces: string[]): Claim => ({ ip: ip(text), interfaces });
const desired = (over: Partial<NodeDesired>): NodeDesired =>
  ({ claims: [], expected: [], standbys: [], nodeGroups: new Set(), ...over }) as NodeDesired;
const placeOf = (over: Partial<NodeDesired>) => createUplinkPlaces()(host, desired(over));

describe('the uplink of a node', () => {
  it('is the interface of the default route, also where the tunnel stands on another one', () => {
    assert.deepEqual(placeOf({ claims: [claim('10.6.1.1', 'eth0')] }), {
      lines: [{ interface: 'eth0', families: [{ family: 4, nextHop: router4 }] }],
      ways: [
        { network: '0.0.0.0/0', announcedOn: [], leavesBy: 'eth0', isGone: false },
        { network: '10.6.0.0/16', announcedOn: ['eth0'], leavesBy: 'eth0', isGone: false },
      ],
    });
  });

  it('has a line for each interface that announces EIPs, also those that only lie ready', () => {
    const place = placeOf({ claims: [claim('fd06::1', 'eth0')], standbys: [claim('10.7.1.1', 'eth2')] });
    assert.deepEqual(place.lines, [
      {
        interface: 'eth0',
        families: [
          { family: 4, nextHop: router4 },
          { family: 6, nextHop: router6 },
        ],
      },
      { interface: 'eth2', families: [{ family: 4, nextHop: undefined }] },
    ]);
    assert.deepEqual(
      place.ways.map(({ network }) => network),
      ['0.0.0.0/0', '::/0', 'fd06::/64', '10.7.0.0/16'],
    );
  });

  it('is that of the families of the node where policies leave with its address', () => {
    const nodeGroups = new Set([nodeGroupKey({ gateway: 'main', node: 'a' })]);
    const { ways } = placeOf({ nodeGroups });
    assert.deepEqual(ways, [{ network: '0.0.0.0/0', announcedOn: [], leavesBy: 'eth0', isGone: false }]);
  });

  it('is nothing on a node that has no EIP to come, and the same value while it says the same', () => {
    assert.deepEqual(placeOf({}), { lines: [], ways: [] });
    const places = createUplinkPlaces();
    const first = places(host, desired({ claims: [claim('10.6.1.1', 'eth0')] }));
    assert.equal(places(host, desired({ standbys: [claim('10.6.1.2', 'eth0')] })), first);
  });

  it('is gone, and not forgotten, when an interface loses its network or route while EIPs need it', () => {
    const places = createUplinkPlaces();
    const needed = desired({ claims: [claim('10.6.1.1', 'eth0'), claim('10.7.1.1', 'eth2')] });
    const goneIn = (now: HostView, wanted = needed): string[] =>
      places(now, wanted)
        .ways.filter(({ isGone }) => isGone)
        .map(({ network }) => network);
    assert.deepEqual(goneIn(host), []);
    const without = (name: string): HostView => ({
      ...host,
      interfaces: host.interfaces.filter((one) => one.name !== name),
      defaults: host.defaults.filter((one) => one.interface !== name && one.interface !== 'eth1'),
    });
    assert.deepEqual(goneIn(without('eth2')), ['10.7.0.0/16']);
    assert.deepEqual(goneIn(without('eth0')), ['0.0.0.0/0', '10.6.0.0/16'], 'and 10.7.0.0/16 is back');
    assert.ok(places(without('eth0'), needed).lines.some((line) => line.interface === 'eth0'));
    assert.deepEqual(goneIn(host), []);
    const [eth0, ...others] = host.interfaces;
    const narrower = { ...host, interfaces: [{ ...(eth0 ?? assert.fail()), networks: ['10.6.0.0/20'] }, ...others] };
    assert.deepEqual(goneIn(narrower), [], 'the EIPs are on link as before');
    assert.deepEqual(goneIn(without('eth0'), desired({})), [], 'no EIP needs it');
  });

  it('is told with family, interface and router', () => {
    const sentences = (['silent', 'carrier', 'route'] as const).map(
      (cause) => uplinkFinding('a', { interface: 'eth0', family: 6, cause, nextHop: router6 }).sentence,
    );
    assert.match(sentences[2] ?? '', /in IPv6: eth0 no longer has the address or the default route that EIPs need\./);
    assert.match(sentences[0] ?? '', /^Node a does not reach the outside in IPv6: router fe80::1 on eth0 is silent\./);
    assert.match(sentences[1] ?? '', /^Node a does not reach the outside in IPv6: eth0 has no carrier\./);
  });
});
