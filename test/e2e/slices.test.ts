/**
 * Endpoint slices on a real API server, which prunes, defaults, merges by field manager and has its own idea of names.
 * Pods are plain objects. There is no garbage collector, so what disappears here was removed by the controller.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type KindName, type ObjectOf, resourceOf } from '../../src/api/kinds.ts';
import type { ControlLoop } from '../../src/controller/loop/control-loop.ts';
import { followMembers } from '../../src/controller/membership/members.ts';
import { slicesLoop } from '../../src/controller/slices/control-loop.ts';
import { type RunningControlLoop, startControlLoop } from '../../src/controller/testing.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { namespaces, World } from './controller-world.ts';
import {
  deletePod as deletePlainPod,
  makePodNamespace,
  type PodWish,
  makePod as plainPod,
  pods,
} from './plain-pods.ts';
import { tellOfProcesses } from './witness.ts';

const fieldManager = 'e2e';
const limitMs = 30_000;

let world: World;
let running: RunningControlLoop<ControlLoop>;
const start = async (feature: object = {}): Promise<void> => {
  const access = await loadAccess({ path: world.plane.kubeconfig });
  running = await startControlLoop({ access, feature }, (deps) => slicesLoop(deps, followMembers(deps.caches)));
};
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  await start();
});
after(async () => {
  await running?.stop();
  await world?.stop();
});
afterEach(() => assert.deepEqual(running.part.missing(), []));

const makeNamespace = (name: string, labels: Record<string, string> = {}) => makePodNamespace(world, name, labels);
const makePod = (key: string, wish: PodWish = {}) => plainPod(world.client, key, wish);
const deletePod = (key: string) => deletePlainPod(world.client, key);
const podKeys = (namespace: string, from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `${namespace}/p${String(from + index).padStart(4, '0')}`);
const makePods = (keys: readonly string[]) => Promise.all(keys.map((key) => makePod(key)));

const shop = { podSelector: { matchLabels: { app: 'shop' } } };
const makePolicy = async (key: string, appliedTo: object = shop): Promise<void> => {
  const [first = '', second] = key.split('/');
  const kind = second === undefined ? 'EgressClusterPolicy' : 'EgressPolicy';
  const metadata = second === undefined ? { name: first } : { namespace: first, name: second };
  await world.client.apply(resourceOf(kind), { metadata, ...{ spec: { appliedTo } } }, { fieldManager });
};

type SliceKind = 'EgressEndpointSlice' | 'EgressClusterEndpointSlice';
const slicesOf = async (policy: string): Promise<ObjectOf<SliceKind>[]> => {
  const [first = '', second] = policy.split('/');
  const kind: SliceKind & KindName = second === undefined ? 'EgressClusterEndpointSlice' : 'EgressEndpointSlice';
  const all: ObjectOf<SliceKind>[] = await world.list(kind);
  return all.filter(({ metadata }) => {
    const isThere = second === undefined || metadata.namespace === first;
    return isThere && metadata.ownerReferences?.some(({ name }) => name === (second ?? first));
  });
};
/** The pods that the slices of a policy list, sorted; a pod that is listed twice is there twice. */
const listed = async (policy: string): Promise<string[]> =>
  (await slicesOf(policy)).flatMap(({ endpoints = [] }) => endpoints.map(({ ns, pod }) => `${ns}/${pod}`)).toSorted();
const untilListed = (policy: string, keys: readonly string[]): Promise<void> => {
  const wanted = keys.toSorted().join();
  return eventually(
    `the slices of ${policy} list ${keys.length} pods`,
    async () => (await listed(policy)).join() === wanted,
    limitMs,
  );
};
const sizes = async (policy: string): Promise<number[]> =>
  (await slicesOf(policy)).map(({ endpoints = [] }) => endpoints.length).toSorted((a, b) => b - a);
/** Waits for that many writes since the start; the answer to a write may come a moment after others see it. */
const untilWrites = (count: number): Promise<void> =>
  eventually(`${count} slices are written`, () => running.writes('egressendpointslices') === count);

test('S00001 boundaries: 100 pods are one slice, the 101st opens a second, and each costs one write', async () => {
  await makeNamespace('edge');
  await makePods(podKeys('edge', 0, 99));
  await makePolicy('edge/shop');
  await untilListed('edge/shop', podKeys('edge', 0, 99));
  await untilWrites(1);
  await makePod('edge/p0099');
  await untilListed('edge/shop', podKeys('edge', 0, 100));
  await untilWrites(2);
  assert.deepEqual(await sizes('edge/shop'), [100]);
  await makePod('edge/p0100');
  await untilListed('edge/shop', podKeys('edge', 0, 101));
  await untilWrites(3);
  assert.deepEqual(await sizes('edge/shop'), [100, 1]);
  await deletePod('edge/p0042');
  await untilListed('edge/shop', podKeys('edge', 0, 101).toSpliced(42, 1));
  await untilWrites(4);
  assert.deepEqual(await sizes('edge/shop'), [99, 1]);
  await makePod('edge/p0101');
  await untilListed('edge/shop', podKeys('edge', 0, 102).toSpliced(42, 1));
  await untilWrites(5);
  assert.deepEqual(await sizes('edge/shop'), [100, 1], 'the gap is filled');
});

test('S00001 rounds: pods come and go, both kinds of slices list exactly those that are there', async () => {
  await makeNamespace('rounds', { team: 'rounds' });
  await makePolicy('rounds/shop');
  await makePolicy('rounds', { ...shop, namespaceSelector: { matchLabels: { team: 'rounds' } } });
  const before = running.writes();
  let keys: string[] = [];
  let changes = 0;
  for (const [round, size] of [40, 130, 10, 75, 0, 20].entries()) {
    const next = podKeys('rounds', round * 20, round * 20 + size);
    const gone = keys.filter((key) => !next.includes(key));
    const fresh = next.filter((key) => !keys.includes(key));
    await Promise.all([...gone.map(deletePod), ...fresh.map((key) => makePod(key))]);
    changes += gone.length + fresh.length;
    keys = next;
    await untilListed('rounds/shop', keys);
    await untilListed('rounds', keys);
    assert.ok((await sizes('rounds/shop')).every((count) => count > 0 && count <= 100));
  }
  assert.deepEqual([await sizes('rounds/shop'), await sizes('rounds')], [[20], [20]]);
  const writes = running.writes() - before;
  assert.ok(writes < changes / 4, `${changes} changes of pods under two policies cost ${writes} writes`);
});

test('host-network and finished pods are left out', async () => {
  await makeNamespace('kinds');
  await makePolicy('kinds/shop');
  await makePod('kinds/host', { hostNetwork: true });
  await makePod('kinds/done', { phase: 'Succeeded' });
  await makePod('kinds/runs');
  await untilListed('kinds/shop', ['kinds/runs']);
  const patch = { kind: 'merge', value: { status: { phase: 'Failed' } } } as const;
  await world.client.patch(pods, { namespace: 'kinds', name: 'runs' }, patch, { subresource: 'status' });
  await untilListed('kinds/shop', []);
  assert.deepEqual(await sizes('kinds/shop'), [], 'an empty slice is removed');
});

test('P00007 a policy by podSubnet lists the pods in it', async () => {
  await makeNamespace('subnet');
  await makePod('subnet/in', { ip: '10.244.7.7' });
  await makePod('subnet/out', { ip: '10.244.8.7' });
  await makePolicy('subnet/shop', { podSubnet: ['10.244.7.0/24'] });
  await untilListed('subnet/shop', ['subnet/in']);
});

test('a slice is found by generateName as with the Go implementation, and one that somebody makes for no policy goes', async () => {
  await makeNamespace('named');
  await makePod('named/p');
  const longest = 'n'.repeat(253);
  for (const name of ['shop', longest]) await makePolicy(`named/${name}`);
  for (const name of ['shop', longest]) await untilListed(`named/${name}`, ['named/p']);
  const resource = resourceOf('EgressEndpointSlice');
  const byHand = { metadata: { namespace: 'named', name: 'by-hand' }, endpoints: [{ ns: 'named', pod: 'nobody' }] };
  await world.client.create(resource, byHand);
  await eventually('the slice of no policy is gone', async () => {
    const slices = await world.list('EgressEndpointSlice');
    return slices.every(({ metadata }) => metadata.name !== byHand.metadata.name);
  });
  const [slice] = await slicesOf('named/shop');
  const { metadata } =
    (await world.client.get(resource, { namespace: 'named', name: slice?.metadata.name ?? '' })) ?? {};
  assert.equal(metadata?.generateName, 'shop-');
});

test('P00021 a policy lists pods of its own namespace only', async () => {
  for (const name of ['own', 'other']) await makeNamespace(name);
  await makePods(['own/p', 'other/p']);
  await makePolicy('own/shop');
  await untilListed('own/shop', ['own/p']);
  await makePolicy('other/shop');
  await untilListed('other/shop', ['other/p']);
  await untilListed('own/shop', ['own/p']);
});

test('P00014 an edited podSelector, P00020 a deleted policy, and one that is made anew', async () => {
  await makeNamespace('edit');
  await makePod('edit/a', { labels: { app: 'a' } });
  await makePod('edit/b', { labels: { app: 'b' } });
  await makePolicy('edit/shop', { podSelector: { matchLabels: { app: 'a' } } });
  await untilListed('edit/shop', ['edit/a']);
  await makePolicy('edit/shop', { podSelector: { matchLabels: { app: 'b' } } });
  await untilListed('edit/shop', ['edit/b']);
  await world.deletePolicy('edit/shop');
  await makePolicy('edit/shop', { podSelector: { matchLabels: { app: 'a' } } });
  const policy = await world.client.get(resourceOf('EgressPolicy'), { namespace: 'edit', name: 'shop' });
  await eventually('the slice belongs to the policy that was made anew', async () => {
    const [slice, ...others] = await slicesOf('edit/shop');
    const owners = slice?.metadata.ownerReferences ?? [];
    return others.length === 0 && owners.length === 1 && owners[0]?.uid === policy?.metadata.uid;
  });
  await untilListed('edit/shop', ['edit/a']);
  await world.deletePolicy('edit/shop');
  await eventually('no slice is left', async () => (await slicesOf('edit/shop')).length === 0);
});

test('the labels of a namespace decide over its pods under a cluster policy', async () => {
  for (const name of ['team-a', 'team-b']) await makeNamespace(name, { kubernetes: 'yes' });
  await makePods(['team-a/p', 'team-b/p']);
  await makePolicy('teams', { namespaceSelector: { matchLabels: { team: 'yes' } } });
  await world.namespace('team-a', { team: 'yes' });
  await untilListed('teams', ['team-a/p']);
  await world.namespace('team-b', { team: 'yes' });
  await untilListed('teams', ['team-a/p', 'team-b/p']);
  await world.namespace('team-a', {});
  await untilListed('teams', ['team-b/p']);
});

test('slices that somebody deletes, empties or takes the marks off are repaired', async () => {
  await makeNamespace('repair');
  await makePods(podKeys('repair', 0, 3));
  await makePolicy('repair/shop');
  await untilListed('repair/shop', podKeys('repair', 0, 3));
  const [slice] = await slicesOf('repair/shop');
  assert.ok(slice);
  const resource = resourceOf('EgressEndpointSlice');
  const ref = { namespace: 'repair', name: slice.metadata.name };
  const patch = (value: object) => world.client.patch(resource, ref, { kind: 'merge', value });

  await world.client.delete(resource, ref);
  await untilListed('repair/shop', podKeys('repair', 0, 3));
  await patch({ endpoints: [{ ns: 'repair', pod: 'intruder' }] });
  await untilListed('repair/shop', podKeys('repair', 0, 3));
  await patch({ metadata: { labels: { 'spidernet.io/policy-name': 'other' }, ownerReferences: null } });
  await eventually('label and owner are back', async () => {
    const { metadata } = (await world.client.get(resource, ref)) ?? {};
    return (
      metadata?.labels?.['spidernet.io/policy-name'] === 'shop' && metadata.ownerReferences?.[0]?.controller === true
    );
  });
  await untilListed('repair/shop', podKeys('repair', 0, 3));
  const all = await world.list('EgressEndpointSlice');
  assert.equal(all.filter(({ metadata }) => metadata.namespace === 'repair').length, 1);
});

test('a policy with the longest name has slices, and its label is valid', async () => {
  await makeNamespace('names');
  await makePod('names/p');
  const names = ['x', 'y'].map((last) => `${'n'.repeat(252)}${last}`);
  for (const name of names) await makePolicy(`names/${name}`);
  for (const name of names) await untilListed(`names/${name}`, ['names/p']);
});

test('after a restart of the API server pods are followed again, and a restart of the part writes nothing', async () => {
  await makeNamespace('restart');
  await makePods(podKeys('restart', 0, 5));
  await makePolicy('restart/shop');
  await untilListed('restart/shop', podKeys('restart', 0, 5));
  await world.plane.kill('kube-apiserver');
  await world.plane.start('kube-apiserver');
  await makePods(podKeys('restart', 5, 10));
  await untilListed('restart/shop', podKeys('restart', 0, 10));
  await running.stop();
  await start();
  assert.equal(running.writes(), 0);
});

test('maxNumberEndpointPerSlice takes effect as slices change', async () => {
  await makeNamespace('limit');
  await makePods(podKeys('limit', 0, 5));
  await makePolicy('limit/shop');
  await untilListed('limit/shop', podKeys('limit', 0, 5));
  running.configure({ maxNumberEndpointPerSlice: 2 });
  await makePod('limit/p0005');
  await untilListed('limit/shop', podKeys('limit', 0, 6));
  assert.deepEqual(await sizes('limit/shop'), [2, 2, 2]);
});

test('a namespace that goes does not stop the others', async () => {
  await makeNamespace('going');
  await makePolicy('going/shop');
  await makePod('going/p');
  await untilListed('going/shop', ['going/p']);
  // Without a namespace controller it stays in the phase Terminating, in which nothing can be made.
  await world.client.delete(namespaces, { name: 'going' });
  const [slice] = await slicesOf('going/shop');
  assert.ok(slice);
  await world.client.delete(resourceOf('EgressEndpointSlice'), { namespace: 'going', name: slice.metadata.name });
  await makePod('limit/p0006');
  await untilListed('limit/shop', podKeys('limit', 0, 7));
});
