import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressError } from '../api/error.ts';
import type { Clock } from '../runtime/process/clock.ts';
import { createLog } from '../runtime/process/log.ts';
import { leave } from './leave.ts';

/** A clock that jumps to whatever is waited for, and readings as functions of its time. */
const leaving = async (taken: (ms: number) => number, actives: (ms: number) => number, canRetire = true) => {
  let nowMs = 0;
  const clock: Clock = {
    now: () => new Date(nowMs),
    monotonicMs: () => nowMs,
    after: (delayMs, callback) => {
      nowMs += delayMs;
      queueMicrotask(callback);
      return () => {};
    },
  };
  const readings = {
    read: async () => {},
    get actives() {
      return actives(nowMs);
    },
    get taken() {
      return taken(nowMs);
    },
  };
  let hasRetired = false;
  const engine = {
    retire: async () => {
      if (!canRetire) throw new EgressError('ENGINE_FAILED', 'away');
      hasRetired = true;
    },
  };
  await leave({ clock, engine, readings, log: createLog({ process: 'test', level: 'silent' }) });
  return { ms: nowMs, hasRetired };
};

test('a replica that nobody uses leaves after five seconds, and sends clients away', async () => {
  assert.deepEqual(
    await leaving(
      () => 7,
      () => 0,
    ),
    { ms: 5_000, hasRetired: true },
  );
});

test('new connections keep a replica until none has come for three seconds, also when each is over at once', async () => {
  const { ms } = await leaving(
    (now) => Math.min(now, 12_000),
    () => 0,
  );
  assert.equal(ms, 15_000);
});

test('open connections are waited for, but not for ever', async () => {
  const until = (endMs: number) =>
    leaving(
      () => 1,
      (now) => (now < endMs ? 2 : 0),
    );
  assert.equal((await until(20_000)).ms, 20_000);
  assert.equal((await until(Number.POSITIVE_INFINITY)).ms, 40_000);
});

test('an engine that does not answer is no reason to stay', async () => {
  const gone = await leaving(
    () => 0,
    () => 0,
    false,
  );
  assert.deepEqual(gone, { ms: 5_000, hasRetired: false });
});
