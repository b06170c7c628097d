import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritePriority } from './write-priority.ts';

/** Turns after as many urgent writes at once. */
const after = (urgent: number): WritePriority => {
  const turns = new WritePriority();
  for (let index = 0; index < urgent; index += 1) assert.equal(turns.waitMs(`urgent-${index}`, true, 0), 0);
  return turns;
};

describe('turns', () => {
  it('let everything go while little is urgent', () => {
    assert.equal(after(7).waitMs('a', false, 1), 0);
  });

  it('let what can wait go when a burst is over', () => {
    const turns = after(1_000);
    assert.equal(turns.waitMs('a', false, 1), 500);
    assert.equal(turns.waitMs('a', false, 501), 500);
    assert.equal(turns.waitMs('a', false, 1_001), 0);
  });

  it('let nothing wait for ever', () => {
    const turns = after(0);
    let [waits, nowMs] = [0, 0];
    for (; nowMs < 60_000; nowMs += 50) {
      turns.waitMs('urgent', true, nowMs);
      if (nowMs < 500 || nowMs % 500 !== 0) continue;
      if (turns.waitMs('a', false, nowMs) === 0) break;
      waits += 1;
    }
    assert.deepEqual([waits, nowMs], [40, 20_500]);
  });

  it('forget an object that is gone: another one of its name starts anew', () => {
    const turns = after(8);
    assert.equal(turns.waitMs('a', false, 1), 500);
    turns.forget('a');
    for (let index = 0; index < 8; index += 1) turns.waitMs('urgent', true, 40_000);
    assert.equal(turns.waitMs('a', false, 40_001), 500);
  });
});
