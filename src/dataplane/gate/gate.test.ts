import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { batchOf, errorIn } from './set-batch.ts';
import { describeGate } from './testing/conformance.ts';
import { createFakeGate } from './testing/fake-gate.ts';

describeGate('a node in memory', async () => {
  let nowMs = 0;
  // Time goes on when somebody looks.
  const gate = createFakeGate({ monotonicMs: () => nowMs++ });
  return {
    gate,
    isAnswered: async (ip) => !gate.covered.has(ip) || gate.answered().includes(ip),
    tamper: async () => gate.tamper(),
    [Symbol.asyncDispose]: async () => {},
  };
});

describe('a batch', () => {
  it('empties a set and fills it, between a begin and an end, in messages that say their length', () => {
    const batch = batchOf([{ family: 'arp', set: 'held', elements: [{ key: new Uint8Array([10, 6, 0, 1]) }] }]);
    const types: number[] = [];
    for (let at = 0; at < batch.length; at += batch.readUInt32LE(at)) types.push(batch.readUInt16LE(at + 4));
    assert.deepEqual(types, [0x10, 0x0a0e, 0x0a0c, 0x11]);
    assert.ok(batch.includes(Buffer.from('held\0')));
  });

  it('fills maps of other tables, and lets these sleep or wakes them', () => {
    const elements = [{ key: new Uint8Array([10, 6, 0, 1]), value: new Uint8Array([192, 200, 0, 2]) }];
    const batch = batchOf(
      [{ family: 'ip', table: 'moves', set: 'others', elements }],
      [{ family: 'ip', table: 'moves', isDormant: true }],
    );
    const types: number[] = [];
    for (let at = 0; at < batch.length; at += batch.readUInt32LE(at)) types.push(batch.readUInt16LE(at + 4));
    assert.deepEqual(types, [0x10, 0x0a0e, 0x0a0c, 0x0a00, 0x11]);
    assert.ok(batch.includes(Buffer.from([10, 6, 0, 1])) && batch.includes(Buffer.from([192, 200, 0, 2])));
    const asleep = Buffer.from([0, 0, 0, 1]);
    const awake = batchOf([], [{ family: 'ip', table: 'moves', isDormant: false }]);
    assert.deepEqual([batch.includes(asleep), awake.includes(asleep)], [true, false]);
  });

  it('is cut where an attribute would be too long', () => {
    const elements = Array.from({ length: 1_001 }, () => ({ key: new Uint8Array(16), timeoutMs: 1, comment: '7' }));
    const batch = batchOf([{ family: 'ip6', set: 'held', elements }]);
    let count = 0;
    for (let at = 0; at < batch.length; at += batch.readUInt32LE(at)) count += 1;
    assert.equal(count, 3 + 3);
  });

  it('failed if one of the answers says so', () => {
    const answer = (error: number): Buffer => {
      const bytes = Buffer.alloc(36);
      bytes.writeUInt32LE(36, 0);
      bytes.writeUInt16LE(2, 4);
      bytes.writeInt32LE(-error, 16);
      return bytes;
    };
    assert.equal(errorIn([answer(0), Buffer.concat([answer(0), answer(2)])]), 2);
    assert.equal(errorIn([answer(0)]), 0);
  });
});
