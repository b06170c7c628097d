/** Owners that nodes agreed on: a node does the same as if they were recorded, and what may come lies ready. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { finding } from '../cluster/finding.ts';
import type { ClusterView } from '../cluster/view.ts';
import type { Ip } from '../ip/index.ts';
import { ownershipKey } from '../ownership/node-group.ts';
import { recordedEips } from '../ownership/planned.ts';
import type { EipHold } from '../ownership/port.ts';
import { clusterFrom, knownPods, NUMBERS_PER_CLUSTER } from '../testing/clusters.ts';
import { nodeInput } from '../testing/nodes.ts';
import { desiredOf, smallCluster } from '../testing/small-cluster.ts';
import type { NodeDesired } from './desired.ts';
import { createNodePlanner } from './desired-for.ts';
import type { NodeOwnership } from './input.ts';
import { gatewayMark, markText, snatMark } from './numbers.ts';
import { movedBetween, switchedTo } from './switching.ts';

const drawn = fc.array(fc.nat(), { minLength: NUMBERS_PER_CLUSTER, maxLength: NUMBERS_PER_CLUSTER });
const nobody: NodeOwnership = { owners: new Map(), holds: new Map(), standbys: new Set(), gateways: new Set() };

/** Some EIPs of a cluster with other owners than it records. */
const ownersIn = (view: ClusterView, numbers: readonly number[]): ReadonlyMap<Ip, string> =>
  new Map(
    [...recordedEips(view.policies).keys()].flatMap((eip, index): [Ip, string][] => {
      const number = numbers[index % numbers.length] ?? 0;
      const owner = view.nodes[number % view.nodes.length]?.name;
      return number % 3 === 0 || owner === undefined ? [] : [[eip, owner]];
    }),
  );
/** The cluster as it is when its owners are recorded. */
const recordedAs = (view: ClusterView, owners: ReadonlyMap<Ip, string>): ClusterView => ({
  ...view,
  policies: view.policies.map((policy) => {
    const owner = owners.get(ownershipKey(policy.recorded) ?? ('' as Ip));
    const { recorded } = policy;
    return owner === undefined || recorded.node === undefined
      ? policy
      : { ...policy, recorded: { ...recorded, node: owner } };
  }),
});
/** What a node holds when it agrees with the others. */
const heldBy = (view: ClusterView, owners: ReadonlyMap<Ip, string>, node: string): ReadonlyMap<Ip, EipHold> =>
  new Map(
    [...recordedEips(view.policies)].flatMap(([eip, record]) =>
      (owners.get(eip) ?? record.node) === node ? [[eip, { eip, epoch: 3, mode: 'owned' } as const]] : [],
    ),
  );
// What is recorded with another node is in another node group.
const withoutGate = ({ table, ...rest }: NodeDesired) => ({
  ...rest,
  epochs: undefined,
  // It holds policies as they are recorded.
  existing: undefined,
  nodeGroups: undefined,
  table: { ...table, settings: { ...table.settings, isGated: false } },
});

describe('owners that are not recorded yet', () => {
  it('make every node hold what it would hold if they were', () => {
    fc.assert(
      fc.property(drawn, (numbers) => {
        const cluster = clusterFrom(numbers);
        const { view } = cluster;
        const owners = ownersIn(view, numbers);
        const pods = knownPods(cluster);
        for (const { name } of view.nodes) {
          const ownership = { ...nobody, owners, holds: heldBy(view, owners, name) };
          const agreed = createNodePlanner()(nodeInput(view, name, pods, { ownership }));
          const recorded = createNodePlanner()(nodeInput(recordedAs(view, owners), name, pods));
          assert.deepEqual(withoutGate(agreed), withoutGate(recorded), name);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('are switched to in one map, and the pass that follows comes to the same', () => {
    fc.assert(
      fc.property(drawn, (numbers) => {
        const cluster = clusterFrom(numbers);
        const { view } = cluster;
        const owners = ownersIn(view, numbers);
        // The ways lie ready, as they do to every gateway node.
        const gateways = new Set(view.nodes.map(({ name }) => name));
        for (const { name: node } of view.nodes) {
          const plan = createNodePlanner();
          const input = nodeInput(view, node, knownPods(cluster), { ownership: { ...nobody, gateways } });
          const before = plan(input);
          const moved = movedBetween(new Map(), owners);
          const facts = { node, policies: view.policies, owners, numbers: before.gatewayNumbers };
          const after = plan({ ...input, ownership: { ...nobody, gateways, owners } });
          const switched = switchedTo(before.table.elements, moved, facts);
          for (const [mark, value] of switched.slot_fwd) assert.equal(value, after.table.elements.slot_fwd.get(mark));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('an EIP of another node that may come', () => {
  const view = smallCluster({ 'red/p': {} });
  const [[eip = assert.fail(), record] = assert.fail()] = recordedEips(view.policies);
  const other = record?.node === 'a' ? 'b' : 'a';
  const standing = (over: Partial<NodeOwnership>) =>
    desiredOf(view, other, {
      ownership: { ...nobody, standbys: new Set([eip]), gateways: new Set(['a', 'b']), ...over },
    });
  const ready = standing({});
  const owned = standing({
    owners: new Map([[eip, other]]),
    holds: new Map([[eip, { eip, epoch: 7, mode: 'owned' }]]),
  });

  it('lies ready: address, slots and ways are those of an owner, and nothing is claimed', () => {
    assert.deepEqual(ready.claims, []);
    assert.deepEqual(ready.standbys, owned.claims);
    assert.deepEqual(ready.network, owned.network);
    assert.deepEqual(ready.sysctls, owned.sysctls);
    assert.deepEqual(
      { ...ready.table.elements, slot_fwd: undefined },
      { ...owned.table.elements, slot_fwd: undefined },
    );
  });

  it('is claimed with its epoch when it has come, both addresses of a pair', () => {
    assert.ok(owned.claims.length > 0);
    assert.deepEqual(
      owned.claims.map(({ ip }) => owned.epochs.get(ip)),
      owned.claims.map(() => 7),
    );
    assert.deepEqual([owned.standbys, owned.expected], [[], []]);
  });

  it('is expected, not claimed, by the node that is recorded and does not own it yet', () => {
    const expecting = desiredOf(view, record?.node ?? '', { ownership: { ...nobody, standbys: new Set([eip]) } });
    assert.deepEqual(expecting.claims, []);
    assert.deepEqual(expecting.expected, owned.claims);
  });

  it("is nobody else's conflict: that the network says it is in use is about the node that is to own it", () => {
    const refusal = finding('EipInUse', 'It is in use.');
    const unclaimable = new Map(owned.claims.map(({ ip }) => [ip, refusal]));
    const ownership = { ...nobody, standbys: new Set([eip]), gateways: new Set(['a', 'b']) };
    const standby = desiredOf(view, other, { unclaimable, ownership });
    assert.deepEqual([standby.standbys, standby.unclaimed, standby.problems], [owned.claims, [], []]);
    const expecting = desiredOf(view, record?.node ?? '', { unclaimable, ownership });
    assert.deepEqual([expecting.expected, expecting.unclaimed], [[], owned.claims]);
  });

  it('has all but its address while the network is asked about it, but nothing where no gate would keep its packets', () => {
    const node = record?.node ?? '';
    const unclaimable = new Map(owned.claims.map(({ ip }) => [ip, 'probing' as const]));
    const ownership = { ...nobody, standbys: new Set([eip]) };
    const [asking, free] = [desiredOf(view, node, { unclaimable, ownership }), desiredOf(view, node, { ownership })];
    assert.deepEqual([asking.awaited, asking.unclaimed, asking.expected], [owned.claims, owned.claims, []]);
    assert.deepEqual([asking.table, asking.problems], [free.table, free.problems]);
    const addressesOf = ({ network }: NodeDesired) => network.addresses.map(({ ip }) => ip);
    const eips = owned.claims.map(({ ip }) => ip);
    assert.deepEqual(
      addressesOf(free).filter((ip) => !addressesOf(asking).includes(ip)),
      eips,
    );
    const ungated = desiredOf(view, node, { unclaimable });
    assert.deepEqual([ungated.awaited, ungated.table.elements.eips4.size], [[], 0]);
  });

  it('has ways from every worker, so that a take-over makes none', () => {
    const worker = desiredOf(view, 'w', { ownership: { ...nobody, gateways: new Set(['a', 'b']) } });
    assert.deepEqual([...worker.gatewayNumbers.keys()].toSorted(), ['a', 'b']);
  });

  it('is gated, and is not where nodes do not agree', () => {
    assert.equal(ready.table.settings.isGated, true);
    assert.equal(desiredOf(view, other).table.settings.isGated, false);
  });
});

describe('a node group that another node may come to serve', () => {
  const view = smallCluster({ 'red/p': { useNodeIP: true } });
  const [[key = assert.fail(), record] = assert.fail()] = recordedEips(view.policies);
  const { slot } = view.policies[0]?.recorded ?? {};
  const owner = record?.node ?? '';
  const heir = owner === 'a' ? 'b' : 'a';
  const gateways = new Set(['a', 'b']);
  const before = { ...nobody, standbys: new Set([key]), gateways };
  const after = { ...before, owners: new Map([[key, heir]]) };
  const sourcesOn = (node: string, ownership: NodeOwnership) => {
    const { slot_eip4, slot_eip6 } = desiredOf(view, node, { ownership }).table.elements;
    return [...slot_eip4.values(), ...slot_eip6.values()];
  };

  it('lies ready there, with the addresses of that node, and nothing is announced', () => {
    const own = { a: ['192.0.2.1', '2001:db8:1::1'], b: ['192.0.2.2', '2001:db8:1::2'] };
    assert.deepEqual([sourcesOn('a', before), sourcesOn('b', before)], [own.a, own.b]);
    const ready = desiredOf(view, heir, { ownership: before });
    assert.deepEqual([...ready.nodeGroups], [key]);
    assert.deepEqual([ready.claims, ready.standbys, ready.expected], [[], [], []]);
    assert.deepEqual(sourcesOn(heir, { ...nobody, gateways }), [], 'not where nodes did not agree on it');
  });

  it('leaves through its new owner at once: from a worker, from the new node and from the one before', () => {
    for (const node of ['w', heir, owner]) {
      const desired = desiredOf(view, node, { ownership: before });
      const facts = { node, policies: view.policies, owners: after.owners, numbers: desired.gatewayNumbers };
      const { slot_fwd } = switchedTo(desired.table.elements, movedBetween(before.owners, after.owners), facts);
      assert.deepEqual(slot_fwd, desiredOf(view, node, { ownership: after }).table.elements.slot_fwd, node);
      const way = [...slot_fwd.values()];
      const number = desired.gatewayNumbers.get(heir) ?? 0;
      const expected = node === heir ? snatMark(slot ?? 0) : gatewayMark(number, slot ?? 0);
      assert.deepEqual(way, [markText(expected)], node);
    }
  });
});
