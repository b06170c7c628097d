import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Outages } from './outages.ts';

test('an outage is from the first question that failed to the next that was answered, whenever answers came', () => {
  const outages = new Outages();
  for (const [askedAtMs, isAnswered] of [
    [10, true],
    [40, true],
    [20, false],
    [30, false],
    [60, true],
    [50, false],
    [70, false],
  ] as const) {
    outages.add(askedAtMs, isAnswered);
  }
  assert.deepEqual(outages.list(), [
    { fromMs: 20, toMs: 40, failed: 2 },
    { fromMs: 50, toMs: 60, failed: 1 },
    { fromMs: 70, failed: 1 },
  ]);
});

test('without failures there is no outage', () => {
  const outages = new Outages();
  outages.add(10, true);
  assert.deepEqual(outages.list(), []);
});
