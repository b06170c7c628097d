import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { ManualClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { clientDuring, Leadership, type Term } from './leadership.ts';
import type { LeaseRecord, LeaseStore } from './lease-record.ts';

/** The record on a server that can be cut off. */
class Server implements LeaseStore {
  isReachable = true;
  record: LeaseRecord | undefined;
  #version = 0;

  async read() {
    if (!this.isReachable) throw new Error('cut off');
    return this.record === undefined ? undefined : { record: this.record, version: `${this.#version}` };
  }

  async write(record: LeaseRecord) {
    if (!this.isReachable) throw new Error('cut off');
    this.record = record;
    this.#version += 1;
    return true;
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

const start = (lead: (term: Term) => Promise<void>) => {
  const clock = new ManualClock();
  const store = new Server();
  const log = createLog({ process: 'test', level: 'silent' });
  const leadership = new Leadership({ store, identity: 'only', clock, random: () => 0, log, lead });
  const stop = new AbortController();
  return { clock, store, leadership, stop, run: leadership.run(stop.signal) };
};

test('the work ends when the lease is lost, and begins again when it is won anew', async () => {
  const told: string[] = [];
  const { clock, store, leadership, stop, run } = start(async ({ signal }) => {
    told.push('leads');
    await untilAborted(signal);
    told.push(String(signal.reason));
  });
  await clock.advance(1_000);
  store.isReachable = false;
  await clock.advance(40_000);
  assert.deepEqual(told, ['leads', 'LeaseLost: the lease was lost: RenewDeadline']);
  assert.equal(leadership.isLeader(), false);

  store.isReachable = true;
  await clock.advance(3_000);
  assert.deepEqual(told.slice(2), ['leads']);
  assert.equal(leadership.isLeader(), true);
  stop.abort();
  await run;
});

test('a stop ends the work first and gives the lease back after it', async () => {
  const work = Promise.withResolvers<void>();
  const { clock, store, stop, run } = start(() => work.promise);
  await clock.advance(1_000);
  stop.abort();
  await clock.advance(60_000);
  assert.equal(store.record?.holder, 'only', 'kept while the work goes on');
  work.resolve();
  await run;
  assert.equal(store.record?.holder, undefined);
});

test('work that does not end after the lease was lost ends the process', async () => {
  const { clock, store, run } = start(() => new Promise(() => undefined));
  const failed = assert.rejects(run, /the work of the leader goes on 10 s after the lease was lost/);
  await clock.advance(1_000);
  store.isReachable = false;
  await clock.advance(60_000);
  await failed;
});

test('a bug of the work ends the process', async () => {
  const { clock, run } = start(() => Promise.reject(new TypeError('a bug')));
  const failed = assert.rejects(run, /a bug/);
  await clock.advance(1_000);
  await failed;
});

test('nothing is written once another process may lead, though the work goes on', async () => {
  let isLeader = true;
  const sent: string[] = [];
  const server = { delete: async () => Boolean(sent.push('delete')), get: async () => void sent.push('get') };
  // Only the calls that the test makes.
  const client = clientDuring(server as unknown as KubeClient, { isLeader: () => isLeader });
  const resource = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  await client.delete(resource, { name: 'a' });
  isLeader = false;
  await client.get(resource, { name: 'a' });
  await assert.rejects(
    () => client.delete(resource, { name: 'a' }),
    (error) => error instanceof ApiError && error.reason === 'NotLeader',
  );
  assert.deepEqual(sent, ['delete', 'get']);
});
