import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Census } from './ref-counted-set.ts';

test('a census tells what somebody has, as the same value while it is the same', () => {
  const census = new Census<string>();
  const none = census.present();
  assert.deepEqual(none, new Set());
  census.move(undefined, 'a');
  census.move(undefined, 'a');
  census.move(undefined, 'b');
  const both = census.present();
  assert.deepEqual(both, new Set(['a', 'b']));
  // One of two who have a, and b goes and comes back.
  census.move('a', 'a');
  census.move('a', undefined);
  census.move('b', undefined);
  census.move(undefined, 'b');
  assert.equal(census.present(), both);
  census.move('a', 'b');
  assert.deepEqual(census.present(), new Set(['b']));
});
