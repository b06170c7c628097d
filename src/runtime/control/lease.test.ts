import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Clock, ManualClock, wait } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { LeaderLease } from './lease.ts';
import type { LeaseStore } from './lease-record.ts';
import { calm, LeaseSimulation } from './lease-simulation.ts';

test('the first candidate leads at once, the second waits', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  await world.advance(0);
  world.add();
  await world.advance(60_000);
  assert.deepEqual(world.leaders(), [first]);
  assert.equal(world.server.stored?.record.holder, 'node-0-1');
  assert.equal(world.server.stored?.record.transitions, 0);
});

test('after a crash another leads within the duration and two retries', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  await world.advance(5_000);
  const second = world.add();
  await world.advance(31_000);
  first.crash();
  const tookMs = await world.untilLeader(30_000 + 2 * 2_400 + 100);
  assert.ok(tookMs >= 30_000 - 2_400, `${tookMs} ms is too soon`);
  assert.deepEqual(world.leaders(), [second]);
  assert.equal(world.server.stored?.record.transitions, 1);
});

test('a graceful stop gives the lease back, and another leads within one retry', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  const second = world.add();
  await world.advance(10_000);
  first.stop();
  await world.advance(0);
  assert.equal(first.lease?.isLeader(), false);
  assert.equal(world.server.stored?.record.holder, undefined);
  await world.untilLeader(2_400 + 100);
  assert.deepEqual(world.leaders(), [second]);
});

test('a leader that cannot renew gives up after the deadline and says so', async () => {
  const world = new LeaseSimulation();
  const only = world.add();
  await world.advance(1_000);
  only.weather = { ...calm, loss: 1 };
  await world.advance(18_000);
  assert.equal(world.leaders().length, 1);
  await world.advance(1_100);
  assert.deepEqual(only.losses, ['RenewDeadline']);
});

/** A lease of its own on a store that the test makes. */
function alone(clock: Clock, store: LeaseStore) {
  const events: string[] = [];
  const log = createLog({ process: 'test', level: 'silent' });
  const lease = new LeaderLease({ store, identity: 'only', clock, random: () => 0, log });
  const stop = new AbortController();
  void lease.run(stop.signal, { onLeading: () => events.push('leading'), onLost: (loss) => events.push(loss) });
  return { lease, events };
}

test('leading counts from when the write was sent, not from when its answer came', async () => {
  const clock = new ManualClock();
  let calls = 0;
  const { lease, events } = alone(clock, {
    async read() {
      calls += 1;
      return calls === 1 ? undefined : new Promise(() => undefined);
    },
    write: () => wait(clock, 3_000).then(() => true),
  });
  await clock.advance(3_000);
  assert.deepEqual(events, ['leading']);
  await clock.advance(16_999);
  assert.equal(lease.isLeader(), true);
  await clock.advance(1);
  assert.equal(lease.isLeader(), false);
  assert.deepEqual(events, ['leading', 'RenewDeadline']);
});

test('an answer that a frozen process reads too late does not make it lead', async () => {
  const clock = new ManualClock();
  let frozenMs = 0;
  let writes = 0;
  const { events } = alone(
    {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs() + frozenMs,
      after: (...timer) => clock.after(...timer),
    },
    {
      read: async () => undefined,
      async write() {
        writes += 1;
        if (writes === 1) frozenMs = 20_000;
        return true;
      },
    },
  );
  await clock.advance(0);
  assert.deepEqual(events, []);
  await clock.advance(2_000);
  assert.deepEqual(events, ['leading'], 'the second try is in time');
});

test('a leader that finds another name in the record gives up at once', async () => {
  const world = new LeaseSimulation();
  const only = world.add();
  await world.advance(1_000);
  const stored = world.server.stored;
  assert.ok(stored);
  world.server.write({ ...stored.record, holder: 'somebody-else' }, stored.version);
  await world.advance(2_000);
  assert.deepEqual(only.losses, ['TakenByOther']);
});

test('a leader whose record is deleted writes it again; nobody who knew it takes it early', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  await world.advance(1_000);
  world.add();
  await world.advance(5_000);
  world.server.stored = undefined;
  await world.advance(30_000);
  assert.deepEqual(world.leaders(), [first]);
});

test('a frozen leader that wakes up late does not lead', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  const second = world.add();
  await world.advance(10_000);
  first.freeze(90_000);
  await world.advance(45_000);
  assert.deepEqual(world.leaders(), [second]);
  await world.advance(46_000);
  assert.deepEqual(world.leaders(), [second]);
  assert.equal(first.losses.length, 1);
});

test('a longer duration in the record is honoured', async () => {
  const world = new LeaseSimulation();
  const first = world.add();
  await world.advance(1_000);
  const stored = world.server.stored;
  assert.ok(stored);
  first.crash();
  world.server.write({ ...stored.record, durationSeconds: 60 }, stored.version);
  world.add();
  await world.advance(59_000);
  assert.equal(world.leaders().length, 0);
  await world.untilLeader(4_000);
});

test('timing that cannot be safe is refused', () => {
  const timing = { durationMs: 10_000, renewDeadlineMs: 10_000, retryMs: 2_000 };
  assert.throws(() => new LeaseSimulation({ timing }).add(), {
    code: 'CONFIG_INVALID',
    message: /lease timing 10000\/10000\/2000 ms/,
  });
});

test('law: under skewed and drifting clocks, faults, crashes and freezes there are never two leaders, and soon one', async () => {
  const machine = fc.record({
    // One clock may run up to 1.4 times as fast as another; the timing allows for less than 1.5.
    rate: fc.double({ min: 0.85, max: 1.19, noNaN: true }),
    skewMs: fc.integer({ min: -86_400_000, max: 86_400_000 }),
  });
  const weather = fc.record({
    loss: fc.constantFrom(0, 0.1, 0.5, 1),
    refusal: fc.constantFrom(0, 0.2, 1),
    maxDelayMs: fc.constantFrom(0, 1_000, 4_000, 8_000),
  });
  const event = fc.record({
    afterMs: fc.integer({ min: 0, max: 20_000 }),
    machine: fc.nat({ max: 3 }),
    what: fc.oneof(
      weather.map((value) => ({ kind: 'weather' as const, value })),
      fc.integer({ min: 1_000, max: 40_000 }).map((ms) => ({ kind: 'freeze' as const, ms })),
      fc.constantFrom({ kind: 'crash' as const }, { kind: 'stop' as const }),
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(machine, { minLength: 2, maxLength: 4 }),
      fc.array(event, { maxLength: 12 }),
      async (seed, machines, events) => {
        const world = new LeaseSimulation({ seed });
        for (const { rate, skewMs } of machines) world.add(rate, skewMs);
        for (const { afterMs, machine: index, what } of events) {
          await world.advance(afterMs);
          const target = world.machines[index % world.machines.length];
          if (target === undefined) continue;
          if (what.kind === 'weather') target.weather = what.value;
          if (what.kind === 'freeze') target.freeze(what.ms);
          if (what.kind === 'stop') target.stop();
          if (what.kind === 'crash' || what.kind === 'stop') {
            await world.advance(100);
            target.crash();
            target.start();
          }
        }
        for (const target of world.machines) target.weather = calm;
        const thawedMs = Math.max(...world.machines.map((target) => target.frozenUntilMs));
        await world.advance(Math.max(0, thawedMs - world.clock.monotonicMs()));
        // The last late write (8 s), then a call given up, a duration and two retries of the slowest clock, a restart.
        await world.untilLeader(8_000 + (10_000 + 30_000 + 2 * 2_400) / 0.85 + 1_000);
        // A leader whose last calls were lost gives up once more: its deadline, and the same again.
        await world.advance((20_000 + 30_000 + 2 * 2_400) / 0.85 + 2_000);
        assert.equal(world.leaders().length, 1, 'it stays');
      },
    ),
    { numRuns: 100 },
  );
});
