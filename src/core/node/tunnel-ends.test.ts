import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AddressPair } from '../cluster/view.ts';
import { smallCluster } from '../testing/small-cluster.ts';
import { canReach, endsOf, factsOf, haveSameEnds, type TunnelFacts } from './tunnel-ends.ts';

const both = { hasIpv4: true, hasIpv6: true };
const facts = smallCluster({}).tunnels.map(factsOf);
const nodesOf = (tunnels: readonly TunnelFacts[], families = both): string[] => [...endsOf(tunnels, families).keys()];
const changed = (node: string, over: Partial<TunnelFacts>): TunnelFacts[] =>
  facts.map((one) => (one.node === node ? { ...one, ...over } : one));

describe('endsOf', () => {
  it('has every complete tunnel, by name', () => {
    assert.deepEqual(nodesOf(facts.toReversed()), ['a', 'b', 'w']);
  });

  const incomplete: readonly [string, Partial<TunnelFacts>][] = [
    ['mark', { mark: undefined }],
    ['readable mark', { mark: '0x12345678' }],
    ['MAC address', { mac: undefined }],
    ['IPv4 address', { ipv4: undefined }],
    ['IPv6 address', { ipv6: undefined }],
  ];
  for (const [what, over] of incomplete) {
    it(`leaves out a tunnel without a ${what}`, () => assert.deepEqual(nodesOf(changed('b', over)), ['a', 'w']));
  }

  it('asks for no address of a family that is turned off', () => {
    assert.deepEqual(nodesOf(changed('b', { ipv6: undefined }), { hasIpv4: true, hasIpv6: false }), ['a', 'b', 'w']);
  });

  for (const field of ['mark', 'mac', 'ipv4', 'ipv6'] as const) {
    it(`gives a ${field} that two tunnels record to the older one`, () => {
      const [a] = facts;
      assert.ok(a !== undefined);
      const tunnels = changed('b', { [field]: a[field] });
      assert.deepEqual(nodesOf(tunnels), ['a', 'w']);
      const younger = tunnels.map((one) => (one.node === 'a' ? { ...one, createdAtMs: one.createdAtMs + 1 } : one));
      assert.deepEqual(nodesOf(younger), ['b', 'w']);
    });
  }
});

describe('haveSameEnds', () => {
  const ends = endsOf(facts, both);
  it('is true for a copy', () => assert.ok(haveSameEnds(ends, endsOf(facts.toReversed(), both))));

  const [a, b] = facts;
  assert.ok(a !== undefined && b !== undefined);
  const others: readonly [string, Partial<TunnelFacts>][] = [
    ['mark', { mark: '0x26abcd00' }],
    ['MAC address', { mac: '66:66:66:66:66:66' }],
    ['IPv4 address', { ipv4: b.parent.ipv4 }],
    ['IPv6 address', { ipv6: b.parent.ipv6 }],
    ['IPv4 parent address', { parent: { ...a.parent, ipv4: undefined } }],
    ['IPv6 parent address', { parent: { ...a.parent, ipv6: undefined } }],
  ];
  for (const [what, over] of others) {
    it(`is false for another ${what}`, () => assert.ok(!haveSameEnds(ends, endsOf(changed('a', over), both))));
  }

  it('is false for another node', () => {
    const [, ...rest] = facts;
    assert.ok(!haveSameEnds(ends, endsOf(rest, both)));
    assert.ok(!haveSameEnds(endsOf(rest, both), ends));
    assert.ok(!haveSameEnds(ends, endsOf([{ ...a, node: 'c' }, ...rest], both)));
  });
});

describe('canReach', () => {
  const [one, other] = facts.map(({ parent }) => parent);
  assert.ok(one !== undefined && other !== undefined);
  const none: AddressPair = { ipv4: undefined, ipv6: undefined };
  const cases: readonly [string, AddressPair, AddressPair, boolean][] = [
    ['both have both families', one, other, true],
    ['both have IPv4 only', { ...none, ipv4: one.ipv4 }, { ...none, ipv4: other.ipv4 }, true],
    ['one has IPv4 and the other too', one, { ...none, ipv4: other.ipv4 }, true],
    ['both have IPv6 only', { ...none, ipv6: one.ipv6 }, { ...none, ipv6: other.ipv6 }, true],
    ['one uses IPv4 and the other has IPv6 only', one, { ...none, ipv6: other.ipv6 }, false],
    ['one has no address', one, none, false],
  ];
  for (const [when, from, to, expected] of cases) {
    it(`is ${expected} when ${when}, both ways`, () =>
      assert.deepEqual([canReach(from, to), canReach(to, from)], [expected, expected]));
  }
});
