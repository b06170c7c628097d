/** The informer against the in-memory API server and its faults. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../process/clock.ts';
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import { fastClock } from '../testing/fast-clock.ts';
import type { Fault, FaultTarget, StreamFault } from '../testing/faults.ts';
import { createKubeClient } from './http-client.ts';
import { Informer, type InformerOptions, type InformerProblem } from './informer.ts';
import { coreResource, type KubeObject, type Resource } from './resource.ts';

const configMaps = coreResource('configmaps', 'ConfigMap', true);

interface ConfigMap extends KubeObject {
  readonly data: { readonly value: string };
}

interface Kept {
  readonly value: string;
}

function configMap(name: string, value: string): ConfigMap {
  return { metadata: { namespace: 'test', name }, data: { value } };
}

type Overrides = Partial<InformerOptions<Kept, 'byValue', ConfigMap>>;

/** A running informer and what a listener heard. */
async function follow(t: TestContext, server: TestApiServer, overrides: Overrides = {}) {
  const client = createKubeClient({
    access: server.access,
    userAgent: 'test',
    clock: systemClock,
    random: Math.random,
  });
  const problems: InformerProblem[] = [];
  const informer = new Informer<Kept, 'byValue', ConfigMap>({
    client,
    resource: configMaps,
    project: ({ data }) => ({ value: data.value }),
    indexes: { byValue: ({ value }) => [value] },
    clock: systemClock,
    random: Math.random,
    onProblem: (problem) => problems.push(problem),
    ...overrides,
  });
  const told: string[] = [];
  informer.subscribe((change) => {
    told.push(change.kind === 'put' ? `${change.key}=${change.value.value}` : `${change.key} deleted`);
  });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await client.close();
  });
  return { informer, told, problems, running, stop };
}

async function startServer(t: TestContext, options: Partial<TestApiServerOptions> = {}): Promise<TestApiServer> {
  const server = await startTestApiServer({ resources: [configMaps], ...options });
  t.after(() => server.stop());
  return server;
}

function values(informer: Informer<Kept, 'byValue', ConfigMap>): Record<string, string> {
  return Object.fromEntries([...informer.store.entries()].map(([key, { value }]) => [key, value]));
}

for (const hasStreamingLists of [true, false]) {
  const how = hasStreamingLists ? 'a streaming list' : 'pages, when the server has no streaming lists';

  test(`reads the collection by ${how} and then follows it`, async (t) => {
    const server = await startServer(t, { hasStreamingLists });
    for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(configMaps, configMap(name, '1'));
    const { informer, told, problems } = await follow(t, server, { pageSize: 2 });
    await informer.synced;
    assert.deepEqual(told, ['test/a=1', 'test/b=1', 'test/c=1', 'test/d=1', 'test/e=1']);
    server.put(configMaps, configMap('a', '2'));
    server.delete(configMaps, 'test/b');
    await eventually('both changes arrive', () => told.length === 7);
    assert.deepEqual(told.slice(5), ['test/a=2', 'test/b deleted']);
    assert.deepEqual(informer.store.keysBy('byValue', '1'), ['test/c', 'test/d', 'test/e']);
    assert.deepEqual(problems, []);
  });

  test(`what vanished during an outage becomes a delete (${how})`, async (t) => {
    const server = await startServer(t, { hasStreamingLists });
    server.put(configMaps, configMap('gone', '1'));
    server.put(configMaps, configMap('kept', '1'));
    const { informer, told } = await follow(t, server);
    await informer.synced;
    await eventually('the watch is open', () => server.openWatches === 1);
    server.breakWatches('stall');
    server.delete(configMaps, 'test/gone');
    server.put(configMaps, configMap('new', '1'));
    server.compact();
    server.breakWatches('drop');
    await eventually('the relist is done', () => informer.stats().relists === 1);
    assert.deepEqual(values(informer), { 'test/kept': '1', 'test/new': '1' });
    assert.deepEqual(told.slice(2).sort(), ['test/gone deleted', 'test/new=1']);
  });
}

const resumable: readonly StreamFault[] = ['end', 'drop', 'cut'];
for (const fault of resumable) {
  test(`a watch that breaks (${fault}) is resumed where it was, without a relist`, async (t) => {
    const server = await startServer(t);
    server.put(configMaps, configMap('a', '1'));
    const { informer } = await follow(t, server);
    await informer.synced;
    server.put(configMaps, configMap('a', '2'));
    await eventually('the change arrives', () => informer.store.get('test/a')?.value === '2');
    server.breakWatches(fault);
    server.put(configMaps, configMap('a', '3'));
    await eventually('the next change arrives', () => informer.store.get('test/a')?.value === '3');
    assert.equal(informer.stats().relists, 0);
    assert.equal(informer.stats().reconnects, 1);
  });
}

for (const fault of ['gone', 'garbage'] as const) {
  test(`a watch that cannot be trusted (${fault}) is started over`, async (t) => {
    const server = await startServer(t);
    const { informer } = await follow(t, server);
    await informer.synced;
    await eventually('the watch is open', () => server.openWatches === 1);
    server.breakWatches(fault);
    server.put(configMaps, configMap('a', '1'));
    await eventually('the change arrives', () => informer.store.get('test/a')?.value === '1');
    assert.equal(informer.stats().relists, 1);
  });
}

test('a silent connection is noticed and replaced', async (t) => {
  const server = await startServer(t);
  const { informer, problems } = await follow(t, server, { stallMs: 100 });
  await informer.synced;
  await eventually('the watch is open', () => server.openWatches === 1);
  server.breakWatches('stall');
  server.put(configMaps, configMap('a', '1'));
  await eventually('the change arrives', () => informer.store.get('test/a')?.value === '1');
  assert.ok(problems.some((problem) => problem.kind === 'disconnected' && problem.error.reason === 'Timeout'));
});

test('bookmarks keep a quiet watch alive and move its version past compaction', async (t) => {
  const server = await startServer(t);
  const { informer, problems } = await follow(t, server);
  await informer.synced;
  const other: Resource = { ...configMaps, plural: 'others' };
  server.put(other, configMap('unrelated', '1'));
  await eventually('the watch is open', () => server.openWatches === 1);
  // The instant at which something was last heard; not how long ago, which grows while a busy machine lets us wait.
  const heardAtMs = () => systemClock.monotonicMs() - (informer.stats().silentMs ?? 0);
  const sentAtMs = systemClock.monotonicMs();
  server.sendBookmarks();
  await eventually('the bookmark was heard', () => heardAtMs() > sentAtMs);
  server.compact();
  server.breakWatches('drop');
  server.put(configMaps, configMap('a', '1'));
  await eventually('the change arrives', () => informer.store.get('test/a')?.value === '1');
  assert.equal(informer.stats().relists, 0, 'the version of the bookmark was young enough');
  assert.equal(problems.length, 1);
});

test('events that come twice are told once', async (t) => {
  const server = await startServer(t);
  server.faults.add({ verb: 'watch' }, { kind: 'duplicate' });
  const { informer, told } = await follow(t, server);
  await informer.synced;
  server.put(configMaps, configMap('a', '1'));
  server.put(configMaps, configMap('b', '1'));
  server.delete(configMaps, 'test/a');
  await eventually('all arrived', () => told.length >= 3);
  assert.deepEqual(told, ['test/a=1', 'test/b=1', 'test/a deleted']);
});

const faultsAtStart: ReadonlyArray<readonly [string, FaultTarget, Fault]> = [
  ['a server error', {}, { kind: 'answer', status: 500 }],
  ['a reset connection', {}, { kind: 'drop' }],
  ['an answer that is no JSON', { verb: 'list' }, { kind: 'garbage' }],
  ['a continue token that is too old', { isContinued: true }, { kind: 'answer', status: 410, reason: 'Expired' }],
  ['a list in another order', { verb: 'list' }, { kind: 'reorder' }],
  ['a refusal of rights', { verb: 'list' }, { kind: 'answer', status: 403, reason: 'Forbidden' }],
];
for (const [what, target, fault] of faultsAtStart) {
  test(`${what} during the first reading does not stop it`, async (t) => {
    const server = await startServer(t, { hasStreamingLists: false });
    for (const name of ['a', 'b', 'c']) server.put(configMaps, configMap(name, '1'));
    server.faults.add(target, fault);
    const { informer } = await follow(t, server, { pageSize: 1 });
    await informer.synced;
    assert.deepEqual(values(informer), { 'test/a': '1', 'test/b': '1', 'test/c': '1' });
  });
}

test('a pause that the server asks for is kept', async (t) => {
  const server = await startServer(t);
  server.faults.add({ verb: 'watch' }, { kind: 'answer', status: 429, retryAfterSeconds: 1 });
  const { informer, problems } = await follow(t, server, { clock: fastClock(20) });
  await informer.synced;
  assert.deepEqual(
    problems.map((problem) => (problem.kind === 'disconnected' ? problem.retryMs : 0)),
    [1_000],
  );
});

test('a reading that broke half-way is repeated from its start', async (t) => {
  const server = await startServer(t);
  for (const name of ['a', 'b', 'c']) server.put(configMaps, configMap(name, '1'));
  server.faults.add({ verb: 'watch' }, { kind: 'stream', afterEvents: 2, how: 'drop' });
  const { informer, told } = await follow(t, server);
  await informer.synced;
  assert.deepEqual(told, ['test/a=1', 'test/b=1', 'test/c=1']);
});

test('an object that cannot be read keeps its last value, is counted, and stops nothing', async (t) => {
  const server = await startServer(t);
  server.put(configMaps, configMap('a', '1'));
  const { informer, told, problems } = await follow(t, server, {
    project: ({ data }) => {
      if (data.value === 'broken') throw new Error('cannot read this');
      return { value: data.value };
    },
  });
  await informer.synced;
  server.put(configMaps, configMap('a', 'broken'));
  server.put(configMaps, configMap('b', 'broken'));
  server.put(configMaps, configMap('c', '1'));
  await eventually('later objects arrive', () => informer.store.has('test/c'));
  assert.deepEqual(values(informer), { 'test/a': '1', 'test/c': '1' });
  assert.deepEqual([...informer.unreadable].sort(), ['test/a', 'test/b']);
  assert.deepEqual(
    problems.map((problem) => problem.kind),
    ['unreadable', 'unreadable'],
  );

  server.breakWatches('gone');
  await eventually('the relist is done', () => informer.stats().relists === 1);
  assert.equal(informer.store.get('test/a')?.value, '1', 'a relist does not take the value away either');

  server.put(configMaps, configMap('a', '2'));
  server.delete(configMaps, 'test/b');
  await eventually('both are settled', () => informer.stats().unreadable === 0);
  assert.deepEqual(values(informer), { 'test/a': '2', 'test/c': '1' });
  assert.ok(told.includes('test/a=2'));
});

test('an object that the projection does not want is not kept, and leaves when it stops being wanted', async (t) => {
  const server = await startServer(t);
  server.put(configMaps, configMap('a', 'skip'));
  server.put(configMaps, configMap('b', '1'));
  const { informer, told } = await follow(t, server, {
    project: ({ data }) => (data.value === 'skip' ? undefined : { value: data.value }),
  });
  await informer.synced;
  server.put(configMaps, configMap('b', 'skip'));
  await eventually('it leaves', () => informer.store.size === 0);
  assert.deepEqual(told, ['test/b=1', 'test/b deleted']);
});

test('a late subscriber first hears what is there', async (t) => {
  const server = await startServer(t);
  server.put(configMaps, configMap('a', '1'));
  const { informer } = await follow(t, server);
  await informer.synced;
  const late: string[] = [];
  const end = informer.subscribe((change) => late.push(`${change.kind} ${change.key}`));
  assert.deepEqual(late, ['put test/a']);
  end();
  server.put(configMaps, configMap('b', '1'));
  await eventually('the change arrives', () => informer.store.has('test/b'));
  assert.deepEqual(late, ['put test/a']);
});

test('only the scope is followed, and leaving it is a delete', async (t) => {
  const server = await startServer(t);
  const labelled = (name: string, tier: string): ConfigMap => {
    const { metadata, data } = configMap(name, '1');
    return { metadata: { ...metadata, labels: { tier } }, data };
  };
  server.put(configMaps, labelled('a', 'web'));
  server.put(configMaps, labelled('b', 'db'));
  const { informer, told } = await follow(t, server, { scope: { namespace: 'test', labelSelector: 'tier=web' } });
  await informer.synced;
  server.put(configMaps, labelled('a', 'db'));
  await eventually('it leaves', () => informer.store.size === 0);
  assert.deepEqual(told, ['test/a=1', 'test/a deleted']);
});

test('a listener that throws ends the informer: that is a bug, not weather', async (t) => {
  const server = await startServer(t);
  server.put(configMaps, configMap('a', '1'));
  const client = createKubeClient({
    access: server.access,
    userAgent: 'test',
    clock: systemClock,
    random: Math.random,
  });
  t.after(() => client.close());
  const informer = new Informer<Kept>({
    client,
    resource: configMaps,
    project: () => ({ value: '' }),
    clock: systemClock,
    random: Math.random,
  });
  informer.subscribe(() => {
    throw new TypeError('a bug in a listener');
  });
  await assert.rejects(informer.run(new AbortController().signal), /a bug in a listener/);
  await assert.rejects(informer.synced, /ended before it was synced/);
});

test('a server that ends every watch at once is not stormed', async (t) => {
  const server = await startServer(t);
  server.faults.add({ verb: 'watch' }, { kind: 'answer', status: 500 }, 1_000);
  const { problems } = await follow(t, server, { clock: fastClock(20) });
  await eventually('it tried six times', () => problems.length >= 6);
  const pauses = problems.map((problem) => (problem.kind === 'disconnected' ? problem.retryMs : 0));
  assert.ok(
    pauses.slice(0, 5).every((pause, index) => pause >= 50 * 2 ** index || pause >= 500),
    String(pauses),
  );
});
