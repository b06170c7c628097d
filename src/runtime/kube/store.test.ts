import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Store } from './store.ts';

interface Pod {
  readonly node: string;
  readonly labels: readonly string[];
}

function podStore() {
  return new Store<Pod, 'byNode' | 'byLabel'>({ byNode: (pod) => [pod.node], byLabel: (pod) => pod.labels });
}

test('a value that is written again without a difference is no change', () => {
  const store = podStore();
  const first = store.put('a', { node: 'n1', labels: ['x'] });
  assert.deepEqual(first, { kind: 'put', key: 'a', value: { node: 'n1', labels: ['x'] }, previous: undefined });
  assert.equal(store.put('a', { node: 'n1', labels: ['x'] }), undefined);
  assert.deepEqual(store.put('a', { node: 'n2', labels: ['x'] })?.previous, { node: 'n1', labels: ['x'] });
});

test('deleting twice is one change', () => {
  const store = podStore();
  store.put('a', { node: 'n1', labels: [] });
  assert.deepEqual(store.delete('a'), { kind: 'delete', key: 'a', previous: { node: 'n1', labels: [] } });
  assert.equal(store.delete('a'), undefined);
});

test('readers cannot damage what is stored', () => {
  const store = podStore();
  store.put('a', { node: 'n1', labels: ['x'] });
  assert.ok(Object.isFrozen(store.get('a')));
  assert.ok(Object.isFrozen(store.get('a')?.labels));
});

test('indexes always say the same as a search through all values', () => {
  const pod = fc.record({
    node: fc.constantFrom('n1', 'n2', 'n3'),
    labels: fc.uniqueArray(fc.constantFrom('x', 'y', 'z')),
  });
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), value: fc.option(pod, { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const store = podStore();
      for (const { key, value } of steps) {
        if (value === undefined) store.delete(key);
        else store.put(key, value);
      }
      const keysWhere = (isIn: (value: Pod) => boolean) =>
        [...store.entries()].filter(([, value]) => isIn(value)).map(([key]) => key);
      for (const node of ['n1', 'n2', 'n3']) {
        assert.deepEqual(store.keysBy('byNode', node), keysWhere((value) => value.node === node).sort());
      }
      for (const label of ['x', 'y', 'z']) {
        assert.deepEqual(store.keysBy('byLabel', label), keysWhere((value) => value.labels.includes(label)).sort());
        assert.equal(store.valuesBy('byLabel', label).length, store.keysBy('byLabel', label).length);
      }
    }),
  );
});
