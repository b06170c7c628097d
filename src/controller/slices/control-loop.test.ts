import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { kinds, resourceOf } from '../../api/kinds.ts';
import { keyOf, type Resource } from '../../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import type { ControlLoop } from '../loop/control-loop.ts';
import { followMembers } from '../membership/members.ts';
import { coreResources, type RunningControlLoop, startControlLoop } from '../testing.ts';
import { slicesLoop } from './control-loop.ts';

const [, namespaces, pods] = coreResources as [Resource, Resource, Resource]; // The list has these three.
const policies = resourceOf('EgressPolicy');
const clusterPolicies = resourceOf('EgressClusterPolicy');
const slices = resourceOf('EgressEndpointSlice');
const clusterSlices = resourceOf('EgressClusterEndpointSlice');
const shop = { podSelector: { matchLabels: { app: 'shop' } } };

let server: TestApiServer;
let running: RunningControlLoop<ControlLoop> | undefined;
beforeEach(async () => {
  const ours = Object.keys(kinds) as (keyof typeof kinds)[]; // Object.keys forgets that these are the names of kinds.
  server = await startTestApiServer({ resources: [...coreResources, ...ours.map(resourceOf)] });
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  await server.stop();
});

const start = async (feature: object = {}): Promise<RunningControlLoop<ControlLoop>> => {
  // Windows of a second pass in 50 ms.
  running = await startControlLoop({ access: server.access, feature, clock: fastClock(20) }, (deps) =>
    slicesLoop(deps, followMembers(deps.caches)),
  );
  return running;
};

const putPod = (name: string, { namespace = 'red', ip = '10.244.0.1', labels = { app: 'shop' } as object } = {}) =>
  server.put(pods, {
    metadata: { namespace, name, labels: { ...labels } },
    ...{ spec: { nodeName: 'a' }, status: { phase: 'Running', podIP: ip } },
  });
const putPolicy = (name: string, appliedTo: object = shop) =>
  server.put(policies, { metadata: { namespace: 'red', name }, ...{ spec: { appliedTo } } });

/** Slice names with the pods they list, as text. */
const listed = (resource: Resource = slices): Record<string, string> =>
  Object.fromEntries(
    server.list(resource).map((slice) => {
      const endpoints = slice.endpoints as { pod: string }[]; // Written by the part under test.
      return [keyOf(slice), endpoints.map(({ pod }) => pod).join(' ')];
    }),
  );
const listedPods = (resource: Resource = slices): string[] =>
  Object.values(listed(resource))
    .flatMap((names) => names.split(' '))
    .toSorted();

describe('slicesPart', () => {
  it('lists the pods of a policy, with owner and label', async () => {
    const policy = putPolicy('shop');
    putPod('p1');
    putPod('p2', { labels: { app: 'other' } });
    await start();
    await eventually('one slice', () => listedPods().length === 1);
    const [slice] = server.list(slices);
    assert.deepEqual(slice?.metadata.labels, { 'spidernet.io/policy-name': 'shop' });
    assert.equal(slice.metadata.generateName, 'shop-');
    assert.deepEqual(slice.metadata.ownerReferences, [
      {
        apiVersion: 'egressgateway.spidernet.io/v1beta1',
        kind: 'EgressPolicy',
        name: 'shop',
        uid: policy.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    assert.deepEqual(slice.endpoints, [{ ns: 'red', pod: 'p1', ipv4: ['10.244.0.1'], ipv6: [], node: 'a' }]);
  });

  it('writes one slice for one pod, fills slices up and removes empty ones', async () => {
    putPolicy('shop');
    for (const name of ['p1', 'p2', 'p3']) putPod(name);
    const { writes } = await start({ maxNumberEndpointPerSlice: 2 });
    await eventually('two slices', () => listedPods().join() === 'p1,p2,p3');
    await eventually('one write for each', () => writes(slices.plural) === 2);
    putPod('p4');
    await eventually('the second slice is full', () => listedPods().join() === 'p1,p2,p3,p4');
    await eventually('one more write', () => writes(slices.plural) === 3);
    assert.equal(server.list(slices).length, 2);
    server.delete(pods, 'red/p3');
    server.delete(pods, 'red/p4');
    await eventually('the second slice is gone', () => server.list(slices).length === 1);
    assert.deepEqual(listedPods(), ['p1', 'p2']);
  });

  it('follows the labels of namespaces for cluster policies', async () => {
    const appliedTo = { ...shop, namespaceSelector: { matchLabels: { team: 'a' } } };
    server.put(clusterPolicies, { metadata: { name: 'all' }, ...{ spec: { appliedTo } } });
    server.put(namespaces, { metadata: { name: 'red', labels: { team: 'a' } } });
    server.put(namespaces, { metadata: { name: 'blue' } });
    putPod('p1');
    putPod('p2', { namespace: 'blue' });
    await start();
    await eventually('the pod of red', () => listedPods(clusterSlices).join() === 'p1');
    server.put(namespaces, { metadata: { name: 'blue', labels: { team: 'a' } } });
    await eventually('the pod of blue too', () => listedPods(clusterSlices).join() === 'p1,p2');
    server.put(namespaces, { metadata: { name: 'red' } });
    await eventually('the pod of blue only', () => listedPods(clusterSlices).join() === 'p2');
  });

  it('repairs slices that somebody deleted or changed', async () => {
    putPolicy('shop');
    putPod('p1');
    await start();
    await eventually('the slice', () => listedPods().join() === 'p1');
    const [made] = server.list(slices);
    assert.ok(made);
    server.delete(slices, keyOf(made));
    await eventually('the slice is back', () => listedPods().join() === 'p1');
    server.put(slices, { ...made, ...{ endpoints: [{ ns: 'red', pod: 'intruder', ipv4: ['10.0.0.1'] }] } });
    await eventually('the endpoints are back', () => listedPods().join() === 'p1');
    const { namespace = '', name } = made.metadata;
    server.put(slices, { metadata: { namespace, name }, ...{ endpoints: made.endpoints } });
    await eventually('label and owner are back', () => {
      const { labels, ownerReferences = [] } = server.read(slices, keyOf(made))?.metadata ?? {};
      return labels?.['spidernet.io/policy-name'] === 'shop' && ownerReferences.length === 1;
    });
    assert.equal(server.list(slices).length, 1);
  });

  it('removes the slices of a policy that is gone, also one that went while nobody looked', async () => {
    putPod('p1');
    const stale = { metadata: { namespace: 'red', name: 'old-00001', labels: { 'spidernet.io/policy-name': 'old' } } };
    server.put(slices, { ...stale, ...{ endpoints: [] } });
    putPolicy('shop');
    await start();
    await eventually('the old one is gone', () => listedPods().join() === 'p1' && server.list(slices).length === 1);
    server.delete(policies, 'red/shop');
    await eventually('none is left', () => server.list(slices).length === 0);
  });

  it('removes slices that somebody made for no policy', async () => {
    const endpoints = [{ ns: 'red', pod: 'p9', ipv4: ['10.244.0.9'] }];
    server.put(slices, { metadata: { namespace: 'red', name: 'by-hand' }, ...{ endpoints } });
    putPolicy('shop');
    putPod('p1');
    await start();
    await eventually('it is gone', () => listedPods().join() === 'p1');
    server.put(clusterSlices, { metadata: { name: 'by-hand' }, ...{ endpoints } });
    await eventually('the cluster slice is gone', () => server.list(clusterSlices).length === 0);
    assert.deepEqual(listedPods(), ['p1']);
  });

  it('gives the slices of a policy that was made anew their new owner', async () => {
    putPolicy('shop');
    putPod('p1');
    await start();
    await eventually('the slice', () => listedPods().join() === 'p1');
    server.delete(policies, 'red/shop');
    const { uid } = putPolicy('shop').metadata;
    await eventually('the new owner', () => server.list(slices)[0]?.metadata.ownerReferences?.at(-1)?.uid === uid);
    assert.deepEqual(listedPods(), ['p1']);
  });

  it('changes nothing when it starts again', async () => {
    putPolicy('shop');
    for (const name of ['p1', 'p2', 'p3']) putPod(name);
    await start({ maxNumberEndpointPerSlice: 2 });
    await eventually('three pods', () => listedPods().length === 3);
    const before = listed();
    await running?.stop();
    const again = await start({ maxNumberEndpointPerSlice: 2 });
    assert.deepEqual([again.writes(), listed()], [0, before]);
  });

  it('gets there although writes fail, answers are lost and watches break', async () => {
    putPolicy('shop');
    await start({ maxNumberEndpointPerSlice: 2 });
    server.faults.add({ verb: 'apply' }, { kind: 'answer', status: 500 }, 5);
    server.faults.add({ verb: 'apply' }, { kind: 'lose-answer' }, 2);
    server.faults.add({ verb: 'apply' }, { kind: 'answer', status: 409, reason: 'Conflict' }, 2);
    const names = Array.from({ length: 9 }, (_, index) => `p${index}`);
    for (const [index, name] of names.entries()) {
      putPod(name);
      if (index % 3 === 0) server.breakWatches('drop');
    }
    await eventually('all pods once', () => listedPods().join() === names.join());
  });

  it('tries again when the slices of one policy are refused, and serves the other', async () => {
    putPolicy('shop');
    putPolicy('bad');
    await start();
    server.faults.add({ verb: 'apply', plural: slices.plural }, { kind: 'answer', status: 422, reason: 'Invalid' });
    putPod('p1');
    await eventually('both list the pod', () => listedPods().join() === 'p1,p1');
  });
});
