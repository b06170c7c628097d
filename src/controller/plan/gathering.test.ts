import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock, wait } from '../../runtime/process/clock.ts';
import { ChangeThrottle } from './gathering.ts';

const times = { firstMs: 5, limitMs: 160 };

/** A gathering with a loop that notes when it began to work; the work takes `workMs`. */
const rig = (workMs = 0) => {
  const clock = new ManualClock();
  const gathering = new ChangeThrottle(clock, times);
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

  it('does not hold back changes that come one by one, also after a burst', async () => {
    const { clock, gathering, workedAtMs } = rig(20);
    for (let atMs = 0; atMs < 600; atMs += 1) {
      gathering.tell();
      await clock.advance(1);
    }
    const waits: number[] = [];
    for (let count = 0; count < 20; count += 1) {
      const [toldAtMs, before] = [clock.monotonicMs(), workedAtMs.length];
      gathering.tell();
      while (workedAtMs.length === before) await clock.advance(1);
      waits.push(clock.monotonicMs() - toldAtMs);
      // Whoever waits for what comes of a change makes the next one in the rest after the work.
      await clock.advance(25);
    }
    // The first ones are still held back by the burst.
    assert.ok(Math.max(...waits.slice(2)) <= times.firstMs, `waited ${waits.join(' ')} ms`);
  });

  it('leaves most of the time to others in a burst when the work takes long', async () => {
    const { clock, gathering, workedAtMs } = rig(500);
    for (let atMs = 0; atMs < 5_100; atMs += 10) {
      gathering.tell();
      await clock.advance(10);
    }
    assert.deepEqual(workedAtMs, [0, 505, 2_505, 4_505]);
  });

  it('does not lose a change that comes while one is worked on', async () => {
    const clock = new ManualClock();
    const gathering = new ChangeThrottle(clock, times);
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
