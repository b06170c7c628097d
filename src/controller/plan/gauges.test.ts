import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plan } from '../../core/plan/plan.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../core/testing/objects.ts';
import { createMetrics } from '../../runtime/metrics/metrics.ts';
import { observePlan, planGauges } from './gauges.ts';

const gateways = [gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] })];
const planOf = (policies: Parameters<typeof worldOf>[2]): Plan =>
  step(worldOf([nodeObject('n', ['10.0.0.1'])], gateways, policies));

test('the gauges count policies by reason, tunnels by phase, and addresses by pool, as the last plan has them', async () => {
  const metrics = createMetrics();
  let last: Plan | undefined;
  observePlan(metrics, () => last);
  const samples = async () => {
    const names: readonly string[] = Object.values(planGauges).map(({ name }) => name);
    const lines = (await metrics.registry.metrics()).split('\n');
    return lines.filter((line) => names.includes(line.slice(0, line.indexOf('{'))));
  };
  assert.deepEqual(await samples(), [], 'a replica that does not lead has no plan');
  const served = [
    policyObject('red/a', { gateway: 'g', allocator: 'rr' }),
    policyObject('red/b', { gateway: 'g', allocator: 'rr' }),
  ];
  last = planOf([...served, policyObject('red/c', { gateway: 'nowhere' })]);
  assert.deepEqual(await samples(), [
    'sallyport_policies{reason="EipAllocated"} 2',
    'sallyport_policies{reason="GatewayNotFound"} 1',
    'sallyport_tunnels{phase="Ready"} 1',
    'sallyport_gateway_pool_addresses{gateway="g",family="ipv4"} 9',
    'sallyport_gateway_pool_addresses{gateway="g",family="ipv6"} 0',
    'sallyport_gateway_pool_free_addresses{gateway="g",family="ipv4"} 7',
    'sallyport_gateway_pool_free_addresses{gateway="g",family="ipv6"} 0',
  ]);
  last = planOf(served);
  assert.ok(!(await samples()).some((line) => line.includes('GatewayNotFound')), 'what is over is not shown any more');
});
