import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Config } from '../../api/config.ts';
import { type Ip, setOfIps } from '../../core/ip/index.ts';
import type { NodeDesired } from '../../core/node/desired.ts';
import { createNodePlanner } from '../../core/node/desired-for.ts';
import { nodeGroupKey } from '../../core/ownership/node-group.ts';
import { ip } from '../../core/testing/address.ts';
import { nodeInput } from '../../core/testing/nodes.ts';
import {
  gatewayObject,
  nodeObject,
  type PolicyShape,
  policyObject,
  step,
  worldOf,
} from '../../core/testing/objects.ts';
import { viewOf } from '../../core/testing/world.ts';
import { createFakeGate, type FakeGate } from '../../dataplane/gate/testing/fake-gate.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import type { OwnershipFacts } from '../inputs/gather.ts';
import type { MirrorTask } from '../mirror/mirror-supervisor.ts';
import { type FakeThread, fakeThread } from '../testing/fake-thread.ts';
import { FailoverClient, type FailoverEvent, type OwnershipEvent } from './failover-client.ts';

const [eip, pair] = [ip('10.6.0.100'), ip('fd06::100')];

/** Two gateway nodes and a policy. */
const viewWith = (shape: PolicyShape) => {
  const world = worldOf(
    [nodeObject('a', ['10.6.0.11', 'fd06::11']), nodeObject('b', ['10.6.0.12', 'fd06::12'])],
    [gatewayObject('out', { ipv4: [eip], ipv6: [pair] })],
    [policyObject('shop/web', { gateway: 'out', ...shape })],
  );
  step(world);
  return viewOf(world);
};
/** With an EIP of both families. */
const view = viewWith({ allocator: 'default' });
const [recorded] = view.policies.map((policy) => policy.recorded.node);
const owner = recorded ?? assert.fail('the policy has no node');
const other = owner === 'a' ? 'b' : 'a';

describe('Steward', () => {
  let clock: ManualClock;
  let gate: FakeGate;
  let threads: FakeThread[];
  let facts: OwnershipFacts;
  let keys: readonly Uint8Array[];
  let changes: number;
  let openings: number;
  let happenings: (FailoverEvent | OwnershipEvent)[];
  let mirrored: MirrorTask | undefined;
  beforeEach(() => {
    clock = new ManualClock();
    gate = createFakeGate(clock);
    threads = [];
    keys = [new Uint8Array(32).fill(1)];
    changes = 0;
    openings = 0;
    happenings = [];
    mirrored = undefined;
    facts = {
      policies: view.policies,
      tunnels: view.tunnels,
      electorate: { generation: 1, voters: ['a', 'b'], hasApi: true },
      rosters: [
        {
          name: 'out',
          pools: { ipv4: setOfIps([eip]), ipv6: setOfIps([pair]) },
          nodes: ['a', 'b'],
          keepsConnections: true,
        },
      ],
    };
  });

  const open = (node: string): FailoverClient =>
    new FailoverClient({
      node,
      config: { current: Config.parse({ feature: { enableIPv6: true } }) },
      facts: () => facts,
      keys: () => keys,
      gate,
      firstSignature: 1,
      startHeartbeat: (data, hooks) => {
        const { thread, port } = fakeThread(data, hooks);
        threads.push(thread);
        return port;
      },
      mirrorSupervisor: {
        set: (wanted) => {
          mirrored = wanted;
        },
        close: async () => {},
      },
      clock,
      log: createLog({ process: 'test', level: 'silent' }),
      onChange: () => {
        changes += 1;
      },
      onOpened: () => {
        openings += 1;
      },
      onHappening: (happening) => happenings.push(happening),
      onEvents: (events) => happenings.push(...events),
    });
  const plan = createNodePlanner();
  const desiredWith = (failoverClient: FailoverClient, node: string): NodeDesired =>
    plan(nodeInput(view, node, [], { ownership: failoverClient.ownership() }));
  /** One pass of an agent. */
  const pass = async (
    failoverClient: FailoverClient,
    node: string,
    found: readonly Ip[] = [],
  ): Promise<NodeDesired> => {
    await failoverClient.begin(new Set(found));
    const desired = desiredWith(failoverClient, node);
    failoverClient.applied(desired, undefined);
    return desired;
  };
  const thread = (): FakeThread => threads.at(-1) ?? assert.fail('no thread');

  it('leaves everything to the record while there is no key or no electorate', async () => {
    const known = keys;
    keys = [];
    assert.equal((await pass(open(other), other)).table.settings.isGated, false);
    keys = known;
    facts = { ...facts, electorate: undefined };
    assert.equal((await pass(open(other), other)).table.settings.isGated, false);
    assert.deepEqual(threads, []);
  });

  it('starts the thread with what the node holds by record, and tells it the plan and what lies ready', async () => {
    const desired = await pass(open(owner), owner, [eip, pair]);
    assert.equal(desired.table.settings.isGated, true);
    assert.deepEqual(thread().data.held, [{ eip, epoch: 0, mode: 'owned' }]);
    assert.deepEqual(gate.answered(), [eip, pair], 'nothing is let go meanwhile');
    assert.deepEqual([...thread().ready.keys()], [eip]);
    assert.equal(thread().addresses.size, 2);
    const [input] = thread().inputs;
    assert.ok(input?.kind === 'plan');
    assert.deepEqual(input.plan.eips, [{ eip, addresses: [eip, pair], epoch: 0, candidates: [owner, other] }]);
    assert.deepEqual(input.plan.gateways, ['a', 'b']);
  });

  it('says so while the thread has not come so far that it hears others', async () => {
    const failoverClient = open(owner);
    assert.equal(failoverClient.isListening(), true, 'there is no thread to wait for');
    await pass(failoverClient, owner, [eip, pair]);
    assert.equal(failoverClient.isListening(), false);
    thread().listening.resolve();
    await thread().listening.promise;
    assert.equal(failoverClient.isListening(), true);
    keys = [new Uint8Array(32).fill(2)];
    await pass(failoverClient, owner, [eip, pair]);
    assert.equal(failoverClient.isListening(), false, 'another thread has taken its place');
    thread().listening.reject(new Error('the port is taken'));
    thread().hooks.failed(new Error('the port is taken'));
    assert.equal(failoverClient.isListening(), true, 'a thread that failed is told about, and tried again');
  });

  it('takes part for as long as it holds an EIP, also when nobody selects the node any more', async () => {
    const failoverClient = open(owner);
    await pass(failoverClient, owner, [eip, pair]);
    const last = () => {
      const input = thread().inputs.at(-1);
      return input?.kind === 'plan' ? input.plan : assert.fail('no plan');
    };
    facts = {
      ...facts,
      policies: facts.policies.map((policy) => ({ ...policy, recorded: { ...policy.recorded, node: other } })),
      rosters: facts.rosters.map((roster) => ({ ...roster, nodes: [other] })),
      electorate: { generation: 2, voters: [other], hasApi: false },
    };
    await pass(failoverClient, owner);
    assert.deepEqual([last().gateways, last().eips.length], [[other, owner], 1]);
    assert.ok(mirrored !== undefined, 'its connections are told to whom they go');
    thread().hooks.told({ kind: 'hold', held: [] });
    await pass(failoverClient, owner);
    assert.deepEqual([last().gateways, last().eips.length, mirrored], [[], 0, undefined]);
  });

  it('holds after a restart what the kernel holds, with its epoch, whatever lies ready', async () => {
    await gate.prepare();
    gate.hold([{ ip: eip, epoch: 6, isAnswered: true }], 1_000);
    await pass(open(other), other, [eip, pair]);
    assert.deepEqual(thread().data.held, [{ eip, epoch: 6, mode: 'owned' }]);
    gate.hold([], 1_000);
    await pass(open(owner), owner, [eip, pair]);
    assert.deepEqual(thread().data.held, [], 'an address that lies ready is not one that is held');
  });

  it('prepares what may come, and claims it when the thread holds it', async () => {
    const failoverClient = open(other);
    const before = await pass(failoverClient, other);
    assert.deepEqual([before.claims, before.standbys.map((claim) => claim.ip)], [[], [eip, pair]]);
    thread().hooks.told({ kind: 'hold', held: [{ eip, epoch: 4, mode: 'owned' }] });
    assert.equal(changes, 1);
    const { claims, epochs } = desiredWith(failoverClient, other);
    assert.deepEqual([claims.map((claim) => claim.ip), epochs.get(pair)], [[eip, pair], 4]);
    assert.equal(failoverClient.ownership()?.owners.get(eip), other);
  });

  it('says what is open, and that it is not settled while an EIP is to come by record', async () => {
    const failoverClient = open(owner);
    assert.deepEqual([failoverClient.opened(), failoverClient.isSettled()], [undefined, true]);
    await gate.prepare();
    await pass(failoverClient, owner);
    assert.deepEqual([[...(failoverClient.opened() ?? [])], failoverClient.isSettled()], [[], false]);
    thread().hooks.told({ kind: 'hold', held: [{ eip, epoch: 1, mode: 'owned' }] });
    assert.equal(failoverClient.isSettled(), false, 'owned, but not open yet');
    thread().hooks.told({ kind: 'opened', ips: [eip, pair] });
    assert.deepEqual(
      [[...(failoverClient.opened() ?? [])], failoverClient.isSettled(), openings],
      [[eip, pair], true, 1],
    );
    const standby = open(other);
    await pass(standby, other);
    assert.equal(standby.isSettled(), true, 'nothing is to come');
  });

  it('knows after a restart what is open, from the kernel', async () => {
    await gate.prepare();
    gate.hold([{ ip: eip, epoch: 6, isAnswered: true }], 1_000);
    const failoverClient = open(owner);
    await failoverClient.begin(new Set());
    assert.deepEqual([...(failoverClient.opened() ?? [])], [eip]);
  });

  it('has connections mirrored to who follows, as long as the node owns the EIP and its gateway keeps connections', async () => {
    const failoverClient = open(owner);
    await pass(failoverClient, owner, [eip, pair]);
    assert.deepEqual(mirrored?.plan.owned, [{ ips: [eip, pair], successors: [other] }]);
    assert.equal(mirrored?.data.port, thread().data.port + 1);
    assert.equal(mirrored?.plan.addresses.size, 2);
    assert.notEqual(mirrored?.plan.replyMark, undefined);
    thread().hooks.told({ kind: 'hold', held: [] });
    assert.deepEqual([mirrored?.plan.owned, mirrored?.plan.awaited], [[], [eip, pair]], 'told at once, before a pass');
    thread().hooks.told({ kind: 'hold', held: [{ eip, epoch: 4, mode: 'owned' }] });
    facts = { ...facts, rosters: facts.rosters.map((roster) => ({ ...roster, keepsConnections: false })) };
    await pass(failoverClient, owner);
    assert.deepEqual(mirrored?.plan.owned, [{ ips: [eip, pair], successors: [] }]);
  });

  it('has no mirror on a node that can own nothing', async () => {
    facts = { ...facts, rosters: [], policies: [] };
    await pass(open('a'), 'a');
    assert.equal(mirrored, undefined);
  });

  it('tells a node without a part in it nothing that it would have to watch', async () => {
    facts = { ...facts, rosters: [], policies: [], electorate: { generation: 1, voters: ['b'], hasApi: false } };
    const failoverClient = open('a');
    await pass(failoverClient, 'a');
    const [input] = thread().inputs;
    assert.ok(input?.kind === 'plan');
    assert.deepEqual([input.plan.eips, input.plan.gateways, input.plan.nodes], [[], [], []]);
    assert.equal(failoverClient.electorate(), undefined);
  });

  it('agrees on who serves a node group, which is never announced nor mirrored and is kept over a restart', async () => {
    const nodeView = viewWith({ useNodeIP: true });
    facts = { ...facts, policies: nodeView.policies, tunnels: nodeView.tunnels };
    const group = {
      gateway: 'out',
      node: nodeView.policies[0]?.recorded.node ?? assert.fail('the policy has no node'),
    };
    const key = nodeGroupKey(group);
    const heir = group.node === 'a' ? 'b' : 'a';
    await gate.prepare();
    gate.hold([{ ip: key, epoch: 6, isAnswered: true }], 1_000);
    const failoverClient = open(heir);
    await failoverClient.begin(new Set());
    failoverClient.applied(plan(nodeInput(nodeView, heir, [], { ownership: failoverClient.ownership() })), undefined);
    assert.deepEqual([thread().data.held, gate.answered()], [[{ eip: key, epoch: 6, mode: 'owned' }], [key]]);
    const [input] = thread().inputs;
    assert.ok(input?.kind === 'plan');
    const anywhere = { addresses: ['0.0.0.0', '::'] };
    assert.deepEqual(input.plan.eips, [{ eip: key, ...anywhere, epoch: 0, candidates: [group.node, heir] }]);
    assert.deepEqual([...thread().ready], [[key, []]]);
    thread().hooks.told({ kind: 'hold', held: [{ eip: key, epoch: 7, mode: 'owned' }] });
    assert.equal(failoverClient.ownership()?.owners.get(key), heir);
    assert.deepEqual(failoverClient.nodeGroups(), [{ ...group, epoch: 7 }]);
    assert.deepEqual([failoverClient.nameOf(key), mirrored?.plan.owned], [`node group out/${group.node}`, []]);
  });

  it('forgets who owned an EIP that no policy has any more: when it is given again, its record counts', async () => {
    const failoverClient = open(owner);
    await pass(failoverClient, owner, [eip]);
    thread().hooks.told({ kind: 'owner', eip, epoch: 5, node: other });
    assert.equal(failoverClient.ownership()?.owners.get(eip), other);
    const { policies } = facts;
    facts = { ...facts, policies: [] };
    assert.equal(failoverClient.ownership()?.owners.size, 0);
    facts = { ...facts, policies };
    assert.equal(failoverClient.ownership()?.owners.size, 0);
  });

  it('follows the owner of the latest epoch', async () => {
    const failoverClient = open(owner);
    await pass(failoverClient, owner, [eip]);
    thread().hooks.told({ kind: 'owner', eip, epoch: 5, node: other });
    thread().hooks.told({ kind: 'owner', eip, epoch: 4, node: owner });
    assert.equal(failoverClient.ownership()?.owners.get(eip), other);
  });

  it('makes one pass of a thousand owners that are told at once', async () => {
    const failoverClient = open(owner);
    await pass(failoverClient, owner, [eip]);
    const [before, owners] = [
      changes,
      Array.from({ length: 1_000 }, (_, place) => ip(`10.7.${place >> 8}.${place & 255}`)),
    ];
    thread().hooks.told(
      ...owners.map((one) => ({ kind: 'owner', eip: one, epoch: 2, node: other }) as const),
      { kind: 'owner', eip, epoch: 5, node: other },
      { kind: 'opened', ips: [] },
    );
    assert.equal(changes - before, 1);
    assert.equal(failoverClient.ownership()?.owners.get(eip), other);
  });

  it('says the same with the same values while nothing changes, and tells the thread nothing', async () => {
    const failoverClient = open(other);
    await pass(failoverClient, other);
    const [before, inputs] = [failoverClient.ownership(), thread().inputs.length];
    facts = { ...facts, policies: [...facts.policies], tunnels: [...facts.tunnels] };
    await pass(failoverClient, other);
    const now = failoverClient.ownership();
    for (const part of ['owners', 'holds', 'standbys', 'gateways'] as const) assert.equal(now?.[part], before?.[part]);
    assert.equal(thread().inputs.length, inputs);
  });

  it('starts another thread when the keys change, which holds on to everything', async () => {
    const failoverClient = open(other);
    await pass(failoverClient, other);
    thread().hooks.told({ kind: 'hold', held: [{ eip, epoch: 4, mode: 'owned' }] });
    const [first] = threads;
    keys = [new Uint8Array(32).fill(2), ...keys];
    await pass(failoverClient, other);
    assert.equal(threads.length, 2);
    assert.ok(first?.isClosed);
    assert.deepEqual(thread().data.held, [{ eip, epoch: 4, mode: 'owned' }]);
    first?.hooks.told({ kind: 'hold', held: [] });
    assert.equal(desiredWith(failoverClient, other).claims.length, 2, 'the old one is not listened to');
  });

  it('starts a thread that failed again, after a while', async () => {
    const failoverClient = open(other);
    await pass(failoverClient, other);
    thread().hooks.failed(new Error('port in use'));
    await pass(failoverClient, other);
    assert.equal(threads.length, 1);
    await clock.advance(6_000);
    assert.ok(changes > 0);
    await pass(failoverClient, other);
    assert.equal(threads.length, 2);
  });

  it('mends the gate when the kernel does not take what is held', async () => {
    const failoverClient = open(other);
    await pass(failoverClient, other);
    gate.tamper();
    thread().hooks.told({ kind: 'refused', why: 'no such file or directory' });
    await clock.advance(0);
    assert.deepEqual([...gate.covered], [eip, pair], 'what lies ready is covered before anybody can ask for it again');
    assert.equal(thread().renewals, 1);
  });

  it('reports the electorate of a member only while the thread runs', async () => {
    const failoverClient = open(other);
    assert.equal(failoverClient.electorate(), undefined);
    await pass(failoverClient, other);
    assert.equal(failoverClient.electorate()?.generation, 1);
    facts = { ...facts, electorate: undefined };
    await pass(failoverClient, other);
    assert.equal(failoverClient.electorate()?.generation, 1, 'one that is taken away by mistake still holds');
    await failoverClient.close();
    assert.equal(failoverClient.electorate(), undefined);
  });
});
