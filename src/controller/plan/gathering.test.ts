import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock, wait } from '../../runtime/process/clock.ts';
import { Gathering } from './gathering.ts';

const times = { firstMs: 5, limitMs: 160 };

/** A gathering with a loop that notes when it began to work; the work takes `workMs`. */
const rig = (workMs = 0) => {
  const clock = new ManualClock();
  const gathering = new Gathering(clock, times);
  const stop = new AbortController();
  const workedAtMs: number[] = [];
  const ended = (async () => {
    let lastWorkMs = 0;
    while (await gathering.next(lastWorkMs, stop.signal)) {
      workedAtMs.push(clock.monotonicMs());
      await wait(clock, workMs);
      lastWorkMs = workMs;
    }
  })();
  return { clock, gathering, stop, ended, workedAtMs };
};

describe('Gathering', () => {
  it('does not hold back a change that comes alone', async () => {
    const { clock, gathering, workedAtMs } = rig();
    for (const atMs of [100, 200, 300]) {
      await clock.advance(atMs - clock.monotonicMs());
      gathering.tell();
      await clock.advance(0);
    }
    assert.deepEqual(workedAtMs, [100, 200, 300]);
    await clock.advance(10_000);
    assert.equal(workedAtMs.length, 3, 'without a change there is no work');
  });

  it('joins changes that come together', async () => {
    const { clock, gathering, workedAtMs } = rig();
    gathering.tell();
    gathering.tell();
    await clock.advance(1_000);
    assert.deepEqual(workedAtMs, [0]);
  });

  it('rests longer and longer while changes keep coming, and starts anew after a quiet time', async () => {
    const { clock, gathering, workedAtMs } = rig();
    for (let atMs = 0; atMs < 800; atMs += 1) {
      gathering.tell();
      await clock.advance(1);
    }
    assert.deepEqual(workedAtMs, [0, 5, 15, 35, 75, 155, 315, 475, 635, 795]);
    await clock.advance(1_000);
    const before = workedAtMs.length;
    gathering.tell();
    await clock.advance(0);
    assert.equal(workedAtMs.length, before + 1);
  });

  it('leaves half of the time to others when the work takes long', async () => {
    const { clock, gathering, workedAtMs } = rig(500);
    for (let atMs = 0; atMs < 3_100; atMs += 10) {
      gathering.tell();
      await clock.advance(10);
    }
    assert.deepEqual(workedAtMs, [0, 505, 1_505, 2_505]);
  });

  it('does not lose a change that comes while one is worked on', async () => {
    const clock = new ManualClock();
    const gathering = new Gathering(clock, times);
    const { signal } = new AbortController();
    gathering.tell();
    const first = gathering.next(0, signal);
    await clock.advance(0);
    assert.equal(await first, true);
    gathering.tell();
    const second = gathering.next(0, signal);
    await clock.advance(times.firstMs);
    assert.equal(await second, true);
  });

  it('ends at once when it is stopped', async () => {
    const { stop, ended, workedAtMs } = rig();
    stop.abort();
    await ended;
    assert.deepEqual(workedAtMs, []);
  });
});
