import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseCidrMasking } from '../ip/index.ts';
import { cidr, ip } from '../testing/address.ts';
import { EIPS_PER_MESSAGE } from './context.ts';
import type { Message } from './message.ts';
import { decode, encode, NETWORKS_PER_BEAT } from './wire.ts';

const recordOf = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record<T>(fields, { noNullPrototype: true });
const number = fc.nat({ max: 2 ** 48 - 1 });
const eip = fc.oneof(
  fc.ipV4().map(ip),
  fc
    .array(fc.nat({ max: 0xffff }), { minLength: 7, maxLength: 7 })
    .map((groups) => ip(`fd00:${groups.map((group) => group.toString(16)).join(':')}`)),
);
const holding = recordOf({ eip, epoch: number });
const listOf = <T>(entry: fc.Arbitrary<T>) => fc.array(entry, { maxLength: EIPS_PER_MESSAGE });
const holdings = listOf(holding);
const wanted = listOf(recordOf({ eip, epoch: number, isOwned: fc.boolean() }));
const why = fc.constantFrom('held' as const, 'soon' as const, 'epoch' as const, 'starting' as const);
const refused = listOf(recordOf({ eip, epoch: number, why }));
const to = fc.constantFrom('node-1', 'a', 'x.example', 'n'.repeat(253), undefined);
const network = fc.oneof(
  fc.constantFrom('0.0.0.0/0', '::/0', '10.6.0.0/16', 'fd06::/64').map(cidr),
  fc.tuple(eip, fc.nat({ max: 32 })).map(([address, length]) => {
    const parsed = parseCidrMasking(`${address}/${length}`);
    return parsed.ok ? parsed.value : assert.fail();
  }),
);
const lost = ['0.0.0.0/0', '::/0'].map((text) => ({ network: cidr(text), isLost: true }));
const unreached = fc.oneof(
  fc.constant(lost),
  fc.array(recordOf({ network, isLost: fc.boolean() }), { maxLength: NETWORKS_PER_BEAT }),
);
const promisedMs = fc.option(number, { nil: undefined });
const message: fc.Arbitrary<Message> = fc.oneof(
  recordOf({ kind: fc.constant('beat' as const), sequence: number, unreached }),
  recordOf({ kind: fc.constant('ack' as const), sequence: number, losses: number, promisedMs }),
  recordOf({ kind: fc.constant('claim' as const), sequence: number, generation: number, wanted }),
  recordOf({ kind: fc.constant('answer' as const), sequence: number, losses: number, granted: holdings, refused }),
  recordOf({ kind: fc.constant('release' as const), released: holdings, to }),
  recordOf({ kind: fc.constantFrom('doubt' as const, 'offer' as const, 'ready' as const), holdings }),
  recordOf({ kind: fc.constant('notice' as const), sequence: number, holdings }),
  recordOf({ kind: fc.constant('noted' as const), sequence: number }),
);
const fitting = message.filter((one) => one.kind !== 'answer' || one.granted.length + one.refused.length <= 40);

describe('wire', () => {
  it('reads what it wrote', () => {
    fc.assert(fc.property(fitting, (one) => assert.deepEqual(decode(encode(one)), one)));
  });

  it('accepts no other bytes than it writes', () => {
    const changed = fc.tuple(fitting, fc.nat(), fc.nat({ max: 255 })).map(([one, place, value]) => {
      const bytes = encode(one);
      bytes[place % bytes.length] = value;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 80 }), changed), (bytes) => {
        const read = decode(bytes);
        assert.ok(read === undefined || Buffer.from(encode(read)).equals(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it('says that everything is in reach, or nothing, as agents of older versions do', () => {
    const beat = (flag: number) => new Uint8Array([0, 0, 0, 0, 0, 0, 7, flag]);
    assert.deepEqual(decode(beat(1)), { kind: 'beat', sequence: 7, unreached: [] });
    assert.deepEqual(decode(beat(0)), { kind: 'beat', sequence: 7, unreached: lost });
    assert.deepEqual(encode({ kind: 'beat', sequence: 7, unreached: lost }), beat(0));
  });

  it('refuses what is cut short or goes on', () => {
    fc.assert(
      fc.property(fitting, fc.nat(), (one, place) => {
        const bytes = encode(one);
        assert.equal(decode(bytes.slice(0, place % bytes.length)), undefined);
        assert.equal(decode(new Uint8Array([...bytes, 0])), undefined);
      }),
    );
  });

  it('writes a heartbeat in 8 bytes, an answer to it in 13, with a promise in 19, and 40 IPv6 claims in less than a packet', () => {
    assert.equal(encode({ kind: 'beat', sequence: 7, unreached: [] }).length, 8);
    assert.equal(encode({ kind: 'ack', sequence: 7, losses: 0, promisedMs: undefined }).length, 13);
    assert.equal(encode({ kind: 'ack', sequence: 7, losses: 0, promisedMs: 400 }).length, 19);
    const all = Array.from({ length: EIPS_PER_MESSAGE }, () => ({ eip: ip('fd00::1'), epoch: 1, isOwned: true }));
    assert.ok(encode({ kind: 'claim', sequence: 7, generation: 1, wanted: all }).length < 1_000);
  });

  it('refuses a name that is no node name', () => {
    const bytes = encode({ kind: 'release', released: [], to: 'ab' });
    bytes[bytes.length - 1] = 0x2f;
    assert.equal(decode(bytes), undefined);
  });

  it('does not write what cannot be read: too many EIPs, numbers out of range', () => {
    const many = Array.from({ length: EIPS_PER_MESSAGE + 1 }, () => ({ eip: ip('10.6.1.1'), epoch: 1 }));
    assert.throws(() => encode({ kind: 'notice', sequence: 1, holdings: many }), /41 EIPs/);
    assert.throws(() => encode({ kind: 'noted', sequence: -1 }), /does not fit/);
    assert.throws(() => encode({ kind: 'noted', sequence: 2 ** 48 }), /does not fit/);
  });
});
