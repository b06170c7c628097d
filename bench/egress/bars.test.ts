import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantile } from './bars.ts';

test('a percentile is a sample that was seen, and the 95th of twenty is the second largest', () => {
  const twenty = Array.from({ length: 20 }, (_, index) => 20 - index);
  assert.deepEqual([quantile(twenty, 0.5), quantile(twenty, 0.95), quantile([7], 0.95)], [10, 19, 7]);
});
