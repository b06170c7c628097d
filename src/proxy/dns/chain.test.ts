import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { follow } from './chain.ts';
import { type DnsAnswer, rcodes, types } from './message.ts';
import type { Outside } from './outside.ts';

const address = (name: string, text: string, ttlSeconds = 60): DnsAnswer => ({
  kind: 'address',
  name,
  ttlSeconds,
  type: text.includes(':') ? 'AAAA' : 'A',
  ip: ip(text),
});
const alias = (name: string, target: string, ttlSeconds = 60): DnsAnswer => ({
  kind: 'alias',
  name,
  ttlSeconds,
  target,
});

/** Servers that answer every question with these records. */
const answering = (
  records: readonly DnsAnswer[],
  rest: { rcode?: number; negativeSeconds?: number } = {},
): Outside => ({
  ask: async (name, type) => ({
    kind: 'answer',
    response: {
      id: 1,
      name,
      type: types[type],
      rcode: rest.rcode ?? rcodes.ok,
      isTruncated: false,
      records,
      negativeSeconds: rest.negativeSeconds,
    },
  }),
});
const signal = new AbortController().signal;

describe('follow', () => {
  it('believes no record of a name that was not asked for and that no alias leads to', async () => {
    const records = [
      address('other.test', '203.0.113.66'),
      address('db.test', '203.0.113.1'),
      address('db.test', '2001:db8::1'),
    ];
    const found = await follow(answering(records), 'db.test', 'A', signal);
    assert.deepEqual(found, { kind: 'addresses', ips: ['203.0.113.1'], ttlSeconds: 60 });
  });

  it('follows aliases in any order and takes the shortest TTL on the way', async () => {
    const records = [address('c.test', '203.0.113.1', 50), alias('b.test', 'c.test', 7), alias('a.test', 'b.test', 30)];
    const found = await follow(answering(records), 'a.test', 'A', signal);
    assert.deepEqual(found, { kind: 'addresses', ips: ['203.0.113.1'], ttlSeconds: 7 });
  });

  it('takes the end of aliases without addresses for none, when the server says so', async () => {
    const found = await follow(
      answering([alias('a.test', 'b.test', 30)], { negativeSeconds: 9 }),
      'a.test',
      'A',
      signal,
    );
    assert.deepEqual(found, { kind: 'nodata', ttlSeconds: 9 });
    const missing = await follow(answering([], { rcode: rcodes.nxdomain }), 'a.test', 'A', signal);
    assert.deepEqual(missing, { kind: 'nxdomain', ttlSeconds: 5 });
  });

  it('does not run in rings, within one answer or over many', async () => {
    const ring = answering([alias('a.test', 'b.test'), alias('b.test', 'a.test')]);
    assert.deepEqual(await follow(ring, 'a.test', 'A', signal), { kind: 'failed', sentence: 'more than 10 aliases' });
  });
});
