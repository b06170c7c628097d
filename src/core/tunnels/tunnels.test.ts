import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Plan, plan } from '../plan/plan.ts';
import { nodeObject, step, worldOf } from '../testing/objects.ts';
import { viewOf, type World } from '../testing/world.ts';

const world = (): World => worldOf([nodeObject('a'), nodeObject('b')], [], []);
const tunnelOf = (planned: Plan, node: string) => planned.tunnels.find((tunnel) => tunnel.node === node);
const setTunnel = (on: World, node: string, status: object): void => {
  const existing = on.tunnels.get(node);
  assert.ok(existing);
  on.tunnels.set(node, { ...existing, status: { ...(existing.status ?? {}), ...status } });
};

describe('the phase of a tunnel', () => {
  it('is Init until the agent has built the device, then Ready', () => {
    const on = world();
    on.nodes.set('c', nodeObject('c'));
    assert.deepEqual([tunnelOf(step(on), 'c')?.phase, tunnelOf(step(on), 'c')?.phase], ['Init', 'Ready']);
  });

  it('follows the node', () => {
    const on = world();
    on.nodes.set('a', nodeObject('a', [], {}, false));
    const tunnel = tunnelOf(step(on), 'a');
    assert.deepEqual([tunnel?.phase, tunnel?.ready.reason], ['NodeNotReady', 'NodeNotReady']);
  });

  it('is HeartbeatTimeout when the agent is silent', () => {
    const on = world();
    on.silent.add('a');
    const tunnel = tunnelOf(step(on), 'a');
    assert.deepEqual([tunnel?.phase, tunnel?.ready.reason], ['HeartbeatTimeout', 'HeartbeatLost']);
    on.silent.clear();
    assert.equal(tunnelOf(step(on), 'a')?.phase, 'Ready');
  });

  it('is that of a silent agent where agents watch each other, whatever Kubernetes says of the node', () => {
    const world = worldOf([nodeObject('a')], [], []);
    const tunnel = world.tunnels.get('a');
    assert.ok(tunnel);
    const report = { electorate: { generation: 1, voters: ['a'], apiVotes: false } };
    world.tunnels.set('a', { ...tunnel, status: { ...(tunnel.status ?? {}), report } });
    world.nodes.set('a', nodeObject('a', [], { egress: 'true' }, false));
    const phase = () => plan(viewOf(world)).tunnels[0]?.phase;
    assert.equal(phase(), 'NodeNotReady');
    world.silent.add('a');
    assert.equal(phase(), 'HeartbeatTimeout');
  });

  it('is Failed with the reason that the agent reports', () => {
    const on = world();
    setTunnel(on, 'a', { report: { problems: [{ reason: 'VxlanMissing', message: 'no module vxlan on a' }] } });
    assert.deepEqual(tunnelOf(plan(viewOf(on)), 'a')?.ready, {
      reason: 'VxlanMissing',
      sentence: 'no module vxlan on a',
    });
    assert.equal(tunnelOf(plan(viewOf(on)), 'a')?.phase, 'Failed');
  });

  it('is not touched when the node notices losses late, which is another condition', () => {
    const on = world();
    setTunnel(on, 'a', { report: { detectionMilliseconds: 400 } });
    const [slow, quick] = ['a', 'b'].map((node) => tunnelOf(plan(viewOf(on)), node));
    assert.deepEqual(
      [slow?.phase, slow?.ready.reason, slow?.slowed?.reason],
      ['Ready', 'TunnelReady', 'DetectionSlowed'],
    );
    assert.match(slow?.slowed?.sentence ?? '', /Node a notices the loss of a gateway node after up to 400 ms/);
    assert.equal(quick?.slowed, undefined);
    on.silent.add('a');
    assert.equal(tunnelOf(plan(viewOf(on)), 'a')?.slowed, undefined, 'it says nothing any more');
  });

  it('is not touched by a problem with one policy', () => {
    const on = world();
    const problem = { reason: 'VxlanMissing', message: 'x', policy: 'red/p' };
    setTunnel(on, 'a', { report: { problems: [problem] } });
    assert.equal(tunnelOf(plan(viewOf(on)), 'a')?.phase, 'Ready');
  });
});

describe('the tunnel of a node', () => {
  it('is made anew with the same values when it was deleted', () => {
    const on = world();
    const before = tunnelOf(plan(viewOf(on)), 'a');
    on.tunnels.delete('a');
    const after = tunnelOf(plan(viewOf(on)), 'a');
    assert.deepEqual([after?.mark, after?.ipv4, after?.ipv6], [before?.mark, before?.ipv4, before?.ipv6]);
  });

  it('is an orphan when its node is gone', () => {
    const on = world();
    on.nodes.delete('b');
    assert.deepEqual(plan(viewOf(on)).orphanTunnels, ['b']);
  });

  it('gets another mark when its own is that of an older one, which keeps it', () => {
    const on = world();
    const mark = tunnelOf(plan(viewOf(on)), 'a')?.mark;
    setTunnel(on, 'b', { mark });
    const planned = plan(viewOf(on));
    assert.equal(tunnelOf(planned, 'a')?.mark, mark);
    assert.notEqual(tunnelOf(planned, 'b')?.mark, mark);
  });

  it('survives a status that somebody has filled with nonsense', () => {
    const on = world();
    on.tunnels.set('a', { metadata: { name: 'a' }, status: 'nonsense' });
    setTunnel(on, 'b', { mark: 'zebra', tunnel: { ipv4: '010.0.0.1', mac: 'x' } });
    const planned = plan(viewOf(on));
    assert.equal(new Set(planned.tunnels.map(({ ipv4 }) => ipv4)).size, 2);
    assert.ok(planned.tunnels.every(({ mark }) => /^0x26[0-9a-f]{4}00$/.test(mark ?? '')));
  });

  it('names the node and the remedy when the range is full', () => {
    const on = world();
    const view = viewOf(on);
    const tiny = {
      ...view,
      tunnels: [],
      settings: { ...view.settings, tunnelRanges: { ...view.settings.tunnelRanges, ipv4: view.ranges.pods } },
    };
    const tunnel = plan(tiny).tunnels[0];
    assert.equal(tunnel?.phase, 'Failed');
    assert.equal(
      tunnel?.allocated.sentence,
      'No IPv4 tunnel address is left for node a. Set a larger tunnelIpv4Subnet or tunnelIpv6Subnet in the configuration.',
    );
  });
});
