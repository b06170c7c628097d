import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeClient } from '../kube/client.ts';
import { createKubeClient } from '../kube/http-client.ts';
import type { KubeObject } from '../kube/resource.ts';
import { systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { startTestApiServer, type TestApiServer } from '../testing/api-server.ts';
import { eventually } from '../testing/eventually.ts';
import { LeaderLease } from './lease.ts';
import { kubeLeaseStore, type LeaseRecord, leaseResource } from './lease-record.ts';

const signal = new AbortController().signal;
const record: LeaseRecord = {
  holder: 'node-a',
  durationSeconds: 15,
  acquired: new Date('2026-01-01T00:00:00.123Z'),
  renewed: new Date('2026-01-01T00:00:01Z'),
  transitions: 3,
};
let server: TestApiServer;
let client: KubeClient;

before(async () => {
  server = await startTestApiServer({ resources: [leaseResource] });
  client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random: Math.random });
});

after(async () => {
  await client.close();
  await server.stop();
});

test('a record that is written is read back, and only the one who names its version may change it', async () => {
  const store = kubeLeaseStore(client, { namespace: 'kube-system', name: 'first' });
  assert.equal(await store.read(signal), undefined);
  assert.equal(await store.write(record, undefined, signal), true);
  assert.equal(await store.write(record, undefined, signal), false, 'created twice');
  const stored = await store.read(signal);
  assert.deepEqual(stored?.record, record);
  assert.equal(await store.write({ ...record, transitions: 4 }, stored?.version, signal), true);
  assert.equal(await store.write({ ...record, transitions: 5 }, stored?.version, signal), false, 'stale version');
});

test('times have six digits, and a lease that was given back has no holder', async () => {
  const ref = { namespace: 'kube-system', name: 'second' };
  const store = kubeLeaseStore(client, ref);
  await store.write({ ...record, holder: undefined }, undefined, signal);
  const lease = await client.get<KubeObject & { spec: object }>(leaseResource, ref);
  assert.deepEqual(lease?.spec, {
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.123000Z',
    renewTime: '2026-01-01T00:00:01.000000Z',
    leaseTransitions: 3,
  });
  assert.equal((await store.read(signal))?.record.holder, undefined);
});

test('labels and fields of others stay when the record is written', async () => {
  const ref = { namespace: 'kube-system', name: 'labelled' };
  const store = kubeLeaseStore(client, ref);
  await store.write(record, undefined, signal);
  const value = { metadata: { labels: { team: 'network' } }, spec: { strategy: 'OldestEmulationVersion' } };
  await client.patch(leaseResource, ref, { kind: 'merge', value });
  const stored = await store.read(signal);
  assert.equal(await store.write({ ...record, holder: undefined }, stored?.version, signal), true);
  const lease = await client.get<KubeObject & { spec: Record<string, unknown> }>(leaseResource, ref);
  assert.deepEqual(lease?.metadata.labels, { team: 'network' });
  assert.equal(lease?.spec.strategy, 'OldestEmulationVersion');
  assert.equal(lease?.spec.holderIdentity, undefined);
});

test('other errors are not taken for a lost race', async () => {
  const store = kubeLeaseStore(client, { namespace: 'kube-system', name: 'third' });
  server.faults.add({ plural: 'leases' }, { kind: 'answer', status: 403, reason: 'Forbidden' });
  await assert.rejects(store.write(record, undefined, signal), { status: 403 });
});

test('over HTTP: the second of two leads after the first has stopped', async () => {
  const timing = { durationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 20 };
  const candidates = ['a', 'b'].map((identity) => {
    const lease = new LeaderLease({
      store: kubeLeaseStore(client, { namespace: 'kube-system', name: 'fourth' }),
      identity,
      clock: systemClock,
      random: Math.random,
      log: createLog({ process: 'test', level: 'silent' }),
      timing,
    });
    const stop = new AbortController();
    const run = lease.run(stop.signal, { onLeading: () => undefined, onLost: (loss) => assert.fail(loss) });
    return { lease, stop, run };
  });
  await eventually('one leads', () => candidates.some(({ lease }) => lease.isLeader()));
  const [first, second] = candidates.toSorted((a, b) => Number(b.lease.isLeader()) - Number(a.lease.isLeader()));
  assert.ok(first && second && !second.lease.isLeader());
  first.stop.abort();
  await first.run;
  await eventually('the other leads', () => second.lease.isLeader());
  second.stop.abort();
  await second.run;
});
