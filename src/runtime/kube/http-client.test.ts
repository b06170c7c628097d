/** The client against the in-memory API server and its faults. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createAuthority, issue } from '../certs/authority.ts';
import { ManualClock, systemClock } from '../process/clock.ts';
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import { fastClock } from '../testing/fast-clock.ts';
import type { Credentials } from './access.ts';
import {
  ApiError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isTransient,
  isUnauthorized,
} from './api-error.ts';
import type { KubeClientOptions, RequestRecord } from './caller.ts';
import type { KubeClient, WatchEvent } from './client.ts';
import { createKubeClient } from './http-client.ts';
import { coreResource, type KubeObject, type Resource } from './resource.ts';

const configMaps = coreResource('configmaps', 'ConfigMap', true);
const policies: Resource = {
  group: 'test.io',
  version: 'v1beta1',
  plural: 'policies',
  kind: 'Policy',
  namespaced: false,
};

interface ConfigMap extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}

const ref = { namespace: 'test', name: 'a' };

function configMap(value: string): ConfigMap {
  return { metadata: ref, data: { value } };
}

async function setUp(
  t: TestContext,
  serverOptions: Partial<TestApiServerOptions> = {},
  clientOptions: (server: TestApiServer) => Partial<KubeClientOptions> = () => ({}),
): Promise<{ server: TestApiServer; client: KubeClient; records: RequestRecord[] }> {
  const server = await startTestApiServer({ resources: [configMaps, policies], ...serverOptions });
  const records: RequestRecord[] = [];
  const client = createKubeClient({
    access: server.access,
    userAgent: 'test',
    clock: systemClock,
    random: () => 0,
    onRequest: (record) => records.push(record),
    ...clientOptions(server),
  });
  t.after(async () => {
    await client.close();
    await server.stop();
  });
  return { server, client, records };
}

test('an object that is not there is undefined, not an error', async (t) => {
  const { client } = await setUp(t);
  assert.equal(await client.get(configMaps, ref), undefined);
  assert.equal(await client.delete(configMaps, ref), false);
});

test('create, update, patch and delete say what stands in the way', async (t) => {
  const { client, server } = await setUp(t);
  const first = await client.create(configMaps, configMap('1'));
  await assert.rejects(client.create(configMaps, configMap('1')), isAlreadyExists);
  await client.update(configMaps, { ...first, data: { value: '2' } });
  await assert.rejects(client.update(configMaps, { ...first, data: { value: '3' } }), isConflict);
  await client.patch(configMaps, ref, { kind: 'merge', value: { data: { more: 'x' } } });
  await client.patch(configMaps, ref, { kind: 'json', operations: [{ op: 'remove', path: '/data/value' }] });
  assert.deepEqual(server.read(configMaps, 'test/a')?.data, { more: 'x' });
  await assert.rejects(client.delete(configMaps, ref, { uid: 'another' }), isConflict);
  await assert.rejects(client.delete(configMaps, ref, { resourceVersion: '1' }), isConflict);
  assert.equal(await client.delete(configMaps, ref, { uid: first.metadata.uid }), true);
});

test('apply creates, then owns exactly what it names; status is apart', async (t) => {
  const { client, server } = await setUp(t);
  const policy = (spec: object) => ({ metadata: { name: 'p' }, spec }) as KubeObject;
  await assert.rejects(
    client.applyStatus(policies, policy({}), { fieldManager: 'us' }),
    (error) => error instanceof ApiError && error.status === 404,
  );
  await client.apply(policies, policy({ a: 1, b: 2 }), { fieldManager: 'us' });
  await client.patch(policies, { name: 'p' }, { kind: 'merge', value: { spec: { theirs: 3 } } });
  await client.apply(policies, policy({ a: 1 }), { fieldManager: 'us' });
  const withStatus = { metadata: { name: 'p' }, status: { ready: true } };
  await client.applyStatus(policies, withStatus, { fieldManager: 'us' });
  const stored = server.read(policies, 'p');
  assert.deepEqual([stored?.spec, stored?.status], [{ a: 1, theirs: 3 }, { ready: true }]);
  assert.equal(stored?.metadata.generation, 3, 'status does not count for the generation');
});

test('all pages of a list show the instant of the first', async (t) => {
  const { client, server } = await setUp(t);
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(configMaps, { metadata: { namespace: 'test', name } });
  const names: string[] = [];
  const versions = new Set<string>();
  for await (const page of client.list(configMaps, { pageSize: 2 })) {
    names.push(...page.items.map(({ metadata }) => metadata.name));
    versions.add(page.resourceVersion);
    server.delete(configMaps, 'test/e');
  }
  assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e']);
  assert.equal(versions.size, 1);
});

test('metadata only leaves spec and status on the server', async (t) => {
  const { client, server } = await setUp(t);
  server.put(configMaps, configMap('1'));
  for await (const page of client.list(configMaps, { metadataOnly: true })) {
    assert.deepEqual(
      page.items.map((item) => Object.keys(item)),
      [['kind', 'apiVersion', 'metadata']],
    );
  }
});

test('a watch delivers events, bookmarks and the error that ends it', async (t) => {
  const { client, server } = await setUp(t);
  const seen: Array<WatchEvent<ConfigMap>> = [];
  const watching = (async () => {
    for await (const event of client.watch<ConfigMap>(configMaps, { resourceVersion: '1' })) seen.push(event);
  })();
  await eventually('the watch is open', () => server.openWatches === 1);
  server.put(configMaps, configMap('1'));
  server.delete(configMaps, 'test/a');
  server.sendBookmarks();
  server.breakWatches('gone');
  await watching;
  assert.deepEqual(
    seen.map(({ type }) => type),
    ['ADDED', 'DELETED', 'BOOKMARK', 'ERROR'],
  );
  const last = seen.at(-1);
  assert.ok(last?.type === 'ERROR' && isGone(last.error));
});

test('who stops to read a watch frees its connection', async (t) => {
  const { client, server } = await setUp(t);
  server.put(configMaps, configMap('1'));
  for await (const event of client.watch(configMaps, { resourceVersion: '1' })) {
    assert.equal(event.type, 'ADDED');
    break;
  }
  await eventually('the connection is closed', () => server.openWatches === 0);
});

test('calls that may be repeated are, and others are not, when the answer is lost', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'lose-answer' });
  await client.apply(configMaps, configMap('1'), { fieldManager: 'us' });
  assert.equal(server.requests('apply'), 2);

  server.faults.add({}, { kind: 'lose-answer' });
  const created = client.create(configMaps, { metadata: { namespace: 'test', name: 'b' } });
  await assert.rejects(created, (error) => error instanceof ApiError && error.reason === 'Disconnected');
  assert.equal(server.requests('create'), 1);
  assert.ok(server.read(configMaps, 'test/b'), 'the server did act');

  const live = await client.get<ConfigMap>(configMaps, ref);
  assert.ok(live);
  server.faults.add({ verb: 'update' }, { kind: 'lose-answer' });
  await assert.rejects(client.update(configMaps, live), isTransient);
  assert.equal(server.requests('update'), 1);
});

test('an overloaded server is obeyed, for every kind of call, because it did nothing', async (t) => {
  const clock = fastClock(20);
  const { client, server } = await setUp(t, {}, () => ({ clock }));
  server.faults.add({}, { kind: 'answer', status: 429, retryAfterSeconds: 1 });
  const startMs = clock.monotonicMs();
  await client.create(configMaps, configMap('1'));
  // A timer may fire a fraction of a millisecond early.
  assert.ok(clock.monotonicMs() - startMs >= 980);
  assert.equal(server.requests('create'), 2);
});

test('a pause that is longer than the call may take fails at once with the reason', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'answer', status: 429, retryAfterSeconds: 3_600 });
  await assert.rejects(
    client.get(configMaps, ref),
    (error) => error instanceof ApiError && error.status === 429 && error.retryAfterMs === 3_600_000,
  );
});

test('a call gives up after its repeats and names what it tried', async (t) => {
  const { client, server, records } = await setUp(t);
  server.faults.add({}, { kind: 'answer', status: 503 }, 10);
  await assert.rejects(client.get(configMaps, ref, { retries: 2 }), /^ApiError: get configmaps test\/a: .*503/);
  assert.deepEqual(
    records.map(({ verb, resource, status }) => [verb, resource, status]),
    [
      ['get', 'configmaps', 503],
      ['get', 'configmaps', 503],
      ['get', 'configmaps', 503],
    ],
  );
});

test('a refusal is not repeated', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'answer', status: 403, reason: 'Forbidden' });
  await assert.rejects(client.get(configMaps, ref), isForbidden);
  assert.equal(server.requests(), 1);
});

test('a server that never answers ends in a timeout, and the next call takes a new connection', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'hang' });
  await assert.rejects(
    client.get(configMaps, ref, { timeoutMs: 50 }),
    (error) => error instanceof ApiError && error.reason === 'Timeout',
  );
  assert.equal(await client.get(configMaps, ref), undefined);
});

test('an aborted call rejects with the reason of its signal', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'hang' });
  const stop = new AbortController();
  const call = client.get(configMaps, ref, { signal: stop.signal });
  stop.abort(new Error('shutting down'));
  await assert.rejects(call, /shutting down/);
});

test('a server that is not there is unreachable, and said to be', async (t) => {
  const { client, server } = await setUp(t);
  await server.stop();
  await assert.rejects(
    client.get(configMaps, ref, { retries: 0 }),
    (error) => error instanceof ApiError && error.reason === 'Unreachable' && /ECONNREFUSED/.test(error.message),
  );
});

test('an answer that is no JSON is garbled, not a crash', async (t) => {
  const { client, server } = await setUp(t);
  server.faults.add({}, { kind: 'garbage' });
  const isGarbled = (error: unknown) => error instanceof ApiError && error.reason === 'Garbled';
  await assert.rejects(client.get(configMaps, ref, { retries: 0 }), isGarbled);
});

test('raw reaches what is no object', async (t) => {
  const { client } = await setUp(t);
  const version = await client.raw({ path: '/version' });
  assert.deepEqual(version, { major: '1', minor: '36', gitVersion: 'v1.36.0-test' });
});

test('a token that expired is asked for anew, once', async (t) => {
  let token = 'old';
  let forgotten = 0;
  const credentials = async (): Promise<Credentials> => ({ token, tls });
  const tls = { isInsecure: false };
  const forget = () => {
    forgotten += 1;
    token = 'new';
  };
  const { client, server } = await setUp(t, { tokens: new Set(['new']) }, ({ access }) => ({
    access: { ...access, credentials, forget },
  }));
  assert.equal(await client.get(configMaps, ref), undefined);
  assert.equal(forgotten, 1);
  token = 'wrong for good';
  const stubborn = createKubeClient({
    access: { ...server.access, credentials: async () => ({ token: 'wrong', tls }), forget: () => {} },
    userAgent: 'test',
    clock: systemClock,
    random: () => 0,
  });
  t.after(() => stubborn.close());
  await assert.rejects(stubborn.get(configMaps, ref), isUnauthorized);
});

test('credentials that cannot be had fail the call at once, with their sentence', async (t) => {
  let asked = 0;
  const { client } = await setUp(t, {}, ({ access }) => ({
    access: {
      ...access,
      credentials: () => {
        asked += 1;
        return Promise.reject(new Error('exec plugin "login" ended with code 1'));
      },
    },
  }));
  await assert.rejects(client.get(configMaps, ref), /get configmaps test\/a: exec plugin "login" ended with code 1/);
  assert.equal(asked, 1);
});

test('the client-side limit spreads calls over time', async (t) => {
  const clock = new ManualClock();
  const { client, server } = await setUp(t, {}, () => ({ clock, rateLimit: { perSecond: 1, burst: 2 } }));
  const calls = [1, 2, 3].map(() => client.get(configMaps, ref));
  await Promise.all(calls.slice(0, 2));
  assert.equal(server.requests(), 2);
  await clock.advance(1_000);
  await calls[2];
  assert.equal(server.requests(), 3);
});

test('TLS: the server is checked against the CA, the client proves itself, and new certificates are taken up', async (t) => {
  const now = new Date();
  const authority = await createAuthority({ commonName: 'test-ca', lifetimeDays: 1, now });
  const other = await createAuthority({ commonName: 'other-ca', lifetimeDays: 1, now });
  const leaf = (usage: 'server' | 'client', by = authority) =>
    issue(by, { commonName: usage, ipAddresses: ['127.0.0.1'], usages: [usage], lifetimeDays: 1, now });
  const [own, client1, stranger] = await Promise.all([leaf('server'), leaf('client'), leaf('client', other)]);
  let tls: Credentials['tls'] = { ca: other.certificatePem, isInsecure: false };
  const { client } = await setUp(
    t,
    { tls: { key: own.keyPem, cert: own.certificatePem, ca: authority.certificatePem } },
    ({ access }) => ({ access: { ...access, credentials: async () => ({ tls }) } }),
  );
  const once = { retries: 0 };
  await assert.rejects(client.get(configMaps, ref, once), /certificate/, 'a server of another CA is refused');
  tls = { ca: authority.certificatePem, certificate: stranger.certificatePem, key: stranger.keyPem, isInsecure: false };
  await assert.rejects(client.get(configMaps, ref, once), ApiError, 'the server refuses a stranger');
  tls = { ca: authority.certificatePem, certificate: client1.certificatePem, key: client1.keyPem, isInsecure: false };
  assert.equal(await client.get(configMaps, ref, once), undefined);
});
