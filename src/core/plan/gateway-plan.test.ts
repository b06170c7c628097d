import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../testing/address.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';
import { createPlanner } from './plan.ts';

test('a gateway is not Ready while another machine claims one of its EIPs, and names it, and is when it no longer does', () => {
  const world = worldOf(
    [nodeObject('a', ['10.0.0.1'])],
    [gatewayObject('g', { ipv4: ['10.6.1.1'] }), gatewayObject('h', { ipv4: ['10.6.2.1'] })],
    [policyObject('red/p', { gateway: 'g' }), policyObject('red/q', { gateway: 'h' })],
  );
  step(world);
  const view = viewOf(world);
  const planner = createPlanner();
  const readyOf = (tunnels: typeof view.tunnels) =>
    planner({ ...view, tunnels }).plan.gateways.map(({ name, ready }) => [name, ready.reason, ready.sentence]);
  const before = readyOf(view.tunnels);
  assert.deepEqual(
    before.map(([, reason]) => reason),
    ['NodesReady', 'NodesReady'],
  );
  const conflicts = [{ ip: ip('10.6.1.1'), mac: '66:00:00:00:00:09', interface: 'eth0' }];
  const [first, second] = readyOf(view.tunnels.map((tunnel) => ({ ...tunnel, conflicts })));
  assert.deepEqual(first?.slice(0, 2), ['g', 'EipInUse']);
  assert.match(first?.[2] ?? '', /10\.6\.1\.1 of node a by 66:00:00:00:00:09/);
  assert.equal(second?.[1], 'NodesReady');
  assert.deepEqual(readyOf(view.tunnels), before);
});
