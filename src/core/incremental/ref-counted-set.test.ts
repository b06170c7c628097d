import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefCountedSet } from './ref-counted-set.ts';

test('a reference counts tells what somebody has, as the same value while it is the same', () => {
  const refCounts = new RefCountedSet<string>();
  const none = refCounts.present();
  assert.deepEqual(none, new Set());
  refCounts.move(undefined, 'a');
  refCounts.move(undefined, 'a');
  refCounts.move(undefined, 'b');
  const both = refCounts.present();
  assert.deepEqual(both, new Set(['a', 'b']));
  // One of two who have a, and b goes and comes back.
  refCounts.move('a', 'a');
  refCounts.move('a', undefined);
  refCounts.move('b', undefined);
  refCounts.move(undefined, 'b');
  assert.equal(refCounts.present(), both);
  refCounts.move('a', 'b');
  assert.deepEqual(refCounts.present(), new Set(['b']));
});
