import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../core/testing/objects.ts';
import { gaugeText } from './gauges.ts';

test('the gauges count policies by reason, tunnels by phase, and addresses by pool', () => {
  const policies = [
    policyObject('red/a', { gateway: 'g', allocator: 'rr' }),
    policyObject('red/b', { gateway: 'g', allocator: 'rr' }),
    policyObject('red/c', { gateway: 'nowhere' }),
  ];
  const gateways = [gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] })];
  const plan = step(worldOf([nodeObject('n', ['10.0.0.1'])], gateways, policies));
  assert.equal(
    gaugeText(plan),
    `# HELP sallyport_policies Policies by the reason that says most about them.
# TYPE sallyport_policies gauge
sallyport_policies{reason="EipAllocated"} 2
sallyport_policies{reason="GatewayNotFound"} 1
# HELP sallyport_tunnels Tunnels by phase.
# TYPE sallyport_tunnels gauge
sallyport_tunnels{phase="Ready"} 1
# HELP sallyport_gateway_pool_addresses Addresses in the pools of a gateway.
# TYPE sallyport_gateway_pool_addresses gauge
sallyport_gateway_pool_addresses{gateway="g",family="ipv4"} 9
sallyport_gateway_pool_addresses{gateway="g",family="ipv6"} 0
# HELP sallyport_gateway_pool_free_addresses Addresses in the pools of a gateway that no policy uses.
# TYPE sallyport_gateway_pool_free_addresses gauge
sallyport_gateway_pool_free_addresses{gateway="g",family="ipv4"} 7
sallyport_gateway_pool_free_addresses{gateway="g",family="ipv6"} 0
`,
  );
});

test('a replica that does not lead has no gauges', () => {
  assert.equal(gaugeText(undefined), '');
});
