/** What the in-memory API server promises beyond what the tests of client and informer already use. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isConflict, isGone } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { createKubeClient } from '../kube/http-client.ts';
import { coreResource, type KubeObject, type Resource } from '../kube/resource.ts';
import { systemClock } from '../process/clock.ts';
import { startTestApiServer, type TestApiServer } from './api-server.ts';

const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};
const namespaces = coreResource('namespaces', 'Namespace', false);

interface Lease extends KubeObject {
  readonly spec: { readonly holder: string };
}

async function setUp(t: TestContext): Promise<{ server: TestApiServer; client: KubeClient }> {
  const server = await startTestApiServer({ resources: [leases, namespaces] });
  const client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random: () => 0 });
  t.after(async () => {
    await client.close();
    await server.stop();
  });
  return { server, client };
}

const lease = (holder: string): Lease => ({ metadata: { namespace: 'kube-system', name: 'leader' }, spec: { holder } });

test('of two candidates that take a lease at the same version, one wins', async (t) => {
  const { client, server } = await setUp(t);
  const seen = await client.create(leases, lease('nobody'));
  const take = (holder: string) => client.update(leases, { ...seen, spec: { holder } });
  const results = await Promise.allSettled([take('a'), take('b')]);
  const lost = results.filter((result) => result.status === 'rejected');
  assert.equal(lost.length, 1);
  assert.ok(lost.every((result) => isConflict(result.reason)));
  const won = results.find((result) => result.status === 'fulfilled');
  assert.deepEqual(server.read(leases, 'kube-system/leader')?.spec, won?.value.spec);
});

test('a write without a difference makes no version and no event', async (t) => {
  const { client } = await setUp(t);
  const first = await client.apply(leases, lease('a'), { fieldManager: 'us' });
  const second = await client.apply(leases, lease('a'), { fieldManager: 'us' });
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
});

test('an apply without force changes what the manager applied itself, and nothing that somebody else has written', async (t) => {
  const { client, server } = await setUp(t);
  const apply = (holder: string) => client.apply(leases, lease(holder), { fieldManager: 'us', force: false });
  await apply('a');
  await apply('b');
  server.put(leases, lease('c'));
  await assert.rejects(apply('d'), isConflict);
  assert.deepEqual(server.read(leases, 'kube-system/leader')?.spec, { holder: 'c' });
  await client.apply(leases, lease('d'), { fieldManager: 'us' });
  assert.deepEqual(server.read(leases, 'kube-system/leader')?.spec, { holder: 'd' });
});

test('an object with finalizers stays, marked, until they are gone', async (t) => {
  const { client, server } = await setUp(t);
  server.put(namespaces, { metadata: { name: 'shop', finalizers: ['test.io/guard'] } });
  await client.delete(namespaces, { name: 'shop' });
  assert.ok(server.read(namespaces, 'shop')?.metadata.deletionTimestamp);
  await client.patch(namespaces, { name: 'shop' }, { kind: 'merge', value: { metadata: { finalizers: [] } } });
  assert.equal(server.read(namespaces, 'shop'), undefined);
});

test('the status of a namespace is not taken for a kind inside it', async (t) => {
  const { client, server } = await setUp(t);
  server.put(namespaces, { metadata: { name: 'shop' } });
  const withStatus = { metadata: { name: 'shop' }, status: { phase: 'Active' } };
  await client.applyStatus(namespaces, withStatus, { fieldManager: 'us' });
  assert.deepEqual(server.read(namespaces, 'shop')?.status, { phase: 'Active' });
});

test('compaction ends lists that are half read', async (t) => {
  const { client, server } = await setUp(t);
  for (const name of ['a', 'b', 'c']) server.put(namespaces, { metadata: { name } });
  const reading = async () => {
    for await (const _page of client.list(namespaces, { pageSize: 1 })) server.compact();
  };
  await assert.rejects(reading(), isGone);
});

test('the state survives a stop, and the port stays', async (t) => {
  const { client, server } = await setUp(t);
  server.put(namespaces, { metadata: { name: 'shop' } });
  const { url } = server;
  await server.stop();
  await server.listen(Number(new URL(url).port));
  assert.equal(server.url, url);
  assert.ok(await client.get(namespaces, { name: 'shop' }));
});
