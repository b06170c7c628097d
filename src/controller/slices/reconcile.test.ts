import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { resourceOf } from '../../api/kinds.ts';
import { projectPolicy } from '../../core/project/index.ts';
import { policyObject } from '../../core/testing/objects.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import { keyOf } from '../../runtime/kube/resource.ts';
import { ManualClock, systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { SliceIndex } from './known-slices.ts';
import { reconcileSlices } from './reconcile.ts';

const slices = resourceOf('EgressEndpointSlice');
const policy = projectPolicy(policyObject('red/shop', { appliedTo: { podSelector: {} } }));
const endpoint = (pod: string) => ({ ns: 'red', pod, ipv4: ['10.244.0.1'], ipv6: [], node: 'a' });
const log = createLog({ process: 'test', level: 'silent' });
const { signal } = new AbortController();

let server: TestApiServer;
let client: KubeClient;
let clock: ManualClock;
let known: SliceIndex;
beforeEach(async () => {
  server = await startTestApiServer({ resources: [slices] });
  client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random: Math.random });
  clock = new ManualClock();
  known = new SliceIndex();
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

/** Starts work on two slices of one pod each, and tells how it ended, once it has. */
const work = () => {
  const state = { key: policy.key, policy, existing: [], wanted: [endpoint('p1'), endpoint('p2')], limit: 1 };
  const ended: { value?: unknown } = {};
  reconcileSlices({ client, clock, log }, known, state, signal).then(
    (value) => {
      ended.value = value;
    },
    (error) => {
      ended.value = error;
    },
  );
  return ended;
};
/** What the watch of the slices would bring. */
const show = (): void => {
  for (const slice of server.list(slices)) {
    const { name, namespace, uid = '', resourceVersion = '', generation = 0 } = slice.metadata;
    const identity = { name, namespace, uid, resourceVersion, generation, isDeleting: false, finalizers: [] };
    const value = { identity, policy: 'shop', generateName: 'shop-', owners: [], endpoints: [] };
    known.take({ kind: 'put', key: keyOf(slice), value, previous: undefined });
  }
};

describe('reconcileSlices', () => {
  it('ends when the caches show what it wrote', async () => {
    const ended = work();
    await eventually('both are written', () => server.list(slices).length === 2);
    await clock.advance(1_900);
    assert.equal(ended.value, undefined);
    show();
    await eventually('the end', () => ended.value !== undefined);
    assert.deepEqual(ended.value, { kind: 'done' });
  });

  it('asks to look again when the caches do not show it in time', async () => {
    const ended = work();
    await eventually('the end', async () => {
      await clock.advance(2_000);
      return ended.value !== undefined;
    });
    assert.deepEqual(ended.value, { kind: 'requeue', afterMs: 1 });
  });

  it('does not remove a slice that was changed in the meantime', async () => {
    const made = server.put(slices, { metadata: { namespace: 'red', name: 'shop-00001' }, ...{ endpoints: [] } });
    show();
    const state = { key: policy.key, policy: undefined, existing: known.of(policy.key), wanted: [], limit: 1 };
    server.put(slices, { ...made, ...{ endpoints: [endpoint('p1')] } });
    assert.deepEqual(await reconcileSlices({ client, clock, log }, known, state, signal), { kind: 'done' });
    assert.equal(server.list(slices).length, 1);
  });

  it('fails only after the caches show what it wrote before the failure', async () => {
    // Order means nothing to a write, so the first one passes.
    server.faults.add({ verb: 'apply' }, { kind: 'reorder' });
    server.faults.add({ verb: 'apply' }, { kind: 'answer', status: 422, reason: 'Invalid' });
    const ended = work();
    await eventually('the second write has failed', () => server.requests('apply') === 2);
    assert.deepEqual([server.list(slices).length, ended.value], [1, undefined]);
    await clock.advance(1_900);
    assert.equal(ended.value, undefined);
    show();
    await eventually('the end', () => ended.value !== undefined);
    assert.match(String(ended.value), /422/);
  });
});
