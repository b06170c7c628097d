import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { projectTunnel } from '../../core/project/index.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { type CachedTunnel, identityOf } from '../loop/caches.ts';
import { type HeartbeatSource, Heartbeats } from './heartbeats.ts';

const timeoutMs = 15_000;
const periodMs = 5_000;

/** Agents whose beats a test gives, and a connection that it breaks. */
const rig = () => {
  const clock = new ManualClock();
  let disconnectedAtMs: number | undefined;
  let tell: Parameters<HeartbeatSource['tunnels']['subscribe']>[0] = () => {};
  const source: HeartbeatSource = {
    tunnels: {
      subscribe: (listener) => {
        tell = listener;
        return () => {};
      },
    },
    disconnectedAtMs: () => disconnectedAtMs,
  };
  const heartbeats = new Heartbeats(source, clock);
  return {
    clock,
    heartbeats,
    beat(node: string, time: string, phase: EgressTunnelStatus['phase'] = 'Ready', report = {}) {
      const object = { metadata: { name: node }, status: { lastHeartbeatTime: time, phase, report } };
      const value: CachedTunnel = {
        identity: identityOf(object),
        view: projectTunnel(object, 'never'),
        status: object.status,
      };
      tell({ kind: 'put', key: node, value, previous: undefined });
    },
    disconnect() {
      disconnectedAtMs = clock.monotonicMs();
    },
    /** Looks every period for that long, as the planner does. */
    async look(forMs: number) {
      for (let passedMs = 0; passedMs < forMs; passedMs += periodMs) {
        await clock.advance(periodMs);
        heartbeats.look(timeoutMs, periodMs);
      }
    },
  };
};

describe('Heartbeats', () => {
  it('knows nothing of an agent that never beat', () => {
    assert.equal(rig().heartbeats.stateOf('a'), 'never');
  });

  it('gives an agent up that is silent for longer than the limit, and takes it back on the next beat', async () => {
    const { heartbeats, beat, look } = rig();
    beat('a', '2026-01-01T00:00:00Z');
    await look(15_000);
    assert.equal(heartbeats.stateOf('a'), 'fresh');
    await look(5_000);
    assert.equal(heartbeats.stateOf('a'), 'stale');
    beat('a', '2026-01-01T00:00:20Z');
    assert.equal(heartbeats.look(timeoutMs, periodMs), true, 'somebody is back');
    assert.equal(heartbeats.stateOf('a'), 'fresh');
    assert.equal(heartbeats.look(timeoutMs, periodMs), false, 'nothing is new');
  });

  it('gives an agent more time that other agents watch: it may only be on its way to the next version', async () => {
    const { heartbeats, beat, clock } = rig();
    const electorate = { generation: 1, voters: ['a'], apiVotes: false };
    beat('alone', '2026-01-01T00:00:00Z');
    beat('watched', '2026-01-01T00:00:00Z', 'Ready', { electorate });
    const states = () => [heartbeats.stateOf('alone'), heartbeats.stateOf('watched')];
    const look = async (forMs: number) => {
      for (let passedMs = 0; passedMs < forMs; passedMs += periodMs) {
        await clock.advance(periodMs);
        heartbeats.look(timeoutMs, periodMs, 35_000);
      }
    };
    await look(35_000);
    assert.deepEqual(states(), ['stale', 'fresh']);
    await look(5_000);
    assert.deepEqual(states(), ['stale', 'stale']);
  });

  it('does not look at the date of an agent', async () => {
    const { heartbeats, beat, look } = rig();
    beat('ahead', '2099-01-01T00:00:00Z');
    for (let index = 0; index < 4; index += 1) {
      beat('behind', `1999-01-01T00:00:0${index}Z`);
      await look(5_000);
    }
    assert.deepEqual([heartbeats.stateOf('ahead'), heartbeats.stateOf('behind')], ['stale', 'fresh']);
  });

  it('counts silence from the end of a lost connection, since nobody could be heard before', async () => {
    const { heartbeats, beat, look, disconnect } = rig();
    beat('a', '2026-01-01T00:00:00Z');
    await look(10_000);
    disconnect();
    await look(15_000);
    assert.equal(heartbeats.stateOf('a'), 'fresh');
    await look(5_000);
    assert.equal(heartbeats.stateOf('a'), 'stale');
    disconnect();
    await look(5_000);
    assert.equal(heartbeats.stateOf('a'), 'stale', 'a disturbance on our side brings nobody back to life');
  });

  it('does not count the time in which this process was frozen', async () => {
    const { heartbeats, beat, look, clock } = rig();
    beat('a', '2026-01-01T00:00:00Z');
    await look(5_000);
    await clock.advance(60_000);
    heartbeats.look(timeoutMs, periodMs);
    assert.equal(heartbeats.stateOf('a'), 'fresh');
  });

  it('does not bring an agent back to life that was given up before a restart', async () => {
    const { heartbeats, beat } = rig();
    beat('a', '2026-01-01T00:00:00Z', 'HeartbeatTimeout');
    beat('b', '2026-01-01T00:00:00Z', 'Ready');
    assert.deepEqual([heartbeats.stateOf('a'), heartbeats.stateOf('b')], ['stale', 'fresh']);
    heartbeats.look(timeoutMs, periodMs);
    assert.deepEqual([heartbeats.stateOf('a'), heartbeats.stateOf('b')], ['stale', 'fresh']);
  });

  it('gives nobody up when fail-over is off', async () => {
    const { heartbeats, beat, clock } = rig();
    beat('a', '2026-01-01T00:00:00Z');
    await clock.advance(3_600_000);
    heartbeats.look(Number.POSITIVE_INFINITY, periodMs);
    assert.equal(heartbeats.stateOf('a'), 'fresh');
  });
});
