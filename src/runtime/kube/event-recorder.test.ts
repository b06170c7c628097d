import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ManualClock, systemClock } from '../process/clock.ts';
import { startTestApiServer } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import type { ApiError } from './api-error.ts';
import { type EventFacts, EventRecorder } from './event-recorder.ts';
import { createKubeClient } from './http-client.ts';
import type { Resource } from './resource.ts';

const events: Resource = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

const facts: EventFacts = {
  regarding: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'x', uid: 'u' },
  type: 'Warning',
  reason: 'PoolExhausted',
  action: 'Allocate',
  note: 'No address is free.',
};

async function setUp(t: TestContext) {
  const clock = new ManualClock();
  const server = await startTestApiServer({ resources: [events] });
  const client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random: () => 0 });
  const dropped: ApiError[] = [];
  const recorder = new EventRecorder({
    client,
    clock,
    random: Math.random,
    controller: 'sallyport.io/controller',
    instance: 'controller-0',
    onDropped: (_facts, error) => dropped.push(error),
  });
  const stop = new AbortController();
  const running = recorder.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await client.close();
    await server.stop();
  });
  const counts = () => server.list(events).map((event) => seriesCount(event.series));
  return { clock, server, recorder, dropped, counts };
}

function seriesCount(series: unknown): number {
  return typeof series === 'object' && series !== null && 'count' in series ? Number(series.count) : 1;
}

test('the first occurrence is written at once, with all that the API wants', async (t) => {
  const { server, recorder } = await setUp(t);
  recorder.record(facts);
  await eventually('the event is written', () => server.list(events).length === 1);
  const { metadata: _metadata, apiVersion: _apiVersion, kind: _kind, ...event } = server.list(events)[0] ?? {};
  assert.deepEqual(event, {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'sallyport.io/controller',
    reportingInstance: 'controller-0',
    type: 'Warning',
    reason: 'PoolExhausted',
    action: 'Allocate',
    regarding: facts.regarding,
    note: 'No address is free.',
  });
});

test('repeats become one series that is written every half minute', async (t) => {
  const { clock, server, recorder, counts } = await setUp(t);
  recorder.record(facts);
  await eventually('the event is written', () => server.list(events).length === 1);
  for (let repeat = 0; repeat < 100; repeat += 1) recorder.record(facts);
  await clock.advance(29_000);
  assert.deepEqual(counts(), [1]);
  await clock.advance(1_000);
  await eventually('the series is written', () => counts()[0] === 101);
  assert.equal(server.requests(), 2);
});

test('a thousand events of one reason are written little by little, and those of other reasons do not wait', async (t) => {
  const { clock, server, recorder } = await setUp(t);
  for (let index = 0; index < 500; index += 1) recorder.record({ ...facts, note: `Address ${index} has moved.` });
  await eventually('the first are written', () => server.list(events).length === 50);
  recorder.record({ ...facts, reason: 'EipInUse' });
  await eventually('the other is written', () => server.list(events).length === 51);
  await clock.advance(1_000);
  await eventually('one more is written', () => server.list(events).length === 52);
});

test('after a long pause the same thing is a new event', async (t) => {
  const { clock, server, recorder } = await setUp(t);
  recorder.record(facts);
  await eventually('the first is written', () => server.list(events).length === 1);
  await clock.advance(7 * 60_000);
  recorder.record(facts);
  await eventually('the second is written', () => server.list(events).length === 2);
});

test('a series that the server forgot begins anew', async (t) => {
  const { clock, server, recorder } = await setUp(t);
  recorder.record(facts);
  await eventually('the event is written', () => server.list(events).length === 1);
  const [old] = server.list(events);
  server.delete(events, `shop/${old?.metadata.name}`);
  recorder.record(facts);
  await clock.advance(30_000);
  await eventually('a new event is written', () => server.list(events).length === 1);
  assert.notEqual(server.list(events)[0]?.metadata.uid, old?.metadata.uid);
});

test('an event that cannot be written is dropped and reported; the next one is not held up', async (t) => {
  const { server, recorder, dropped } = await setUp(t);
  server.faults.add({ verb: 'create' }, { kind: 'answer', status: 403, reason: 'Forbidden' });
  recorder.record(facts);
  recorder.record({ ...facts, reason: 'Other' });
  await eventually('the other event is written', () => server.list(events).length === 1);
  assert.deepEqual(
    dropped.map(({ status }) => status),
    [403],
  );
});

test('what is about a cluster-scoped object is written in the default namespace, and long notes are cut', async (t) => {
  const { server, recorder } = await setUp(t);
  recorder.record({ ...facts, regarding: { apiVersion: 'v1', kind: 'Node', name: 'n' }, note: 'x'.repeat(2_000) });
  await eventually('the event is written', () => server.list(events).length === 1);
  const [event] = server.list(events);
  assert.equal(event?.metadata.namespace, 'default');
  assert.equal(String(event?.note).length, 1_024);
});
