import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../process/clock.ts';
import { Loop, type PassResult } from './loop.ts';

/** A loop whose passes take as long as the test lets them. */
const makeLoop = (clock: ManualClock, result: () => PassResult = () => 'done') => {
  const startedMs: number[] = [];
  const passed: { result: PassResult; durationMs: number; ageMs: number }[] = [];
  let passMs = 0;
  const loop = new Loop({
    clock,
    pass: async () => {
      startedMs.push(clock.monotonicMs());
      if (passMs > 0) await new Promise<void>((resolve) => clock.after(passMs, resolve));
      return result();
    },
    hooks: { passed: (ended, durationMs, ageMs) => void passed.push({ result: ended, durationMs, ageMs }) },
  });
  const stop = new AbortController();
  const done = loop.run(stop.signal);
  return {
    loop,
    startedMs,
    passed,
    setPassMs: (ms: number) => {
      passMs = ms;
    },
    end: async () => {
      stop.abort();
      await done;
    },
  };
};

test('a change is acted on at once when nothing is under way', async () => {
  const clock = new ManualClock();
  const { loop, startedMs, end } = makeLoop(clock);
  await clock.advance(1_000);
  assert.deepEqual(startedMs, [], 'no pass without a change');
  loop.touch();
  await clock.advance(0);
  assert.deepEqual(startedMs, [1_000]);
  await end();
});

test('a change that can wait is taken with the next one, and alone when none comes', async () => {
  const clock = new ManualClock();
  const { loop, startedMs, end } = makeLoop(clock);
  await clock.advance(1_000);
  loop.touchWithin(40);
  assert.equal(loop.isIdle, false);
  await clock.advance(15);
  loop.touch();
  await clock.advance(0);
  assert.deepEqual(startedMs, [1_015]);
  assert.equal(loop.isIdle, true);
  await clock.advance(985);
  assert.deepEqual(startedMs, [1_015], 'nothing is left of the wait');
  loop.touchWithin(40);
  await clock.advance(39);
  loop.touchWithin(40);
  assert.deepEqual(startedMs, [1_015]);
  await clock.advance(1);
  assert.deepEqual(startedMs, [1_015, 2_040]);
  await end();
});

test('changes during a pass and right after it are one pass; never two at once', async () => {
  const clock = new ManualClock();
  const { loop, startedMs, passed, setPassMs, end } = makeLoop(clock);
  setPassMs(40);
  loop.touch();
  await clock.advance(10);
  loop.touch();
  assert.equal(loop.isIdle, false);
  await clock.advance(35);
  loop.touch();
  await clock.advance(100);
  assert.deepEqual(startedMs, [0, 50], 'the second pass rests 10 ms after the first');
  assert.deepEqual(passed, [
    { result: 'done', durationMs: 40, ageMs: 40 },
    { result: 'done', durationMs: 40, ageMs: 80 },
  ]);
  assert.equal(loop.isIdle, true);
  await end();
});

test('a change right after a short pass hardly waits', async () => {
  const clock = new ManualClock();
  const { loop, startedMs, setPassMs, end } = makeLoop(clock);
  setPassMs(2);
  loop.touch();
  await clock.advance(1);
  loop.touch();
  await clock.advance(100);
  assert.deepEqual(startedMs, [0, 3]);
  await end();
});

test('changes that come in a burst are taken together in longer and longer steps, and single ones are not', async () => {
  const clock = new ManualClock();
  const { loop, startedMs, setPassMs, end } = makeLoop(clock);
  const burst = async (): Promise<number> => {
    const from = startedMs.length;
    for (let atMs = 0; atMs < 2_000; atMs += 1) {
      loop.touch();
      await clock.advance(1);
    }
    const [last = 0, before = 0] = startedMs.toReversed();
    assert.ok(startedMs.length - from < 30, `${startedMs.length - from} passes for two thousand changes`);
    return last - before;
  };
  setPassMs(40);
  assert.equal(await burst(), 440, 'the longest rest and a pass');
  await clock.advance(1_000);
  setPassMs(5);
  assert.equal(await burst(), 105, 'a short pass has a shorter rest');
  await clock.advance(1_000);
  const seen = startedMs.length;
  loop.touch();
  await clock.advance(6);
  loop.touch();
  await clock.advance(20);
  assert.equal(startedMs.length, seen + 2, 'single changes are acted on at once again');
  await end();
});

test('a pass that failed is tried again with growing waits, and at once after a change', async () => {
  const clock = new ManualClock();
  let result: PassResult = 'again';
  const { loop, startedMs, end } = makeLoop(clock, () => result);
  loop.touch();
  await clock.advance(5_000);
  assert.deepEqual(startedMs, [0, 500, 1_500, 3_500]);
  loop.touch();
  await clock.advance(0);
  assert.deepEqual(startedMs.slice(4), [5_000]);
  result = 'done';
  loop.touch();
  await clock.advance(100_000);
  assert.deepEqual(startedMs.slice(5), [5_000], 'the retry that was set before is gone');
  await end();
});

test('the end waits for the pass that is under way', async () => {
  const clock = new ManualClock();
  const { loop, passed, setPassMs, end } = makeLoop(clock);
  setPassMs(100);
  loop.touch();
  await clock.advance(1);
  const ended = end();
  await clock.advance(200);
  await ended;
  assert.equal(passed.length, 1);
});
