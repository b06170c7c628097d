import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ElectoratePlan } from '../../core/ownership/electorate.ts';
import { createMetrics } from '../../runtime/metrics/metrics.ts';
import { observeElectorate } from './gauges.ts';

test('the gauges show the electorate and who is waited for, and 0 on a replica that does not lead', async () => {
  const metrics = createMetrics();
  let last: ElectoratePlan | undefined;
  observeElectorate(metrics, () => last);
  const samples = async () =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('sallyport_electorate'));
  const none = ['sallyport_electorate_generation 0', 'sallyport_electorate_awaited_reports 0'];
  assert.deepEqual(await samples(), none);
  const electorate = { generation: 3, voters: ['a', 'b'], hasApi: true };
  last = { electorate, isSettled: false, awaited: ['b'] };
  assert.deepEqual(await samples(), [
    'sallyport_electorate_generation 3',
    'sallyport_electorate_votes{of="nodes"} 2',
    'sallyport_electorate_votes{of="api"} 1',
    'sallyport_electorate_awaited_reports 1',
  ]);
});
