import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LineTime } from './line-time.ts';

const LENGTH = '2026-11-15T13:00:00.000Z'.length;
const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
/** An end as nginx writes it, between other bytes. */
const ended = (ms: number): Buffer =>
  Buffer.from(`at ${`${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, '0')}`.padEnd(LENGTH)}!`);

describe('the time of a line', () => {
  it('is when the request began, whatever lines came before', () => {
    const time = new LineTime();
    const end = fc.oneof(
      fc.nat({ max: 8_000_000_000_000 }).map((more) => 1_100_000_000_000 + more),
      // The same seconds again and again, as lines come.
      fc.nat({ max: 5_000 }).map((more) => 1_800_000_000_000 + more),
    );
    fc.assert(
      fc.property(end, fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 100_000_000 })), (endMs, ms) => {
        const bytes = ended(endMs);
        assert.ok(time.write(viewOf(bytes), 3, ms));
        assert.equal(bytes.toString(), `at ${new Date(endMs - ms).toISOString()}!`);
      }),
    );
  });

  it('is not written where there is none', () => {
    const bytes = Buffer.from(`at ${' '.repeat(LENGTH)}!`);
    const before = bytes.toString();
    assert.ok(!new LineTime().write(viewOf(bytes), 3, 0));
    assert.equal(bytes.toString(), before);
  });
});
