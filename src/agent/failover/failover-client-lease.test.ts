/** The lease of the kernel at the start of an agent: what it found there it holds no longer than the kernel would by itself. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import { setOfIps } from '../../core/ip/index.ts';
import { createNodePlanner } from '../../core/node/desired-for.ts';
import { ip } from '../../core/testing/address.ts';
import { nodeInput } from '../../core/testing/nodes.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../core/testing/objects.ts';
import { viewOf } from '../../core/testing/world.ts';
import { createFakeGate } from '../../dataplane/gate/testing/fake-gate.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import type { HeartbeatHooks } from '../heartbeat/heartbeat.ts';
import type { ThreadData } from '../heartbeat/thread.ts';
import { FailoverClient } from './failover-client.ts';

const eip = ip('10.6.0.100');

/** A node whose kernel holds the EIP for 3 s when its agent starts. */
const holding = async () => {
  const world = worldOf(
    [nodeObject('a', ['10.6.0.11'])],
    [gatewayObject('out', { ipv4: [eip] })],
    [policyObject('shop/web', { gateway: 'out', allocator: 'default' })],
  );
  step(world);
  const view = viewOf(world);
  const clock = new ManualClock();
  const gate = createFakeGate(clock);
  await gate.prepare();
  gate.hold([{ ip: eip, epoch: 6, isAnswered: true }], 3_000);
  const threads: { readonly data: ThreadData; readonly hooks: HeartbeatHooks }[] = [];
  let keys = [new Uint8Array(32).fill(1)];
  const failoverClient = new FailoverClient({
    node: 'a',
    config: { current: Config.parse({}) },
    facts: () => ({
      policies: view.policies,
      tunnels: view.tunnels,
      electorate: { generation: 1, voters: ['a'], hasApi: false },
      rosters: [
        { name: 'out', pools: { ipv4: setOfIps([eip]), ipv6: setOfIps([]) }, nodes: ['a'], keepsConnections: true },
      ],
    }),
    keys: () => keys,
    gate,
    firstSignature: 1,
    startHeartbeat: (data, hooks) => {
      threads.push({ data, hooks });
      return {
        listening: async () => {},
        take: () => {},
        vote: () => {},
        setAddresses: () => {},
        setReady: () => {},
        setUplink: () => {},
        setMirror: () => {},
        renew: () => {},
        close: async () => {},
      };
    },
    mirrorSupervisor: { set: () => {}, close: async () => {} },
    clock,
    log: createLog({ process: 'test', level: 'silent' }),
    onChange: () => {},
    onOpened: () => {},
    onHappening: () => {},
    onEvents: () => {},
  });
  const plan = createNodePlanner();
  return {
    clock,
    gate,
    failoverClient,
    apply: () =>
      failoverClient.applied(plan(nodeInput(view, 'a', [], { ownership: failoverClient.ownership() })), undefined),
    changeKeys: () => {
      keys = [new Uint8Array(32).fill(2)];
    },
    thread: () => threads.at(-1) ?? assert.fail('no thread'),
  };
};

describe('Failover client, when its kernel holds an EIP', () => {
  it('does not prolong what the kernel holds when it starts: another node may own it by now', async () => {
    const { clock, gate, failoverClient, apply, thread } = await holding();
    await clock.advance(2_000);
    await failoverClient.begin(new Set());
    apply();
    assert.deepEqual([thread().data.heldUntilMs, gate.answered()], [3_000, [eip]]);
    failoverClient.renew();
    await clock.advance(1_001);
    assert.deepEqual(gate.answered(), []);
  });

  it('holds nothing when the process stood still for longer than the kernel holds before it had a thread', async () => {
    const { clock, gate, failoverClient, apply, thread } = await holding();
    await failoverClient.begin(new Set());
    await clock.advance(35_000);
    failoverClient.renew();
    assert.deepEqual(gate.answered(), []);
    apply();
    assert.deepEqual([thread().data.held, thread().data.heldUntilMs], [[], Infinity]);
  });

  it('gives another thread no longer time than the kernel has', async () => {
    const { failoverClient, apply, changeKeys, thread } = await holding();
    await failoverClient.begin(new Set());
    apply();
    thread().hooks.told([{ kind: 'lease', untilMs: 12_345 }]);
    changeKeys();
    apply();
    assert.equal(thread().data.heldUntilMs, 12_345);
  });
});
