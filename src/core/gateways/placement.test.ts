import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Plan } from '../plan/plan.ts';
import {
  bindingText,
  type GatewayShape,
  gatewayObject,
  nodeObject,
  type PolicyShape,
  policyObject,
  putPolicy,
  step,
  worldOf,
} from '../testing/objects.ts';
import { takeOver, type World } from '../testing/world.ts';

const NODES = ['a', 'b', 'c', 'd'];
const pool = { ipv4: ['10.6.1.1-10.6.1.40'] };

const cluster = (
  many: number,
  gateway: GatewayShape = pool,
  shape: PolicyShape = { allocator: 'rr' },
  nodes = NODES,
): World =>
  worldOf(
    nodes.map((name, index) => nodeObject(name, [`10.0.0.${index + 1}`])),
    [gatewayObject('g', gateway)],
    Array.from({ length: many }, (_, index) => policyObject(`red/p${index}`, { gateway: 'g', at: index, ...shape })),
  );
const lose = (world: World, name: string): void => {
  world.nodes.set(name, nodeObject(name, [], { egress: 'true' }, false));
};
const find = (world: World, name: string): void => {
  world.nodes.set(name, nodeObject(name));
};
const nodesByPolicy = (planned: Plan): (string | undefined)[] => planned.policies.map(({ binding }) => binding?.node);
const counts = (planned: Plan): Record<string, number> =>
  Object.fromEntries(planned.gateways[0]?.nodes.map(({ name, eips }) => [name, eips.length]) ?? []);

describe('average', () => {
  it('spreads EIPs evenly', () => assert.deepEqual(counts(step(cluster(8))), { a: 2, b: 2, c: 2, d: 2 }));

  it('spreads the nine EIPs of a lost node over all survivors', () => {
    const world = cluster(36);
    step(world);
    lose(world, 'b');
    const after = counts(step(world));
    assert.deepEqual(after, { a: 12, b: 0, c: 12, d: 12 });
  });

  it('moves an EIP where somebody wants it, and leaves it there when the wish is gone', () => {
    const world = cluster(4);
    const [, at] = bindingText(step(world), 'red/p0').split(' on ');
    const [eip = ''] = bindingText(step(world), 'red/p0').split(' on ');
    const to = at === 'a' ? 'b' : 'a';
    const gateway = world.gateways.get('g');
    assert.ok(gateway);
    const wish = (text: string) => {
      const annotations = { 'egressgateway.spidernet.io/move-eips': text };
      world.gateways.set('g', { ...gateway, metadata: { ...gateway.metadata, annotations } });
    };
    wish(`nonsense, ${eip}=${to}`);
    const others = (planned: Plan) => nodesByPolicy(planned).slice(1);
    const before = others(step(cluster(4)));
    assert.equal(bindingText(step(world), 'red/p0'), `${eip} on ${to}`);
    assert.deepEqual(others(step(world)), before, 'and nothing else');
    world.gateways.set('g', gateway);
    assert.equal(bindingText(step(world), 'red/p0'), `${eip} on ${to}`);
    wish(`${eip}=nowhere`);
    assert.equal(bindingText(step(world), 'red/p0'), `${eip} on ${to}`, 'a node that is none of the gateway');
  });

  it('empties a node that is drained while others can carry, and gives it nothing new', () => {
    const world = cluster(8);
    step(world);
    const drain = (...names: readonly string[]) => {
      for (const name of NODES) {
        const node = nodeObject(name);
        const value = String(names.includes(name));
        const annotations = { 'egressgateway.spidernet.io/drain': value };
        world.nodes.set(name, { ...node, metadata: { ...node.metadata, annotations } });
      }
    };
    drain('b');
    assert.deepEqual(counts(step(world)), { a: 2, b: 0, c: 3, d: 3 });
    drain(...NODES);
    assert.deepEqual(counts(step(world)), { a: 2, b: 0, c: 3, d: 3 }, 'there is no better place');
    drain();
    assert.deepEqual(counts(step(world)), { a: 2, b: 0, c: 3, d: 3 }, 'nothing moves back by itself');
  });

  it('moves nothing back when the node returns', () => {
    const world = cluster(8);
    step(world);
    lose(world, 'b');
    const without = nodesByPolicy(step(world));
    find(world, 'b');
    assert.deepEqual(nodesByPolicy(step(world)), without);
    putPolicy(world, policyObject('red/new', { gateway: 'g', allocator: 'rr', at: 99 }));
    assert.equal(bindingText(step(world), 'red/new').split(' on ')[1], 'b');
  });

  it('has no limit of 127 EIPs per node', () => {
    const world = cluster(300, { ipv4: ['10.6.0.0/20'] }, { allocator: 'rr' }, ['a']);
    const planned = step(world);
    assert.equal(counts(planned).a, 300);
    assert.ok(planned.policies.every(({ binding }) => binding?.isServing));
  });
});

describe('minimum', () => {
  it('fills one node, and another one when that is lost', () => {
    const world = cluster(6, { ...pool, policy: 'minimum' });
    const [first] = nodesByPolicy(step(world));
    assert.deepEqual(new Set(nodesByPolicy(step(world))), new Set([first]));
    lose(world, first ?? '');
    const after = new Set(nodesByPolicy(step(world)));
    assert.equal(after.size, 1);
    assert.ok(!after.has(first));
  });
});

describe('limit', () => {
  it('fills a node up to the limit before the next', () => {
    const filled = Object.values(counts(step(cluster(7, { ...pool, policy: 'limit', limit: 3 })))).toSorted();
    assert.deepEqual(filled, [0, 1, 3, 3]);
  });

  it('goes on above the limit when every node is full', () => {
    const planned = step(cluster(10, { ...pool, policy: 'limit', limit: 2 }));
    assert.ok(planned.policies.every(({ binding }) => binding?.isServing));
    assert.ok(Object.values(counts(planned)).every((many) => many >= 2));
  });
});

describe('a gateway without a ready node', () => {
  it('keeps EIPs, slots and nodes on record, and says that nothing serves', () => {
    const world = cluster(4);
    const before = step(world);
    for (const name of NODES) lose(world, name);
    const after = step(world);
    assert.deepEqual(nodesByPolicy(after), nodesByPolicy(before));
    assert.deepEqual(
      after.policies.map(({ binding }) => [binding?.slot, binding?.isServing]),
      before.policies.map(({ binding }) => [binding?.slot, false]),
    );
    const [policy] = after.policies;
    assert.deepEqual([policy?.allocated.reason, policy?.traffic], ['NoReadyNode', 'drop']);
    assert.match(
      policy?.allocated.sentence ?? '',
      /Gateway g of policy red\/p0 has no ready node; not ready: a, b, c, d\. See the EgressTunnels/,
    );
    assert.equal(after.gateways[0]?.ready.reason, 'NoReadyNode');
  });

  it('serves again from the first node that returns, without drift when others follow', () => {
    const world = cluster(4);
    step(world);
    for (const name of NODES) lose(world, name);
    step(world);
    find(world, 'c');
    assert.deepEqual(new Set(nodesByPolicy(step(world))), new Set(['c']));
    for (const name of NODES) find(world, name);
    assert.deepEqual(new Set(nodesByPolicy(step(world))), new Set(['c']));
  });

  it('has traffic leave with node IPs where the policy says so', () => {
    const world = cluster(1, pool, { onUnavailable: 'NodeIP' }, []);
    const [policy] = step(world).policies;
    assert.deepEqual(
      [policy?.allocated.reason, policy?.traffic, policy?.binding?.node],
      ['NoMatchingNode', 'nodeIp', undefined],
    );
    assert.ok(policy?.binding?.eip?.ipv4 && policy.binding.slot);
  });

  it('whose node was taken out of the selector does not name it any more', () => {
    const world = cluster(1, pool, {}, ['a']);
    step(world);
    world.nodes.set('a', nodeObject('a', [], {}));
    assert.equal(bindingText(step(world), 'red/p0'), '10.6.1.1 on no node (not serving)');
  });
});

describe('a node that took an EIP over', () => {
  const eip = '10.6.1.1';
  const bindingOf = (planned: Plan) => {
    const { node, epoch } = planned.policies[0]?.binding ?? {};
    return `${node} ${epoch}`;
  };
  const start = () => {
    const world = cluster(1);
    const owner = step(world).policies[0]?.binding?.node ?? '';
    const [next = '', third = ''] = NODES.filter((name) => name !== owner);
    return { world, owner, next, third };
  };
  const drain = (world: World, name: string) => {
    const node = nodeObject(name);
    const annotations = { 'egressgateway.spidernet.io/drain': 'true' };
    world.nodes.set(name, { ...node, metadata: { ...node.metadata, annotations } });
  };

  it('keeps it: the controller writes what happened, and moves it neither back nor on', () => {
    const { world, owner, next } = start();
    takeOver(world, next, [eip]);
    assert.equal(bindingOf(step(world)), `${next} 1`, 'also while the owner on record is ready');
    lose(world, owner);
    assert.equal(bindingOf(step(world)), `${next} 1`);
    find(world, owner);
    assert.equal(bindingOf(step(world)), `${next} 1`);
  });

  it('is not written again when it takes its own EIP anew', () => {
    const { world, next } = start();
    takeOver(world, next, [eip]);
    step(world);
    takeOver(world, next, [eip]);
    assert.equal(bindingOf(step(world)), `${next} 1`);
  });

  it('hands it over with the latest epoch when it is drained, lost or not selected any more', () => {
    for (const leave of [
      drain,
      lose,
      (world: World, name: string) => world.nodes.set(name, nodeObject(name, [], {})),
    ]) {
      const { world, next } = start();
      takeOver(world, next, [eip]);
      step(world);
      takeOver(world, next, [eip]);
      leave(world, next);
      const moved = step(world);
      assert.notEqual(moved.policies[0]?.binding?.node, next);
      assert.equal(moved.policies[0]?.binding?.epoch, 2);
      assert.equal(bindingOf(step(world)), bindingOf(moved), 'and it stays there');
    }
  });

  it('has no say when a later one has it', () => {
    const { world, next, third } = start();
    takeOver(world, next, [eip]);
    takeOver(world, third, [eip]);
    assert.equal(bindingOf(step(world)), `${third} 2`);
  });

  it('is found by the policy that records the latest epoch, if only some were written', () => {
    const world = cluster(2, { ipv4: [eip] });
    const [owner = ''] = nodesByPolicy(step(world));
    const next = NODES.find((name) => name !== owner) ?? '';
    const older = world.policies.get('red/p0');
    assert.ok(older);
    takeOver(world, next, [eip]);
    step(world);
    world.policies.set('red/p0', older);
    assert.deepEqual(nodesByPolicy(step(world)), [next, next]);
  });
});

describe('a node that only Kubernetes calls NotReady', () => {
  const watch = (world: World, ...names: readonly string[]) => {
    const electorate = { generation: 1, voters: NODES, apiVotes: false };
    for (const [name, tunnel] of world.tunnels) {
      const report = names.includes(name) ? { report: { electorate } } : {};
      world.tunnels.set(name, { ...tunnel, status: { ...(tunnel.status ?? {}), ...report } });
    }
  };

  it('keeps its EIPs while its agent is heard and others watch it, and gets none besides', () => {
    const world = cluster(4);
    const before = nodesByPolicy(step(world));
    watch(world, ...NODES);
    for (const name of NODES) lose(world, name);
    assert.deepEqual(nodesByPolicy(step(world)), before, 'all of them, as after an API server was away');
    find(world, 'a');
    assert.deepEqual(nodesByPolicy(step(world)), before, 'and nothing goes to the first that is back');
    putPolicy(world, policyObject('red/new', { gateway: 'g', allocator: 'rr', at: 99 }));
    assert.match(bindingText(step(world), 'red/new'), / on a$/);
    assert.ok(step(world).policies.every(({ binding }) => binding?.isServing));
  });

  it('loses them when its agent falls silent, and at once where nobody watches', () => {
    const world = cluster(4);
    step(world);
    watch(world, 'b');
    lose(world, 'b');
    lose(world, 'c');
    assert.deepEqual(counts(step(world)), { a: 1, b: 1, c: 0, d: 2 });
    world.silent.add('b');
    assert.deepEqual(counts(step(world)), { a: 2, b: 0, c: 0, d: 2 });
  });

  it('is left for a node with a later epoch', () => {
    const world = cluster(1);
    const [owner = ''] = nodesByPolicy(step(world));
    const next = NODES.find((name) => name !== owner) ?? '';
    watch(world, ...NODES);
    lose(world, owner);
    takeOver(world, next, ['10.6.1.1']);
    assert.deepEqual(nodesByPolicy(step(world)), [next]);
  });
});

describe('rebinding', () => {
  it('to another gateway takes an EIP and a slot there and moves nobody else', () => {
    const world = cluster(3);
    world.gateways.set('h', gatewayObject('h', { ipv4: ['10.6.2.1-10.6.2.9'], at: 1 }));
    const before = step(world);
    putPolicy(world, policyObject('red/p1', { gateway: 'h', allocator: 'rr', at: 1 }));
    const after = step(world);
    assert.match(bindingText(after, 'red/p1'), /^10\.6\.2\.1 on/);
    assert.notEqual(after.policies[1]?.binding?.slot, before.policies[1]?.binding?.slot);
    assert.deepEqual([after.policies[0], after.policies[2]], [before.policies[0], before.policies[2]]);
  });

  it('to an EIP that others use goes to where that is', () => {
    const world = cluster(4);
    const before = step(world);
    putPolicy(world, policyObject('red/p0', { gateway: 'g', ipv4: '10.6.1.4', at: 0 }));
    const after = step(world);
    assert.equal(after.policies[0]?.binding?.node, before.policies[3]?.binding?.node);
    assert.deepEqual(after.policies.slice(1), before.policies.slice(1));
  });
});
