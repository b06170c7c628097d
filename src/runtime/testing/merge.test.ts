import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPatch, jsonPatch, mergePatch } from './merge.ts';

test('a merge patch sets, nests and removes (examples of RFC 7386)', () => {
  assert.deepEqual(mergePatch({ a: 'b' }, { a: 'c' }), { a: 'c' });
  assert.deepEqual(mergePatch({ a: 'b', b: 'c' }, { a: null }), { b: 'c' });
  assert.deepEqual(mergePatch({ a: { b: 'c' } }, { a: { b: 'd', c: null } }), { a: { b: 'd' } });
  assert.deepEqual(mergePatch({ a: [{ b: 'c' }] }, { a: [1] }), { a: [1] });
  assert.deepEqual(mergePatch({}, { a: { bb: { ccc: null } } }), { a: { bb: {} } });
});

test('a JSON patch adds, replaces, removes and tests (RFC 6902)', () => {
  const target = { list: ['a', 'b'], map: { 'x/y': 1 } };
  assert.deepEqual(
    jsonPatch(target, [
      { op: 'test', path: '/list/0', value: 'a' },
      { op: 'add', path: '/list/-', value: 'c' },
      { op: 'remove', path: '/list/0' },
      { op: 'replace', path: '/map/x~1y', value: 2 },
    ]),
    { list: ['b', 'c'], map: { 'x/y': 2 } },
  );
  assert.throws(() => jsonPatch(target, [{ op: 'test', path: '/list/0', value: 'z' }]), RangeError);
  assert.throws(() => jsonPatch(target, [{ op: 'replace', path: '/absent', value: 1 }]), RangeError);
  assert.throws(() => jsonPatch(target, [{ op: 'remove', path: '/list/2' }]), RangeError);
});

test('apply removes what the manager no longer names and leaves the fields of others', () => {
  const live = { spec: { mine: 1, dropped: 2, theirs: 3 } };
  const before = { spec: { mine: 1, dropped: 2 } };
  assert.deepEqual(applyPatch(live, before, { spec: { mine: 9 } }), { spec: { mine: 9, theirs: 3 } });
});
