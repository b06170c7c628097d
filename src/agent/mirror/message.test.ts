import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ip } from '../../core/testing/address.ts';
import { addressBytes, type ConnectionKey, keyIn } from '../../dataplane/conntrack/connection.ts';
import { sampleConnection } from '../../dataplane/conntrack/testing/connections-conformance.ts';
import { BatchWriter, decodeMirror, encodeAck, type MirrorRecord, SIZE_LIMIT } from './message.ts';

const eips = { 4: addressBytes(ip('10.9.0.100')), 6: addressBytes(ip('fd09::e:100')) } as const;
const number = fc.nat({ max: 2 ** 31 - 1 });
const keyOfFamily = (family: 4 | 6): fc.Arbitrary<ConnectionKey> =>
  fc.nat({ max: 65_535 }).map((port) => sampleConnection({ family, port }).key);
const part: fc.Arbitrary<MirrorRecord> = fc.constantFrom<4 | 6>(4, 6).chain((family) =>
  fc.oneof(
    fc.record({
      kind: fc.constant('open' as const),
      eip: fc.constant(eips[family]),
      connections: fc.array(
        fc.record({ key: keyOfFamily(family), port: fc.nat({ max: 65_535 }), mark: fc.nat({ max: 0xffffffff }) }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
    fc.record({
      kind: fc.constant('closed' as const),
      eip: fc.constant(eips[family]),
      keys: fc.array(keyOfFamily(family), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('whole' as const), eip: fc.constant(eips[family]), since: number }),
  ),
);

/** Writes parts; those of one kind and EIP that follow each other become one. */
const write = (stream: number, place: number, parts: readonly MirrorRecord[]): Buffer => {
  const writer = new BatchWriter(stream, place);
  for (const one of parts) {
    if (one.kind === 'open') for (const connection of one.connections) assert.ok(writer.open(one.eip, connection));
    else if (one.kind === 'closed') for (const key of one.keys) assert.ok(writer.closed(one.eip, key));
    else assert.ok(writer.whole(one.eip, one.since));
  }
  return writer.bytes();
};

const flat = (parts: readonly MirrorRecord[]): unknown[] =>
  parts.flatMap((one): unknown[] => {
    if (one.kind === 'open') return one.connections.map((connection) => [one.eip, { ...connection }]);
    return one.kind === 'closed' ? one.keys.map((key) => [one.eip, key]) : [{ ...one }];
  });

describe('messages of the mirror', () => {
  it('read as they were written', () => {
    fc.assert(
      fc.property(number, number, fc.array(part, { maxLength: 4 }), (stream, place, parts) => {
        const read = decodeMirror(write(stream, place, parts));
        assert.ok(read?.kind === 'batch');
        assert.deepEqual([read.stream, read.number, flat(read.parts)], [stream, place, flat(parts)]);
      }),
    );
    const ack = { kind: 'ack', stream: 1, instance: 2 ** 47, highest: 3, seen: 0xffffffff } as const;
    assert.deepEqual(decodeMirror(encodeAck(ack)), ack);
  });

  it('are refused when they are cut, and never throw', () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), fc.nat(), (parts, cut) => {
        const bytes = write(1, 2, parts);
        const read = decodeMirror(bytes.subarray(0, cut % bytes.length));
        // A cut between two parts leaves a message with fewer of them.
        assert.ok(read === undefined || (read.kind === 'batch' && flat(read.parts).length < flat(parts).length));
      }),
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => void decodeMirror(bytes)));
  });

  it('hold forty connections and more, and say when they are full', () => {
    const writer = new BatchWriter(1, 1);
    let count = 0;
    while (writer.open(eips[4], { key: sampleConnection({ port: count }).key, port: 1, mark: 1 })) count += 1;
    assert.ok(count >= 40 && writer.bytes().length <= SIZE_LIMIT);
    const read = decodeMirror(writer.bytes());
    assert.equal(read?.kind === 'batch' ? flat(read.parts).length : 0, count);
    assert.equal(writer.closed(eips[6], sampleConnection({ family: 6 }).key), false);
  });

  it('hold no key that names another protocol', () => {
    const bytes = write(1, 1, [{ kind: 'closed', eip: eips[4], keys: [sampleConnection().key] }]);
    bytes[bytes.length - 13] = 1;
    assert.equal(decodeMirror(bytes), undefined);
    assert.equal(keyIn(bytes.subarray(-13)), undefined);
  });
});
