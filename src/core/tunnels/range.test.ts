import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterView } from '../cluster/view.ts';
import { type Ip, poolOf } from '../ip/index.ts';
import { plan } from '../plan/plan.ts';
import { gatewayObject, nodeObject, worldOf } from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';

const view = viewOf(
  worldOf([nodeObject('a'), nodeObject('b')], [gatewayObject('main', { ipv4: ['10.6.0.0/24'] })], []),
);
const rangeOf = (text: string) => {
  const range = poolOf([text]);
  assert.ok(range.ok);
  return range.value;
};
/** The view with a tunnel range. */
const withRange = (text: string, given: ClusterView = view): ClusterView => ({
  ...given,
  settings: { ...given.settings, tunnelRanges: { ...given.settings.tunnelRanges, ipv4: rangeOf(text) } },
});
const tunnelOf = (given: ClusterView, node = 'a') => {
  const tunnel = plan(given).tunnels.find((one) => one.node === node);
  assert.ok(tunnel);
  return tunnel;
};

describe('a tunnel range', () => {
  it('that nobody else uses is not talked about', () => {
    assert.equal(tunnelOf(view).allocated.reason, 'TunnelAllocated');
  });

  it('that overlaps the pods, Services, nodes or EIPs is told by the tunnels, which go on', () => {
    for (const [what, given] of [
      ['pods', { ...view, ranges: { ...view.ranges, pods: rangeOf('172.16.0.0/12') } }],
      ['Services', { ...view, ranges: { ...view.ranges, services: rangeOf('172.31.7.0/24') } }],
      ['addresses of API servers', { ...view, ranges: { ...view.ranges, apiServers: rangeOf('172.31.7.1') } }],
      ['addresses of nodes', { ...view, ranges: { ...view.ranges, nodes: rangeOf('172.31.7.9') } }],
      ['EIPs of gateway main', withRange('10.6.0.0/16')],
    ] as const) {
      const tunnel = tunnelOf(given);
      assert.deepEqual([tunnel.allocated.reason, tunnel.phase], ['TunnelRangeOverlaps', 'Ready'], what);
      assert.match(tunnel.allocated.sentence, new RegExp(`overlaps ${what}: `));
    }
  });

  it('gives nobody what somebody else has', () => {
    const taken = { ...view, ranges: { ...view.ranges, services: rangeOf('172.31.0.0/17') }, tunnels: [] };
    for (const { ipv4 } of plan(taken).tunnels) assert.match(ipv4 ?? '', /^172\.31\.(12[89]|1[3-9]\d|2\d\d)\./);
  });

  it('leaves a tunnel what it has while only ranges overlap', () => {
    const { ipv4 } = tunnelOf(view);
    const overlapping = { ...view, ranges: { ...view.ranges, pods: rangeOf('172.31.0.0/16') } };
    assert.equal(tunnelOf(overlapping).ipv4, ipv4);
  });

  const withAddress = (node: string, ip: Ip | undefined): ClusterView => ({
    ...view,
    nodes: view.nodes.map((one) =>
      one.name === node && ip !== undefined ? { ...one, addresses: [...one.addresses, ip] } : one,
    ),
  });

  it('takes an address away from a tunnel when another machine has it', () => {
    const { ipv4 } = tunnelOf(view);
    const given = tunnelOf(withAddress('b', ipv4));
    assert.notEqual(given.ipv4, ipv4);
    assert.ok(given.ipv4);
  });

  it('is not talked about when a cloud lists the address of a tunnel as one of its own node', () => {
    const before = tunnelOf(view);
    const given = tunnelOf(withAddress('a', before.ipv4));
    assert.deepEqual([given.ipv4, given.allocated.reason], [before.ipv4, 'TunnelAllocated']);
  });
});
