import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginDoubled, endDoubled, isExplained } from '../chaos/doubled.ts';

const [here, there, third] = ['gateway-1', 'gateway-2', 'gateway-3'];

test('two faults at once explain two owners for the lease of the kernel, and not a moment more', () => {
  const all = [beginDoubled(here, 1_000)];
  assert.ok(isExplained(all, [here, there], 1_000, 29_000));
  assert.ok(!isExplained(all, [here, there], 999, 2_000), 'it began before');
  assert.ok(!isExplained(all, [here, there], 2_000, 29_001), 'it went on');
  assert.ok(!isExplained([], [here, there], 2_000, 3_000));
});

test('they do so only until the agent is back, and never for longer than the lease', () => {
  const doubled = beginDoubled(here, 0);
  endDoubled(doubled, 5_000);
  assert.ok(isExplained([doubled], [there, here], 100, 7_500));
  assert.ok(!isExplained([doubled], [there, here], 100, 7_501));
  endDoubled(doubled, 60_000);
  assert.ok(!isExplained([doubled], [there, here], 100, 7_501));
});

test('they explain no other nodes, and no third one', () => {
  const all = [beginDoubled(here, 0)];
  assert.ok(!isExplained(all, [there, third], 100, 200));
  assert.ok(!isExplained(all, [here, there, third], 100, 200));
  assert.ok(!isExplained(all, [here], 100, 200));
});
