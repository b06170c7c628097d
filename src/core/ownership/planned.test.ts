import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { PolicyView, TunnelView } from '../cluster/view.ts';
import { ListChangeLog } from '../incremental/change-log.ts';
import { setOfIps } from '../ip/index.ts';
import { ip } from '../testing/address.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';
import { nodeGroupKey } from './node-group.ts';
import { createRecordedEips, ownershipPlanOf, ownersOf, type Roster, readyNodes, recordedEips } from './planned.ts';

const pool = (...texts: string[]) => setOfIps(texts.map(ip));
const electorate = { generation: 4, voters: ['a', 'b', 'c'], hasApi: false };
const roster = (name: string, ips: readonly string[], nodes: readonly string[]): Roster => ({
  name,
  pools: {
    ipv4: pool(...ips.filter((text) => text.includes('.'))),
    ipv6: pool(...ips.filter((text) => text.includes(':'))),
  },
  nodes,
  keepsConnections: true,
});
const tunnel = (node: string, held: readonly (readonly [string, number])[], phase = 'Ready'): TunnelView =>
  ({
    node,
    recorded: { phase },
    held: held.map(([text, epoch]) => ({ ip: ip(text), epoch })),
  }) as unknown as TunnelView;

const record = (node: string, epoch: number, ipv4: string, ipv6?: string) =>
  ({ node, epoch, eip: { ipv4: ip(ipv4), ipv6: ipv6 === undefined ? undefined : ip(ipv6) } }) as never;

describe('recordedEips', () => {
  it('has one entry for a pair, and one for the policies that leave with the address of one node', () => {
    const objects = [
      policyObject('shop/a', { gateway: 'out', allocator: 'default' }),
      policyObject('shop/b', { gateway: 'out', allocator: 'default' }),
      policyObject('shop/c', { gateway: 'out', useNodeIP: true }),
      policyObject('shop/d', { gateway: 'out', useNodeIP: true }),
    ];
    const world = worldOf(
      [nodeObject('a', ['10.6.0.11', 'fd06::11'])],
      [gatewayObject('out', { ipv4: ['10.6.0.100'], ipv6: ['fd06::100'] })],
      objects,
    );
    step(world);
    const found = recordedEips(viewOf(world).policies);
    const group = { gateway: 'out', node: 'a' };
    assert.deepEqual([...found.keys()], ['10.6.0.100', nodeGroupKey(group)]);
    assert.deepEqual(found.get(nodeGroupKey(group))?.group, group);
    assert.equal(found.get(ip('10.6.0.100'))?.eip.ipv6, 'fd06::100');
  });

  it('is the same when a change log tells which policies are others, and the same value while it says the same', () => {
    const records = fc.record({
      key: fc.nat(5),
      eip: fc.constantFrom(undefined, '10.6.0.1', '10.6.0.2'),
      node: fc.constantFrom('a', 'b'),
      epoch: fc.nat(2),
      isGone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(records, { maxLength: 30 }), (steps) => {
        const changeLog = new ListChangeLog<PolicyView>();
        const present = new Map<string, PolicyView>();
        const read = createRecordedEips();
        let last = read(changeLog.mark([]));
        for (const { key, eip, node, epoch, isGone } of steps) {
          const name = `shop/${key}`;
          const recorded = { eip: { ipv4: eip && ip(eip), ipv6: undefined }, node, epoch, slot: key };
          const after = isGone ? undefined : ({ key: name, recorded } as unknown as PolicyView);
          changeLog.exchange(present.get(name), after);
          if (after === undefined) present.delete(name);
          else present.set(name, after);
          const now = read(changeLog.mark([...present.values()]));
          const afresh = recordedEips(shuffled([...present.values()], key));
          assert.deepEqual(now, afresh);
          if (isDeepStrictEqual(now, last)) assert.equal(now, last);
          last = now;
        }
      }),
    );
  });
});

const shuffled = <T>(values: readonly T[], seed: number): T[] => [...values.slice(seed), ...values.slice(0, seed)];

describe('ownershipPlanOf', () => {
  const rosters = [roster('one', ['10.6.0.1', '10.6.0.2'], ['a', 'b', 'c']), roster('two', ['10.7.0.1'], ['d', 'e'])];
  const nodes = ['a', 'b', 'c', 'd', 'e', 'w'];
  const recorded = new Map([
    [ip('10.6.0.1'), record('a', 3, '10.6.0.1', 'fd06::1')],
    [ip('10.7.0.1'), record('d', 0, '10.7.0.1')],
    [ip('10.8.0.1'), record('w', 1, '10.8.0.1')],
  ]);
  const plan = ownershipPlanOf(electorate, rosters, nodes, new Set(nodes), recorded);

  it('names the node of the record first, then the Ready nodes of the same gateway and of no other', () => {
    const [first, second, third] = plan.eips;
    assert.equal(first?.candidates[0], 'a');
    assert.deepEqual(first?.candidates.toSorted(), ['a', 'b', 'c']);
    assert.equal(first?.epoch, 3);
    assert.deepEqual(second?.candidates, ['d', 'e']);
    assert.deepEqual(third?.candidates, ['w'], 'an EIP of no gateway stays where it is');
    const lost = ownershipPlanOf(electorate, rosters, nodes, new Set(['a', 'c']), recorded);
    assert.deepEqual(lost.eips[0]?.candidates, ['a', 'c', 'b'], 'who is not Ready comes last');
    assert.equal(lost.eips[1]?.candidates[0], 'd', 'the record stands, ready or not');
  });

  it('gives a node group to nodes of its gateway, those first that have as many families as the node on record', () => {
    const group = { gateway: 'one', node: 'a' };
    const key = nodeGroupKey(group);
    const none = { ipv4: undefined, ipv6: undefined };
    const groups = new Map([[key, { eip: none, group, node: 'a', epoch: 2 }]]);
    const families = new Map([
      ['a', 2],
      ['b', 1],
      ['c', 2],
    ]);
    const ready = new Set(nodes);
    assert.deepEqual(ownershipPlanOf(electorate, rosters, nodes, ready, groups, families).eips, [
      { eip: key, addresses: ['0.0.0.0', '::'], epoch: 2, candidates: ['a', 'c', 'b'] },
    ]);
    const gone = ownershipPlanOf(electorate, [], nodes, ready, groups, families);
    assert.deepEqual(gone.eips[0]?.candidates, ['a'], 'its gateway is gone');
  });

  it('lets all nodes of gateways send heartbeats, and those that hold something', () => {
    assert.deepEqual(plan.gateways, nodes);
    const none = ownershipPlanOf(electorate, [], nodes, new Set(nodes), new Map());
    assert.deepEqual(none.gateways, []);
    assert.deepEqual(none.nodes, nodes);
  });

  it('is the same on every node, in whatever order gateways are read', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...rosters], { minLength: 2 }), (shuffled) => {
        assert.deepEqual(ownershipPlanOf(electorate, shuffled, nodes, new Set(nodes), recorded), plan);
      }),
    );
  });
});

describe('ownersOf', () => {
  const eip = ip('10.6.0.1');
  const recorded = new Map([[eip, record('a', 5, '10.6.0.1')]]);
  const told = (node: string, epoch: number) => new Map([[eip, { node, epoch }]]);

  it('is the node of the latest epoch, told or reported', () => {
    assert.deepEqual([...ownersOf(recorded, new Map(), [tunnel('b', [['10.6.0.1', 6]])])], [[eip, 'b']]);
    assert.deepEqual([...ownersOf(recorded, told('c', 7), [tunnel('b', [['10.6.0.1', 6]])])], [[eip, 'c']]);
    assert.deepEqual([...ownersOf(recorded, told('c', 7), [tunnel('b', [['10.6.0.1', 8]])])], [[eip, 'b']]);
  });

  it('is the node that reports an epoch, where another one of the same epoch was told of before all voters started anew', () => {
    const again = new Map([[eip, record('b', 7, '10.6.0.1')]]);
    assert.deepEqual([...ownersOf(again, told('c', 7), [tunnel('b', [['10.6.0.1', 7]]), tunnel('c', [])])], []);
    const both = [tunnel('b', [['10.6.0.1', 7]]), tunnel('c', [['10.6.0.1', 7]])];
    assert.deepEqual([...ownersOf(again, told('c', 7), both)], [[eip, 'c']], 'c has it, and b is about to say so');
  });

  it('is nobody else where the record says the same, or where nodes have agreed on nothing', () => {
    assert.deepEqual([...ownersOf(recorded, told('a', 6), [])], []);
    assert.deepEqual([...ownersOf(recorded, new Map(), [tunnel('b', [['10.6.0.1', 0]])])], []);
    assert.deepEqual([...ownersOf(new Map(), told('b', 6), [])], [], 'an EIP that no policy has');
  });
});

describe('readyNodes', () => {
  it('are those that the controller calls Ready', () => {
    assert.deepEqual([...readyNodes([tunnel('a', []), tunnel('b', [], 'NodeNotReady')])], ['a']);
  });
});
