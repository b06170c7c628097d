import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ip } from '../../core/testing/address.ts';
import {
  decodeQuery,
  decodeResponse,
  encodeMalformed,
  encodeQuery,
  encodeReply,
  type Query,
  types,
} from './message.ts';

/** Bytes from pieces: numbers are single bytes, texts are labels with their length before them. */
const bytes = (...pieces: readonly (number | string | Buffer)[]): Buffer =>
  Buffer.concat(
    pieces.map((piece) =>
      typeof piece === 'number'
        ? Buffer.from([piece])
        : typeof piece === 'string'
          ? Buffer.from([piece.length, ...Buffer.from(piece, 'latin1')])
          : piece,
    ),
  );
const number = (value: number, size: number): Buffer => {
  const buffer = Buffer.alloc(size);
  buffer.writeUIntBE(value, 0, size);
  return buffer;
};
const header = (flags: number, ...counts: readonly number[]): Buffer =>
  Buffer.concat([number(7, 2), number(flags, 2), ...[0, 1, 2, 3].map((index) => number(counts[index] ?? 0, 2))]);
const question = bytes('db', 'example', 'com', 0, number(1, 2), number(1, 2));
const record = (name: Buffer, type: number, ttl: number, data: Buffer): Buffer =>
  bytes(name, number(type, 2), number(1, 2), number(ttl, 4), number(data.length, 2), data);
const toQuestion = bytes(0xc0, 12);
const answers = (...records: readonly Buffer[]): Buffer =>
  bytes(header(0x8180, 1, records.length), question, ...records);

const value = <T>(decoded: { ok: true; value: T } | { ok: false; sentence: string }): T => {
  assert.ok(decoded.ok, decoded.ok ? '' : decoded.sentence);
  return decoded.value;
};
const refusal = (decoded: { ok: boolean; sentence?: string }): string => decoded.sentence ?? 'it was read';

const label = fc.stringMatching(/^[a-z0-9_-]{1,20}$/);
const name = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.'));
const anyIpv4 = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }).map((parts) => ip(parts.join('.')));
const anyIpv6 = fc
  .array(fc.nat(0xffff), { minLength: 7, maxLength: 7 })
  .map((groups) => ip(`2001:${groups.map((group) => group.toString(16)).join(':')}`));

describe('DNS messages', () => {
  it('reads an answer with aliases, compressed names and records of other kinds', () => {
    const cdn = bytes('cdn', 0xc0, 15);
    const message = answers(
      record(toQuestion, types.CNAME, 30, cdn),
      record(bytes('cdn', 0xc0, 15), types.A, 300, bytes(203, 0, 113, 9)),
      record(bytes('CDN', 'Example', 'com', 0), types.AAAA, 60, Buffer.from('20010db8000000000000000000000001', 'hex')),
      record(toQuestion, 46, 5, bytes(1, 2, 3)),
    );
    assert.deepEqual(value(decodeResponse(message)), {
      id: 7,
      name: 'db.example.com',
      type: types.A,
      rcode: 0,
      isTruncated: false,
      records: [
        { kind: 'alias', name: 'db.example.com', ttlSeconds: 30, target: 'cdn.example.com' },
        { kind: 'address', name: 'cdn.example.com', ttlSeconds: 300, type: 'A', ip: '203.0.113.9' },
        { kind: 'address', name: 'cdn.example.com', ttlSeconds: 60, type: 'AAAA', ip: '2001:db8::1' },
      ],
      negativeSeconds: undefined,
    });
  });

  it('reads how long a missing name is missing, and takes an absurd TTL for zero', () => {
    const soa = bytes('ns', 0, 'admin', 0, ...[1, 2, 3, 4, 17].map((part) => number(part, 4)));
    const missing = bytes(header(0x8183, 1, 0, 1), question, record(bytes(0), types.SOA, 900, soa));
    assert.deepEqual([value(decodeResponse(missing)).rcode, value(decodeResponse(missing)).negativeSeconds], [3, 17]);
    const absurd = answers(record(toQuestion, types.A, 0xffffffff, bytes(203, 0, 113, 9)));
    assert.equal(value(decodeResponse(absurd)).records[0]?.ttlSeconds, 0);
  });

  it('gives no address for an IPv4-mapped one, which stands for the IPv4 address inside', () => {
    const mapped = Buffer.from('00000000000000000000ffff7f000001', 'hex');
    const [found] = value(decodeResponse(answers(record(toQuestion, types.AAAA, 60, mapped)))).records;
    assert.deepEqual(found?.kind === 'address' && found.ip, undefined);
  });

  it('believes a truncated answer only that it is truncated', () => {
    const cut = bytes(header(0x8380, 1, 9), question, 1, 2);
    assert.deepEqual([value(decodeResponse(cut)).isTruncated, value(decodeResponse(cut)).records], [true, []]);
  });

  it('writes bytes that no host name has as numbers, so that they equal no name of a rule', () => {
    const odd = bytes(header(0x0100, 1), 'a.b', 'x y', 'com', 0, number(1, 2), number(1, 2));
    assert.equal(value(decodeQuery(odd)).name, 'a\\046b.x\\032y.com');
  });

  const loop = bytes(header(0x0100, 1), 0xc0, 12, number(1, 2), number(1, 2));
  const forward = bytes(header(0x0100, 1), 0xc0, 14, 'a', 0, number(1, 2), number(1, 2));
  const pair = bytes(header(0x0100, 1), 'a', 0xc0, 12, number(1, 2), number(1, 2));
  const long = bytes(header(0x0100, 1), ...Array<string>(5).fill('x'.repeat(63)), 0, number(1, 2), number(1, 2));
  const refused: readonly [string, Buffer, RegExp][] = [
    ['a pointer to itself', loop, /leads forward/],
    ['a pointer forward', forward, /leads forward/],
    ['a pointer into its own name', pair, /leads forward/],
    ['a name of more than 255 bytes', long, /longer than 255/],
    ['an unknown kind of label', bytes(header(0x0100, 1), 0x41, 0), /unknown kind/],
    ['no question', header(0x0100, 0), /0 questions/],
    ['two questions', bytes(header(0x0100, 2), question, question), /2 questions/],
    ['an answer', bytes(header(0x8180, 1), question), /an answer/],
    ['another operation', bytes(header(0x2800, 1), question), /operation/],
    ['a question with answers', bytes(header(0x0100, 1, 1), question), /brings answers/],
    ['bytes after the question', bytes(header(0x0100, 1), question, 0), /bytes after/],
    ['nothing', Buffer.alloc(0), /too short/],
  ];
  for (const [what, message, sentence] of refused) {
    it(`refuses ${what} as a question`, () => assert.match(refusal(decodeQuery(message)), sentence));
  }

  it('refuses addresses and aliases whose length is wrong', () => {
    assert.match(refusal(decodeResponse(answers(record(toQuestion, types.A, 1, bytes(1, 2, 3))))), /3 bytes/);
    const tail = record(toQuestion, types.CNAME, 1, bytes('a', 0, 9));
    assert.match(refusal(decodeResponse(answers(tail))), /more than a name/);
  });

  it('answers bytes that are no question with their id, and silence or answers with nothing', () => {
    assert.equal(encodeMalformed(bytes(header(0x0100, 2), question))?.toString('hex'), '000780010000000000000000');
    assert.equal(encodeMalformed(Buffer.from([0, 7])), undefined);
    assert.equal(encodeMalformed(header(0x8180, 1)), undefined);
  });

  it('reads every question that it writes', () => {
    fc.assert(
      fc.property(name, fc.nat(0xffff), fc.constantFrom('A', 'AAAA'), (asked, id, type) => {
        const query = value(decodeQuery(encodeQuery({ id, name: asked, type })));
        assert.deepEqual([query.id, query.name, query.type, query.isInternet], [id, asked, types[type], true]);
        assert.equal(query.payloadBytes, 1232);
      }),
    );
  });

  it('reads every answer that it writes, or a truncated one when that is too long', () => {
    const addresses = fc.oneof(fc.array(anyIpv4, { maxLength: 90 }), fc.array(anyIpv6, { maxLength: 90 }));
    fc.assert(
      fc.property(name, addresses, fc.constantFrom(512, 1232, 65535), (asked, ips, limit) => {
        const type = ips[0]?.includes(':') ? types.AAAA : types.A;
        const query: Query = {
          id: 9,
          name: asked,
          type,
          isInternet: true,
          isRecursionDesired: true,
          payloadBytes: 4096,
        };
        const written = encodeReply(query, { rcode: 'ok', ips, ttlSeconds: 33 }, limit);
        assert.ok(written.length <= limit);
        const read = value(decodeResponse(written));
        assert.deepEqual([read.id, read.name, read.type, read.rcode], [9, asked, type, 0]);
        if (read.isTruncated) assert.ok(ips.length > 10);
        else
          assert.deepEqual(
            read.records.map((one) => one.kind === 'address' && one.ip),
            ips,
          );
      }),
    );
  });

  it('never throws, whatever the bytes are', () => {
    const mutated = fc.tuple(fc.nat(200), fc.nat(255), fc.nat(200)).map(([at, byte, length]) => {
      const message = Buffer.from(
        answers(
          record(toQuestion, types.CNAME, 30, bytes('cdn', 0xc0, 15)),
          record(toQuestion, types.A, 1, bytes(1, 2, 3, 4)),
        ),
      );
      if (at < message.length) message[at] = byte;
      return message.subarray(0, length);
    });
    fc.assert(
      fc.property(
        fc.oneof(
          mutated,
          fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
        ),
        (message) => {
          assert.equal(typeof decodeResponse(message).ok, 'boolean');
          assert.equal(typeof decodeQuery(message).ok, 'boolean');
        },
      ),
      { numRuns: 2000 },
    );
  });
});
