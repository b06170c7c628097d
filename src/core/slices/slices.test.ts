import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { projectPod, projectPolicy } from '../project/index.ts';
import { policyObject } from '../testing/objects.ts';
import { type Endpoint, endpointsOf } from './endpoints.ts';
import { packSlices, type Slice, type SliceChanges } from './slices.ts';

const endpoint = (pod: string, node = 'a'): Endpoint => ({
  ns: 'red',
  pod,
  ipv4: [`10.244.1.${pod.slice(1)}`],
  ipv6: [],
  node,
});
const pods = (...names: string[]): Endpoint[] => names.map((name) => endpoint(name));
const slice = (name: string, ...names: string[]): Slice => ({ name, endpoints: pods(...names) });

/** The slices after the changes. */
const changed = (existing: readonly Slice[], { write, remove }: SliceChanges): Slice[] => {
  const byName = new Map(existing.map((one) => [one.name, one]));
  for (const one of write) byName.set(one.name, one);
  for (const name of remove) byName.delete(name);
  return [...byName.values()];
};
const names = (slices: readonly Slice[]): string[] =>
  slices.flatMap(({ endpoints }) => endpoints.map(({ pod }) => pod)).toSorted();

describe('packSlices', () => {
  it('writes nothing when nothing has changed', () => {
    assert.deepEqual(packSlices('p', [slice('p-1', 'p1', 'p2')], pods('p2', 'p1'), 2), { write: [], remove: [] });
  });

  it('writes one slice for one pod that comes, goes or moves', () => {
    const existing = [slice('p-1', 'p1', 'p2', 'p3'), slice('p-2', 'p4')];
    const came = packSlices('p', existing, pods('p1', 'p2', 'p3', 'p4', 'p5'), 4);
    assert.deepEqual([came.write.map(({ name }) => name), came.remove], [['p-1'], []]);
    const went = packSlices('p', existing, pods('p1', 'p3', 'p4'), 4);
    assert.deepEqual([went.write.map(({ name }) => name), went.remove], [['p-1'], []]);
    const moved = packSlices('p', existing, [...pods('p1', 'p2', 'p3'), endpoint('p4', 'b')], 4);
    assert.deepEqual(moved, { write: [{ name: 'p-2', endpoints: [endpoint('p4', 'b')] }], remove: [] });
  });

  it('removes a slice that has become empty', () => {
    assert.deepEqual(packSlices('p', [slice('p-1', 'p1'), slice('p-2', 'p2')], pods('p2'), 1), {
      write: [],
      remove: ['p-1'],
    });
  });

  it('puts a new pod where another one left', () => {
    const changes = packSlices(
      'p',
      [slice('p-1', 'p1', 'p2'), slice('p-2', 'p3', 'p4')],
      pods('p1', 'p3', 'p4', 'p5'),
      2,
    );
    assert.deepEqual(changes, { write: [slice('p-1', 'p1', 'p5')], remove: [] });
  });

  it('joins slices that are written anyway', () => {
    const existing = [slice('p-1', 'p1', 'p2', 'p3'), slice('p-2', 'p4', 'p5', 'p6')];
    const changes = packSlices('p', existing, pods('p1', 'p4'), 3);
    assert.equal(changes.write.length + changes.remove.length, 2);
    assert.equal(changed(existing, changes).length, 1);
  });

  it('takes a pod out of the second slice that lists it', () => {
    assert.deepEqual(packSlices('p', [slice('p-1', 'p1'), slice('p-2', 'p1', 'p2')], pods('p1', 'p2'), 5).write, [
      slice('p-2', 'p2'),
    ]);
  });

  const podNames = fc.uniqueArray(
    fc.integer({ min: 0, max: 30 }).map((index) => `p${index}`),
    { maxLength: 25 },
  );

  it('lists exactly the wanted pods, never too many in a slice, and then rests', () => {
    fc.assert(
      fc.property(fc.array(podNames, { maxLength: 8 }), fc.integer({ min: 1, max: 6 }), (rounds, limit) => {
        let slices: readonly Slice[] = [];
        for (const wanted of rounds) {
          slices = changed(slices, packSlices('p', slices, pods(...wanted), limit));
          assert.deepEqual(names(slices), wanted.toSorted());
          assert.ok(slices.every(({ endpoints }) => endpoints.length > 0 && endpoints.length <= limit));
          assert.deepEqual(packSlices('p', slices, pods(...wanted), limit), { write: [], remove: [] });
        }
      }),
    );
  });

  it('writes no more slices than pods have changed', () => {
    fc.assert(
      fc.property(podNames, podNames, fc.integer({ min: 2, max: 6 }), (before, after, limit) => {
        const slices = changed([], packSlices('p', [], pods(...before), limit));
        const changes = packSlices('p', slices, pods(...after), limit);
        const difference = new Set(before).symmetricDifference(new Set(after)).size;
        assert.ok(changes.write.length + changes.remove.length <= difference);
      }),
    );
  });
});

describe('endpointsOf', () => {
  it('lists the pods of a policy by namespace and name', () => {
    const policy = projectPolicy(policyObject('red/p', { appliedTo: { podSelector: { matchLabels: { app: 'x' } } } }));
    const podOf = (name: string, labels: Record<string, string>) =>
      projectPod({
        metadata: { name, namespace: 'red', labels },
        spec: { nodeName: 'a' },
        status: { podIP: '10.244.1.9' },
      });
    const found = endpointsOf(
      policy,
      [podOf('z', { app: 'x' }), podOf('y', { app: 'y' }), podOf('b', { app: 'x' })],
      new Map(),
    );
    assert.deepEqual(found, [
      { ns: 'red', pod: 'b', ipv4: ['10.244.1.9'], ipv6: [], node: 'a' },
      { ns: 'red', pod: 'z', ipv4: ['10.244.1.9'], ipv6: [], node: 'a' },
    ]);
  });
});
