import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../process/clock.ts';
import { LeaseLost } from './lease-lost.ts';
import { defaultQueueLimits, type QueueItem, type QueueLimits, WorkQueue } from './queue.ts';

function setup(limits: Partial<QueueLimits> = {}, random = () => 0) {
  const clock = new ManualClock();
  let retries = 0;
  const queue = new WorkQueue({
    clock,
    random,
    limits: { ...defaultQueueLimits, ...limits },
    hooks: {
      retried() {
        retries += 1;
      },
    },
  });
  const stop = new AbortController();
  return { clock, queue, stop, retries: () => retries };
}

/** Work that lasts until it is told to end. */
function gate() {
  const open = new Map<string, () => void>();
  const begun: string[] = [];
  const work = ({ key }: QueueItem): Promise<void> => {
    assert.ok(!open.has(key), `${key} runs twice at once`);
    begun.push(key);
    return new Promise((resolve) => {
      open.set(key, () => {
        open.delete(key);
        resolve();
      });
    });
  };
  return { work, begun, finish: (key: string) => open.get(key)?.() };
}

test('a key that is added many times while it waits is worked on once, in the order of first addition', async () => {
  const { clock, queue, stop } = setup();
  for (const key of ['b', 'a', 'b', 'c', 'a']) queue.add(key);
  assert.equal(queue.depth, 3);
  const done: string[] = [];
  const run = queue.run(1, stop.signal, async ({ key }) => void done.push(key));
  await clock.advance(0);
  assert.deepEqual(done, ['b', 'a', 'c']);
  stop.abort();
  await run;
});

test('a key added while it is worked on runs once more, and never twice at the same time', async () => {
  const { clock, queue, stop } = setup();
  const { work, begun, finish } = gate();
  const run = queue.run(2, stop.signal, work);
  queue.add('a');
  await clock.advance(0);
  queue.add('a');
  queue.add('a');
  await clock.advance(0);
  assert.deepEqual(begun, ['a']);
  finish('a');
  await clock.advance(0);
  assert.deepEqual(begun, ['a', 'a']);
  finish('a');
  stop.abort();
  await run;
  assert.deepEqual(begun, ['a', 'a']);
});

test('the number of workers is the number of keys worked on at once', async () => {
  const { clock, queue, stop } = setup();
  const { work, begun, finish } = gate();
  const run = queue.run(2, stop.signal, work);
  for (const key of ['a', 'b', 'c']) queue.add(key);
  await clock.advance(0);
  assert.deepEqual(begun, ['a', 'b']);
  finish('b');
  await clock.advance(0);
  assert.deepEqual(begun, ['a', 'b', 'c']);
  finish('a');
  finish('c');
  stop.abort();
  await run;
});

test('age counts from the first change that asked for the key', async () => {
  const { clock, queue, stop } = setup();
  queue.add('a');
  await clock.advance(300);
  queue.add('a');
  await clock.advance(200);
  assert.equal(queue.oldestAgeMs(), 500);
  const ages: number[] = [];
  const run = queue.run(1, stop.signal, async ({ ageMs }) => void ages.push(ageMs));
  await clock.advance(0);
  assert.deepEqual(ages, [500]);
  assert.equal(queue.oldestAgeMs(), 0);
  stop.abort();
  await run;
});

test('of several delayed wishes the earliest counts', async () => {
  const { clock, queue } = setup();
  queue.addAfter('a', 100);
  queue.addAfter('a', 50);
  queue.addAfter('a', 200);
  await clock.advance(49);
  assert.equal(queue.depth, 0);
  await clock.advance(1);
  assert.equal(queue.depth, 1);
});

test('work on a key cancels an older wish to look at it later', async () => {
  const { clock, queue, stop } = setup();
  const done: string[] = [];
  const run = queue.run(1, stop.signal, async ({ key }) => void done.push(key));
  queue.addAfter('a', 1_000);
  queue.add('a');
  await clock.advance(5_000);
  assert.deepEqual(done, ['a']);
  stop.abort();
  await run;
});

test('the back-off of a key doubles from 5 ms to 5 min and ends with forget', async () => {
  const { clock, queue } = setup({}, () => 0.999_999_999);
  const delays: number[] = [];
  const stop = new AbortController();
  let failedMs = 0;
  const run = queue.run(1, stop.signal, async ({ key }) => {
    delays.push(Math.round(clock.monotonicMs() - failedMs));
    failedMs = clock.monotonicMs();
    queue.retry(key);
  });
  queue.add('a');
  await clock.advance(20 * 60_000);
  assert.deepEqual(delays.slice(0, 6), [0, 5, 10, 20, 40, 80]);
  assert.equal(delays.at(-1), 5 * 60_000);
  assert.ok(queue.failures('a') > 16);
  queue.forget('a');
  assert.equal(queue.failures('a'), 0);
  stop.abort();
  await run;
});

test('the bucket spreads the retries of many keys, but never slows down changes', async () => {
  const { clock, queue, stop, retries } = setup({ retriesPerSecond: 10, retryBurst: 5 });
  const tried = new Map<string, number>();
  const run = queue.run(1, stop.signal, async ({ key }) => {
    const count = (tried.get(key) ?? 0) + 1;
    tried.set(key, count);
    if (count === 1) queue.retry(key);
  });
  for (let index = 0; index < 25; index += 1) queue.add(`key-${index}`);
  await clock.advance(0);
  assert.equal(tried.size, 25, 'all first tries are made at once');
  const second = () => [...tried.values()].filter((count) => count === 2).length;
  await clock.advance(99);
  assert.equal(second(), 5, 'the burst');
  await clock.advance(1_001);
  assert.equal(second(), 16, 'the burst and eleven more at ten per second');
  await clock.advance(1_000);
  assert.equal(second(), 25);
  assert.equal(retries(), 25);
  stop.abort();
  await run;
});

test('a stop finishes what waits, drops what is delayed and accepts nothing new', async () => {
  const { clock, queue, stop } = setup();
  const { work, begun, finish } = gate();
  const run = queue.run(1, stop.signal, work);
  queue.add('a');
  queue.add('b');
  queue.addAfter('later', 10);
  await clock.advance(0);
  stop.abort();
  queue.add('new');
  queue.retry('a');
  finish('a');
  await clock.advance(0);
  finish('b');
  await run;
  await clock.advance(1_000);
  assert.deepEqual(begun, ['a', 'b']);
  assert.equal(queue.depth, 0);
});

test('what waits when the lease is lost is left to the next leader', async () => {
  const { clock, queue, stop } = setup();
  const { work, begun, finish } = gate();
  const run = queue.run(1, stop.signal, work);
  queue.add('a');
  queue.add('b');
  await clock.advance(0);
  stop.abort(new LeaseLost('RenewDeadline'));
  finish('a');
  await run;
  assert.deepEqual(begun, ['a']);
});

test('an error of the work ends the run and leaves the rest undone', async () => {
  const { queue, stop } = setup();
  queue.add('a');
  queue.add('b');
  const done: string[] = [];
  const run = queue.run(1, stop.signal, async ({ key }) => {
    done.push(key);
    throw new TypeError('bug');
  });
  await assert.rejects(run, /bug/);
  assert.deepEqual(done, ['a']);
});

test('law: whatever the order of adding and finishing, the last change of a key is followed by work on it', async () => {
  const step = fc.record({ action: fc.constantFrom('add', 'after', 'finish'), key: fc.constantFrom('a', 'b', 'c') });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 3 }), async (steps, workers) => {
      const { clock, queue, stop } = setup();
      /** key -> number of changes so far, and the number that the latest begun work could see. */
      const changes = new Map<string, number>();
      const seen = new Map<string, number>();
      const { work, finish } = gate();
      const run = queue.run(workers, stop.signal, (item) => {
        seen.set(item.key, changes.get(item.key) ?? 0);
        return work(item);
      });
      for (const { action, key } of steps) {
        if (action !== 'finish') changes.set(key, (changes.get(key) ?? 0) + 1);
        if (action === 'add') queue.add(key);
        if (action === 'after') queue.addAfter(key, 10);
        if (action === 'finish') finish(key);
        await clock.advance(action === 'after' ? 10 : 0);
      }
      for (let round = 0; round < 10; round += 1) {
        for (const key of ['a', 'b', 'c']) finish(key);
        await clock.advance(0);
      }
      assert.deepEqual([...seen].sort(), [...changes].sort());
      stop.abort();
      await run;
    }),
    { numRuns: 100 },
  );
});
