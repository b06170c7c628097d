import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { count, formatSet } from './interval-query.ts';
import { poolOf } from './pool.ts';

const textOf = (...entries: string[]): string[] | string => {
  const pool = poolOf(entries);
  return pool.ok ? formatSet(pool.value) : pool.reason;
};

describe('poolOf', () => {
  it('leaves the network and the broadcast address out of an IPv4 CIDR', () => {
    assert.deepEqual(textOf('10.6.1.0/24'), ['10.6.1.1-10.6.1.254']);
    assert.deepEqual(textOf('10.6.1.0/30'), ['10.6.1.1-10.6.1.2']);
  });

  it('clears host bits, as manifests of today expect', () => {
    assert.deepEqual(textOf('10.6.1.21/24'), ['10.6.1.1-10.6.1.254']);
  });

  it('keeps both addresses of a /31 and the one of a /32', () => {
    assert.deepEqual(textOf('10.6.1.20/31'), ['10.6.1.20/31']);
    assert.deepEqual(textOf('10.6.1.20/32'), ['10.6.1.20']);
  });

  it('keeps every address of an IPv6 CIDR', () => {
    assert.deepEqual(textOf('fd06::/120'), ['fd06::/120']);
    assert.deepEqual(textOf('fd06::5/128'), ['fd06::5']);
  });

  it('keeps a network address that is named by itself or in a range', () => {
    assert.deepEqual(textOf('10.6.1.0/24', '10.6.1.0'), ['10.6.1.0-10.6.1.254']);
    assert.deepEqual(textOf('10.6.1.0-10.6.1.255'), ['10.6.1.0/24']);
  });

  it('does not merge the gap between two networks away', () => {
    assert.deepEqual(textOf('10.6.0.0/24', '10.6.1.0/24'), ['10.6.0.1-10.6.0.254', '10.6.1.1-10.6.1.254']);
  });

  it('counts the largest pools exactly', () => {
    const pool = poolOf(['10.0.0.0/8', 'fd00::/64']);
    assert.ok(pool.ok);
    assert.equal(count(pool.value), (1n << 24n) - 2n + (1n << 64n));
  });

  it('refuses a bad entry with its place', () => {
    const pool = poolOf(['10.6.1.1', '10.6.1.9-10.6.1.2']);
    assert.ok(!pool.ok);
    assert.deepEqual([pool.reason, pool.index], ['RangeReversed', 1]);
  });

  it('of nothing is empty', () => assert.deepEqual(textOf(), []));
});
