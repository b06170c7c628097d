import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { emptySet, type IntervalSet, parseIpv4, poolOf } from '../ip/index.ts';
import { assignTunnelAddresses, type TunnelClaim } from './addresses.ts';

const setOf = (...texts: string[]): IntervalSet => {
  const pool = poolOf(texts);
  assert.ok(pool.ok);
  return pool.value;
};
const claim = (node: string, text?: string): TunnelClaim => {
  const ipv4 = text === undefined ? undefined : parseIpv4(text);
  return { node, ipv4: ipv4?.ok ? ipv4.value : undefined, ipv6: undefined, mac: undefined };
};
const small = { ipv4: setOf('172.31.0.0/29'), ipv6: emptySet };

describe('assignTunnelAddresses', () => {
  it('gives the same node the same addresses when it is made anew', () => {
    const ranges = { ipv4: setOf('172.31.0.0/16'), ipv6: setOf('fd11::/112') };
    const first = assignTunnelAddresses([claim('a'), claim('b')], ranges);
    assert.deepEqual(assignTunnelAddresses([claim('b'), claim('a')], ranges).get('a'), first.get('a'));
    assert.match(first.get('a')?.mac ?? '', /^66:65(:[0-9a-f]{2}){4}$/);
  });

  it('keeps what is on record', () => {
    assert.equal(assignTunnelAddresses([claim('a', '172.31.0.3')], small).get('a')?.ipv4, '172.31.0.3');
  });

  it('lets the first of two with the same address keep it', () => {
    const given = assignTunnelAddresses([claim('old', '172.31.0.3'), claim('young', '172.31.0.3')], small);
    assert.equal(given.get('old')?.ipv4, '172.31.0.3');
    assert.notEqual(given.get('young')?.ipv4, '172.31.0.3');
    assert.ok(given.get('young')?.ipv4);
  });

  it('replaces an address that is not in the range any more', () => {
    assert.match(assignTunnelAddresses([claim('a', '10.0.0.1')], small).get('a')?.ipv4 ?? '', /^172\.31\.0\.[1-6]$/);
  });

  it('gives none to those who come when the range is full', () => {
    const nodes = Array.from({ length: 8 }, (_, index) => claim(`n${index}`));
    const given = [...assignTunnelAddresses(nodes, small).values()].map(({ ipv4 }) => ipv4);
    assert.equal(given.filter((ip) => ip !== undefined).length, 6);
    assert.equal(new Set(given.filter((ip) => ip !== undefined)).size, 6);
  });

  it('keeps the address of a tunnel that is being removed out of use', () => {
    const only = { ipv4: setOf('172.31.0.1'), ipv6: emptySet };
    assert.equal(
      assignTunnelAddresses([claim('new')], only, [claim('gone', '172.31.0.1')]).get('new')?.ipv4,
      undefined,
    );
  });

  it('takes a range of any size', () => {
    const wide = { ipv4: setOf('10.0.0.0/8'), ipv6: setOf('fd11::/64') };
    const given = assignTunnelAddresses([claim('a')], wide).get('a');
    assert.ok(given?.ipv4?.startsWith('10.') && given.ipv6?.startsWith('fd11::'));
  });
});
