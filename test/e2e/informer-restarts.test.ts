/**
 * The informer on a real API server and a real etcd that are killed and started again, three times each and both, while
 * somebody writes. After each outage the store equals a fresh LIST, nothing is missed, requests stay few, and the informer
 * is back within two seconds of the server.
 */
import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { type ApiError, isConflict, isInvalid } from '../../src/runtime/kube/api-error.ts';
import type { RequestRecord } from '../../src/runtime/kube/caller.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { EventRecorder } from '../../src/runtime/kube/event-recorder.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { Informer, type InformerProblem } from '../../src/runtime/kube/informer.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { coreResource, type KubeObject, type Resource } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { startRelay } from './informer-relay.ts';
import {
  busiestSecond,
  type ConfigMap,
  configMap,
  configMaps,
  freshList,
  isReady,
  isSame,
  Writer,
} from './informer-world.ts';

const namespaces = coreResource('namespaces', 'Namespace', false);
const events: Resource = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** Two informers: after a failure each waits 50 ms or more, then twice that, and so on. */
const requestsPerSecondLimit = 20;
const outages = ['kube-apiserver', 'etcd', 'both'] as const;
const rounds = 3 * outages.length;
/** For most rounds: a machine with much else to do may take these seconds from a single one. */
const recoveryLimitMs = 2_000;

interface EventObject extends KubeObject {
  readonly reportingController?: string;
  readonly series?: { readonly count: number };
}

let plane: BareControlPlane;
const clients: KubeClient[] = [];

before(async () => {
  plane = await startBareControlPlane({ log: (line) => console.log(line) });
});

after(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await plane?.stop();
});

async function newClient(userAgent: string, onRequest?: (record: RequestRecord) => void): Promise<KubeClient> {
  const client = createKubeClient({
    access: await loadAccess({ path: plane.kubeconfig }),
    userAgent,
    clock: systemClock,
    random: Math.random,
    rateLimit: { perSecond: 200, burst: 200 },
    ...(onRequest === undefined ? {} : { onRequest }),
  });
  clients.push(client);
  return client;
}

function configMapInformer(
  client: KubeClient,
  more: { stallMs?: number; onProblem?: (problem: InformerProblem) => void } = {},
) {
  return new Informer({
    client,
    resource: configMaps,
    scope: { namespace: 'default' },
    project: (object: ConfigMap) => ({ value: object.data?.value ?? '' }),
    clock: systemClock,
    random: Math.random,
    ...more,
  });
}

/** Runs loops until the test is over, whatever its outcome. */
function runDuring(t: TestContext, ...loops: ReadonlyArray<{ run(signal: AbortSignal): Promise<void> }>): void {
  const stop = new AbortController();
  const running = loops.map((loop) => loop.run(stop.signal));
  t.after(async () => {
    stop.abort();
    await Promise.all(running);
  });
}

async function breakDown(outage: (typeof outages)[number], downMs: number): Promise<void> {
  const parts = outage === 'both' ? (['etcd', 'kube-apiserver'] as const) : ([outage] as const);
  for (const part of parts) await plane.kill(part);
  await delay(downMs);
  for (const part of parts) await plane.start(part);
}

test('the client agrees with the real server', async () => {
  const client = await newClient('e2e-client');
  const ref = { namespace: 'default', name: 'client-check' };
  assert.equal(await client.get(configMaps, ref), undefined);
  const created = await client.create<ConfigMap>(configMaps, configMap(ref.name, '1'));
  await client.update(configMaps, { ...created, data: { value: '2' } });
  await assert.rejects(client.update(configMaps, { ...created, data: { value: '3' } }), isConflict);
  await client.patch(configMaps, ref, {
    kind: 'json',
    operations: [{ op: 'replace', path: '/data/value', value: '4' }],
  });
  const read = await client.get<ConfigMap>(configMaps, ref);
  assert.deepEqual(read?.data, { value: '4' });
  await assert.rejects(client.apply(configMaps, configMap('Not_A_Name', '1'), { fieldManager: 'e2e' }), isInvalid);
  await assert.rejects(client.delete(configMaps, ref, { uid: 'somebody-else' }), isConflict);
  assert.equal(await client.delete(configMaps, ref, { uid: read?.metadata.uid }), true);
  assert.equal(await client.delete(configMaps, ref), false);
  const active = await client.applyStatus(
    namespaces,
    { metadata: { name: 'default' }, status: { phase: 'Active' } } as KubeObject,
    { fieldManager: 'e2e' },
  );
  assert.equal(active.metadata.name, 'default');
});

test('a repeating event is one object', async (t) => {
  const client = await newClient('e2e-events');
  const dropped: ApiError[] = [];
  const recorder = new EventRecorder({
    client,
    clock: systemClock,
    random: Math.random,
    controller: 'sallyport.io/e2e',
    instance: 'e2e-0',
    onDropped: (_facts, error) => dropped.push(error),
  });
  const facts = {
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'x' },
    type: 'Warning',
    reason: 'Tested',
    action: 'Test',
    note: 'This is a test.',
  } as const;
  for (let count = 0; count < 5; count += 1) recorder.record(facts);
  runDuring(t, recorder);
  // The server writes events of its own; ours carry the name of their reporter.
  let ours: EventObject[] = [];
  await eventually('the event is written', async () => {
    for await (const page of client.list<EventObject>(events, { namespace: 'default' })) {
      ours = page.items.filter(({ reportingController }) => reportingController === 'sallyport.io/e2e');
    }
    return ours.length > 0 || dropped.length > 0;
  });
  assert.deepEqual(dropped, []);
  assert.deepEqual(
    ours.map(({ series }) => series?.count),
    [5],
  );
});

test(`the informer survives ${rounds} kills of the API server and etcd`, { timeout: 600_000 }, async (t) => {
  const requestsMs: number[] = [];
  const client = await newClient('e2e-informer', () => requestsMs.push(performance.now()));
  const checker = await newClient('e2e-checker');
  const writer = new Writer(await newClient('e2e-writer'));
  const informer = configMapInformer(client);
  const labels = new Informer({
    client,
    resource: namespaces,
    scope: { metadataOnly: true },
    project: (object) => ({ labels: object.metadata.labels ?? {}, hasSpec: 'spec' in object }),
    clock: systemClock,
    random: Math.random,
  });
  const seen = new Map<string, { value: string }>();
  informer.subscribe((change) => {
    if (change.kind === 'delete') assert.ok(seen.delete(change.key), `${change.key} was deleted before it was there`);
    else seen.set(change.key, change.value);
  });
  runDuring(t, writer, informer, labels);
  await Promise.all([informer.synced, labels.synced]);
  assert.deepEqual(labels.store.get('default')?.hasSpec, false, 'only metadata travels');

  const recoveriesMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const outage = outages[round % outages.length] ?? 'both';
    const changesBefore = writer.changes;
    await eventually('the writer writes', () => writer.changes > changesBefore + 5, 60_000);
    await breakDown(outage, Math.random() * 1_500);
    if (outage === 'etcd') await eventually('the API server is ready', () => isReady(checker), 30_000);
    const readyMs = performance.now();
    const marker = configMap('marker', String(round));
    await checker.apply(configMaps, marker, { fieldManager: 'checker' });
    const isMarked = () => informer.store.get('default/marker')?.value === String(round);
    await eventually('the informer sees the marker', isMarked);
    const recoveryMs = performance.now() - readyMs;
    recoveriesMs.push(recoveryMs);

    await writer.pause();
    const truth = await freshList(checker);
    await eventually('the store equals a fresh LIST', () => isSame(new Map(informer.store.entries()), truth));
    assert.deepEqual(seen, truth, 'what listeners were told equals a fresh LIST');
    writer.resume();
    t.diagnostic(
      `round ${round + 1}: ${outage} killed, back ${Math.round(recoveryMs)} ms after ready, ${truth.size} objects`,
    );
  }

  const usualMs = recoveriesMs.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
  assert.ok(usualMs < recoveryLimitMs, `recoveries took ${recoveriesMs.map(Math.round).join(', ')} ms`);
  const busiest = busiestSecond(requestsMs);
  t.diagnostic(`${writer.changes} changes; slowest recovery ${Math.round(Math.max(...recoveriesMs))} ms`);
  t.diagnostic(`${requestsMs.length} requests of two informers, at most ${busiest} in one second`);
  t.diagnostic(`informer: ${JSON.stringify(informer.stats())}`);
  assert.ok(busiest <= requestsPerSecondLimit, `${busiest} requests in one second`);
});

test('changes missed before a restart are found by a new reading', { timeout: 120_000 }, async (t) => {
  const access = await loadAccess({ path: plane.kubeconfig });
  const relay = await startRelay(Number(new URL(access.server).port));
  t.after(() => relay.stop());
  const client = createKubeClient({
    access: { ...access, server: `https://127.0.0.1:${relay.port}` },
    userAgent: 'e2e-relayed',
    clock: systemClock,
    random: Math.random,
  });
  clients.push(client);
  const checker = await newClient('e2e-relay-checker');
  await checker.apply(configMaps, configMap('missed', '1'), { fieldManager: 'checker' });
  const informer = configMapInformer(client);
  const told: string[] = [];
  informer.subscribe(({ kind, key }) => told.push(`${kind} ${key}`));
  runDuring(t, informer);
  await informer.synced;

  relay.freeze();
  await checker.delete(configMaps, { namespace: 'default', name: 'missed' });
  await checker.apply(configMaps, configMap('new', '1'), { fieldManager: 'checker' });
  await plane.kill('kube-apiserver');
  await plane.start('kube-apiserver');
  relay.cut();

  const truth = await freshList(checker);
  await eventually('the store equals a fresh LIST', () => isSame(new Map(informer.store.entries()), truth));
  assert.equal(informer.stats().relists, 1, 'the server refused the old version with 410');
  assert.ok(told.includes('delete default/missed'));
});

test('a server that stands still is noticed', { timeout: 120_000 }, async (t) => {
  const client = await newClient('e2e-stall');
  const writer = new Writer(await newClient('e2e-stall-writer'));
  const stalls: ApiError[] = [];
  const informer = configMapInformer(client, {
    stallMs: 2_000,
    onProblem: (problem) => {
      if (problem.kind === 'disconnected' && problem.error.reason === 'Timeout') stalls.push(problem.error);
    },
  });
  runDuring(t, writer, informer);
  await informer.synced;
  const pid = plane.pid('kube-apiserver');
  process.kill(pid, 'SIGSTOP');
  const stoppedMs = performance.now();
  try {
    await eventually('the stall is noticed', () => stalls.length > 0);
    t.diagnostic(`noticed after ${Math.round(performance.now() - stoppedMs)} ms with a limit of 2000 ms of silence`);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const changesBefore = writer.changes;
  await eventually('the writer writes again', () => writer.changes > changesBefore + 5, 30_000);
  await writer.pause();
  const truth = await freshList(await newClient('e2e-stall-checker'));
  await eventually('the store equals a fresh LIST', () => isSame(new Map(informer.store.entries()), truth), 45_000);
});
