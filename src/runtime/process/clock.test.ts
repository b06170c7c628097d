import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, systemClock, wait, withLimit } from './clock.ts';

test('timers fire in order of their time, equal ones in the order in which they were set', async () => {
  const clock = new ManualClock();
  const fired: string[] = [];
  clock.after(20, () => fired.push(`late ${clock.monotonicMs()}`));
  clock.after(10, () => fired.push(`first ${clock.monotonicMs()}`));
  clock.after(10, () => fired.push(`second ${clock.monotonicMs()}`));
  await clock.advance(15);
  assert.deepEqual(fired, ['first 10', 'second 10']);
  await clock.advance(5);
  assert.deepEqual(fired, ['first 10', 'second 10', 'late 20']);
});

test('a timer set by a timer fires in the same advance when it is due', async () => {
  const clock = new ManualClock();
  const times: number[] = [];
  const tick = (): void => {
    times.push(clock.monotonicMs());
    clock.after(10, tick);
  };
  clock.after(10, tick);
  await clock.advance(35);
  assert.deepEqual(times, [10, 20, 30]);
});

test('a cancelled timer does not fire, and cancelling twice is harmless', async () => {
  const clock = new ManualClock();
  const cancel = clock.after(10, () => assert.fail('fired'));
  cancel();
  cancel();
  await clock.advance(100);
});

test('now moves with the monotonic time', async () => {
  const clock = new ManualClock(new Date('2026-03-01T00:00:00Z'));
  await clock.advance(1_500);
  assert.equal(clock.now().toISOString(), '2026-03-01T00:00:01.500Z');
});

test('wait ends with the time or with the signal, whichever is first', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const ended: string[] = [];
  void wait(clock, 10).then(() => ended.push('time'));
  void wait(clock, 1_000, stop.signal).then(() => ended.push('signal'));
  await clock.advance(10);
  assert.deepEqual(ended, ['time']);
  stop.abort();
  await clock.advance(0);
  assert.deepEqual(ended, ['time', 'signal']);
  await wait(clock, 1_000, stop.signal);
});

test('withLimit returns what the call returns', async () => {
  const clock = new ManualClock();
  assert.equal(await withLimit(clock, { ms: 5, error: () => new Error('late') }, async () => 42), 42);
});

test('withLimit rejects when the time is over, also when the call does not listen', async () => {
  const clock = new ManualClock();
  const limited = withLimit(
    clock,
    { ms: 5, error: () => new Error('late') },
    () => new Promise<never>(() => undefined),
  );
  const rejected = assert.rejects(limited, /late/);
  await clock.advance(5);
  await rejected;
});

test('withLimit rejects with the reason of the outer signal', async () => {
  const stop = new AbortController();
  const limit = { ms: 5, error: () => new Error('late'), signal: stop.signal };
  const limited = withLimit(new ManualClock(), limit, () => new Promise<never>(() => undefined));
  stop.abort(new Error('stopped'));
  await assert.rejects(limited, /stopped/);
  await assert.rejects(
    withLimit(new ManualClock(), limit, async () => assert.fail('called')),
    /stopped/,
  );
});

test('the system clock keeps a delay that setTimeout cannot hold', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const maxMs = 2 ** 31 - 1;
  let fired = 0;
  systemClock.after(maxMs + 1_000, () => {
    fired += 1;
  });
  systemClock.after(maxMs + 500, () => assert.fail('cancelled timer fired'))();
  context.mock.timers.tick(maxMs);
  context.mock.timers.tick(999);
  assert.equal(fired, 0);
  context.mock.timers.tick(1);
  assert.equal(fired, 1);
});
