import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { Controller, type ControllerOptions, type Reconciled } from './controller.ts';
import { type SourceChange, type WatchSource, watch } from './watch.ts';

/** A source that is filled by hand. It holds values, as an informer does. */
class FakeSource<T> implements WatchSource<T> {
  readonly store = new Map<string, T>();
  readonly #sync = Promise.withResolvers<void>();
  readonly synced = this.#sync.promise;
  readonly #listeners = new Set<(change: SourceChange<T>) => void>();

  sync(): void {
    this.#sync.resolve();
  }

  put(key: string, value: T): void {
    const previous = this.store.get(key);
    this.store.set(key, value);
    for (const listener of this.#listeners) listener({ kind: 'put', key, value, previous });
  }

  delete(key: string): void {
    const previous = this.store.get(key);
    this.store.delete(key);
    if (previous === undefined) return;
    for (const listener of this.#listeners) listener({ kind: 'delete', key, previous });
  }

  subscribe(listener: (change: SourceChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

interface Pod {
  readonly policy: string;
}

function setup(reconcile: ControllerOptions['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = new ManualClock();
  const policies = new FakeSource<string>();
  const pods = new FakeSource<Pod>();
  const results: Reconciled[] = [];
  const lines: { level: string; msg: string; reason?: string; count?: number }[] = [];
  const controller = new Controller(
    {
      name: 'policies',
      watches: [watch('policies', policies), watch('pods', pods, (_, pod) => [pod.policy])],
      reconcile,
      ...options,
    },
    {
      clock,
      random: () => 0,
      log: createLog({
        process: 'test',
        level: 'debug',
        destination: { write: (line) => void lines.push(JSON.parse(line)) },
      }),
      hooks: { retried: () => undefined, reconciled: (result) => void results.push(result) },
    },
  );
  const stop = new AbortController();
  return { clock, policies, pods, results, lines, controller, stop };
}

test('nothing is worked on before every watch is synced', async () => {
  const worked: string[] = [];
  const { clock, policies, pods, controller, stop } = setup(async (key) => {
    worked.push(key);
    return { kind: 'done' };
  });
  policies.put('shop', 'spec');
  const run = controller.run(stop.signal);
  policies.sync();
  await clock.advance(1_000);
  assert.deepEqual(worked, []);
  assert.equal(controller.missing(), 'waits for the first list of pods');
  pods.sync();
  await clock.advance(0);
  assert.deepEqual(worked, ['shop']);
  assert.equal(controller.missing(), undefined);
  stop.abort();
  await run;
});

test('an object that moves from one key to another brings work to both, a deleted one to its last', async () => {
  const worked: string[] = [];
  const { clock, policies, pods, controller, stop } = setup(async (key) => {
    worked.push(key);
    return { kind: 'done' };
  });
  policies.sync();
  pods.sync();
  pods.put('pod-1', { policy: 'shop' });
  const run = controller.run(stop.signal);
  await clock.advance(0);
  assert.deepEqual(worked.splice(0), ['shop']);
  pods.put('pod-1', { policy: 'bank' });
  await clock.advance(0);
  assert.deepEqual(worked.splice(0).sort(), ['bank', 'shop']);
  pods.delete('pod-1');
  await clock.advance(0);
  assert.deepEqual(worked.splice(0), ['bank']);
  stop.abort();
  await run;
  pods.put('pod-1', { policy: 'shop' });
  await clock.advance(0);
  assert.deepEqual(worked, [], 'no longer subscribed');
});

test('it is ready when every initial key was tried once, even if one of them keeps failing', async () => {
  const { clock, policies, pods, controller, stop } = setup(async (key) => {
    if (key === 'broken') throw new Error('no answer');
    return { kind: 'done' };
  });
  for (const key of ['a', 'broken', 'c']) policies.put(key, '');
  policies.sync();
  pods.sync();
  assert.equal(controller.missing(), 'not started');
  const run = controller.run(stop.signal);
  await clock.advance(0);
  assert.equal(controller.missing(), undefined);
  stop.abort();
  await run;
});

test('until then it says how many keys are left', async () => {
  const { clock, policies, pods, controller, stop } = setup(() => new Promise(() => undefined));
  for (const key of ['a', 'b', 'c']) policies.put(key, '');
  policies.sync();
  pods.sync();
  void controller.run(stop.signal);
  await clock.advance(0);
  assert.equal(controller.missing(), '3 of 3 keys not worked off yet');
});

test('a requeue comes back after its time', async () => {
  const times: number[] = [];
  const { clock, policies, pods, controller, stop } = setup(async () => {
    times.push(clock.monotonicMs());
    return { kind: 'requeue', afterMs: 1_000 };
  });
  policies.put('a', '');
  policies.sync();
  pods.sync();
  const run = controller.run(stop.signal);
  await clock.advance(2_500);
  assert.deepEqual(times, [0, 1_000, 2_000]);
  stop.abort();
  await run;
});

test('a refused key is not tried again until something changes, and its reason is reported', async () => {
  const { clock, policies, pods, results, lines, controller, stop } = setup(async () => ({
    kind: 'refused',
    reason: 'GatewayNotFound',
    message: 'gateway "gold" does not exist',
  }));
  policies.put('a', 'v1');
  policies.sync();
  pods.sync();
  const run = controller.run(stop.signal);
  await clock.advance(3_600_000);
  assert.equal(results.length, 1);
  assert.equal(results[0]?.outcome, 'refused');
  assert.equal(results[0]?.reason, 'GatewayNotFound');
  assert.ok(lines.some(({ reason, msg }) => reason === 'GatewayNotFound' && msg === 'gateway "gold" does not exist'));
  policies.put('a', 'v2');
  await clock.advance(0);
  assert.equal(results.length, 2);
  stop.abort();
  await run;
});

test("the world's fault is retried with back-off, and success ends the back-off", async () => {
  let isBroken = true;
  const { clock, policies, pods, results, lines, controller, stop } = setup(async () => {
    if (isBroken) throw Object.assign(new Error('etcd is slow'), { reason: 'Timeout' });
    return { kind: 'done' };
  });
  policies.put('a', '');
  policies.sync();
  pods.sync();
  const run = controller.run(stop.signal);
  await clock.advance(60_000);
  assert.ok(results.length > 5 && results.length < 20, `${results.length} tries in a minute`);
  assert.ok(results.every(({ outcome, reason }) => outcome === 'failed' && reason === 'Timeout'));
  const warned = lines.filter(({ level }) => level === 'warn').map(({ count }) => count);
  assert.deepEqual(warned, [1, 2, 4, 8], 'ever fewer lines');
  isBroken = false;
  await clock.advance(600_000);
  assert.equal(results.at(-1)?.outcome, 'done');
  assert.equal(controller.queue.failures('a'), 0);
  stop.abort();
  await run;
});

test('a bug in reconcile ends the run', async () => {
  const { policies, pods, controller, stop } = setup(async () => {
    throw new TypeError('x is undefined');
  });
  policies.put('a', '');
  policies.sync();
  pods.sync();
  await assert.rejects(controller.run(stop.signal), /x is undefined/);
});

test('a bug in the mapping of a watch ends the run', async () => {
  const source = new FakeSource<string>();
  const mapping = (key: string): string[] => {
    if (key === 'bad') throw new TypeError('cannot map');
    return [key];
  };
  const { clock, controller, stop } = setup(async () => ({ kind: 'done' }), { watches: [watch('x', source, mapping)] });
  source.sync();
  const ended = assert.rejects(controller.run(stop.signal), /cannot map/);
  await clock.advance(0);
  source.put('bad', '');
  await ended;
});

test('reconcile is told when its time is over, and is retried', async () => {
  const { clock, policies, pods, results, controller, stop } = setup(
    (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    { timeLimitMs: 1_000 },
  );
  policies.put('a', '');
  policies.sync();
  pods.sync();
  const run = controller.run(stop.signal);
  await clock.advance(1_000);
  assert.deepEqual(
    results.map(({ outcome, reason, durationMs }) => [outcome, reason, durationMs]),
    [['failed', 'Timeout', 1_000]],
  );
  stop.abort();
  await run;
});

test('reconcile that ignores the end of its time is a bug', async () => {
  const { clock, policies, pods, controller, stop } = setup(() => new Promise(() => undefined), { timeLimitMs: 1_000 });
  policies.put('a', '');
  policies.sync();
  pods.sync();
  const ended = assert.rejects(controller.run(stop.signal), /does not end its work on "a"/);
  await clock.advance(11_000);
  await ended;
});

test('a stop before the watches are synced ends at once', async () => {
  const { controller, stop } = setup(async () => assert.fail('worked'));
  const run = controller.run(stop.signal);
  stop.abort();
  await run;
});
