import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  aligned,
  answerIn,
  attribute,
  eachAttribute,
  eachMessage,
  flags,
  HEADER_BYTES,
  message,
  type NetlinkMessage,
  nested,
  netfilterHead,
  text,
} from './message.ts';

const messagesIn = (bytes: Buffer): NetlinkMessage[] => {
  const found: NetlinkMessage[] = [];
  eachMessage(bytes, (each) => found.push(each));
  return found;
};

interface Attribute {
  readonly type: number;
  readonly value: Buffer;
}

const attributesIn = (bytes: Buffer, start: number, end: number): { found: Attribute[]; isWhole: boolean } => {
  const found: Attribute[] = [];
  const isWhole = eachAttribute(bytes, start, end, (type, at, valueEnd) =>
    found.push({ type, value: Buffer.from(bytes.subarray(at, valueEnd)) }),
  );
  return { found, isWhole };
};

const someAttributes = fc.array(
  fc
    .tuple(fc.nat({ max: 0x3fff }), fc.uint8Array({ maxLength: 20 }))
    .map(([type, bytes]): Attribute => ({ type, value: Buffer.from(bytes) })),
  { maxLength: 5 },
);

/** What the kernel says to a message: the error, and the message again. */
const answer = (sequence: number, error: number): Buffer => {
  const bytes = message(2, 0, [Buffer.alloc(20)]);
  bytes.writeUInt32LE(sequence, 8);
  bytes.writeInt32LE(-error, HEADER_BYTES);
  return bytes;
};

describe('messages of netlink', () => {
  it('are written as netlink(7) says, byte by byte: one that empties a set', () => {
    const bytes = message(0x0a0e, flags.request, [netfilterHead(3), text(1, 'sallyport'), text(2, 'held')]);
    const wanted =
      '30000000 0e0a 0100 00000000 00000000 03000000 0e00 0100 73616c6c79706f7274000000 0900 0200 68656c64 00000000';
    assert.equal(bytes.toString('hex'), wanted.replaceAll(' ', ''));
  });

  it('hold what was written into them, one behind the other', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 0xffff }), someAttributes), { maxLength: 4 }), (given) => {
        const bytes = Buffer.concat(
          given.map(([type, list]) =>
            message(
              type,
              0,
              list.map((each) => attribute(each.type, each.value)),
            ),
          ),
        );
        const found = messagesIn(bytes).map(({ type, start, end }) => {
          const { found: list, isWhole } = attributesIn(bytes, start + HEADER_BYTES, end);
          assert.ok(isWhole);
          return [type, list];
        });
        assert.deepEqual(found, given);
      }),
    );
  });

  it('hold attributes in attributes, whose type is told without its flag', () => {
    const bytes = nested(3, [text(1, 'held'), nested(2, [])]);
    assert.equal(bytes.readUInt16LE(2), 0x8003);
    const { found } = attributesIn(bytes, 0, bytes.length);
    assert.deepEqual(
      found.map(({ type, value }) => [type, value.length]),
      [[3, 16]],
    );
    const inner = found[0]?.value ?? Buffer.alloc(0);
    assert.deepEqual(
      attributesIn(inner, 0, inner.length).found.map(({ type }) => type),
      [1, 2],
    );
  });

  it('are not told when they are cut', () => {
    const bytes = Buffer.concat([answer(7, 0), message(9, 0, [text(1, 'cut')])]);
    for (let length = 36; length < bytes.length; length += 1) {
      assert.deepEqual(
        messagesIn(bytes.subarray(0, length)).map(({ sequence }) => sequence),
        [7],
      );
    }
    const list = Buffer.concat([attribute(1, Buffer.alloc(4)), attribute(2, Buffer.alloc(4))]);
    assert.deepEqual(attributesIn(list, 0, 14), { found: [{ type: 1, value: Buffer.alloc(4) }], isWhole: false });
  });

  it('may be any bytes, and reading them ends', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (given) => {
        const bytes = Buffer.from(given);
        for (const each of messagesIn(bytes)) {
          assert.ok(each.end <= bytes.length);
          assert.equal(typeof (answerIn(bytes, each) ?? 0), 'number');
        }
        attributesIn(bytes, 0, bytes.length);
        assert.equal(aligned(given.length) % 4, 0);
      }),
    );
  });

  it('answer with the error of the request that they are about', () => {
    const bytes = Buffer.concat([answer(8, 0), answer(9, 17), message(3, 0, [Buffer.alloc(4)]), message(20, 0, [])]);
    assert.deepEqual(
      messagesIn(bytes).map((each) => [each.sequence, answerIn(bytes, each)]),
      [
        [8, 0],
        [9, 17],
        [0, 0],
        [0, undefined],
      ],
    );
  });
});
