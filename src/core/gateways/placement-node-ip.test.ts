/** Where policies are that leave with the address of their gateway node. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Plan } from '../plan/plan.ts';
import { bindingText, gatewayObject, nodeObject, policyObject, putPolicy, step, worldOf } from '../testing/objects.ts';
import { takeOverGroup, type World } from '../testing/world.ts';

const cluster = (many: number, nodes: readonly string[]): World =>
  worldOf(
    nodes.map((name, index) => nodeObject(name, [`10.0.0.${index + 1}`])),
    [gatewayObject('g')],
    Array.from({ length: many }, (_, at) => policyObject(`red/p${at}`, { gateway: 'g', at, useNodeIP: true })),
  );
const lose = (world: World, name: string): void => {
  world.nodes.set(name, nodeObject(name, [], { egress: 'true' }, false));
};
const find = (world: World, name: string): void => {
  world.nodes.set(name, nodeObject(name));
};
const nodesByPolicy = (planned: Plan): (string | undefined)[] => planned.policies.map(({ binding }) => binding?.node);

describe('policies with the node IP', () => {
  it('are spread over the nodes', () => {
    const planned = step(cluster(8, ['a', 'b', 'c', 'd']));
    assert.deepEqual(nodesByPolicy(planned).toSorted(), ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']);
  });

  it('go to a node that has an address of the family they need', () => {
    const world = cluster(0, ['a', 'b']);
    world.nodes.set('b', nodeObject('b', ['10.0.0.2', 'fd10::2']));
    putPolicy(world, policyObject('red/six', { gateway: 'g', useNodeIP: true, destSubnet: ['2001:db8::/32'] }));
    assert.equal(bindingText(step(world), 'red/six'), 'node IP on b');
    world.nodes.set('b', nodeObject('b', ['10.0.0.2']));
    const [policy] = step(world).policies;
    assert.equal(policy?.allocated.reason, 'NodeLacksFamily');
    assert.match(policy?.allocated.sentence ?? '', /No node of gateway g has the address that policy red\/six needs/);
  });
});

describe('a gateway node that has taken over policies with the node IP', () => {
  const start = (many = 1, nodes = ['a', 'b', 'c']) => {
    const world = cluster(many, nodes);
    const [owner = ''] = nodesByPolicy(step(world));
    takeOverGroup(world, owner, 'g', owner);
    const [next = '', third = ''] = nodes.filter((name) => name !== owner);
    return { world, owner, next, third };
  };
  const epochOf = (planned: Plan) => planned.policies[0]?.binding?.epoch;

  it('is recorded, though Kubernetes calls the node before ready, and nothing moves back when that returns', () => {
    const { world, owner, next } = start();
    takeOverGroup(world, next, 'g', owner);
    assert.deepEqual(nodesByPolicy(step(world)), [next]);
    lose(world, owner);
    assert.deepEqual(nodesByPolicy(step(world)), [next]);
    find(world, owner);
    assert.deepEqual(nodesByPolicy(step(world)), [next]);
  });

  it('takes over what was recorded with the node that is lost, and nothing of others', () => {
    const world = cluster(6, ['a', 'b', 'c']);
    const before = nodesByPolicy(step(world));
    for (const name of ['a', 'b', 'c']) takeOverGroup(world, name, 'g', name);
    takeOverGroup(world, 'b', 'g', 'a');
    assert.deepEqual(
      nodesByPolicy(step(world)),
      before.map((node) => (node === 'a' ? 'b' : node)),
    );
  });

  it('is lost as well, and the next one is recorded', () => {
    const { world, owner, next, third } = start();
    takeOverGroup(world, next, 'g', owner);
    step(world);
    // Each group counts its own epochs: a later one of the group before says nothing about this one.
    takeOverGroup(world, next, 'g', next);
    takeOverGroup(world, third, 'g', next);
    assert.deepEqual(nodesByPolicy(step(world)), [third]);
  });

  it('gives them back by plan when it is drained and no other is left: the record knows the epoch', () => {
    const { world, owner, next } = start(1, ['a', 'b']);
    takeOverGroup(world, next, 'g', owner);
    const node = nodeObject(next);
    const annotations = { 'egressgateway.spidernet.io/drain': 'true' };
    world.nodes.set(next, { ...node, metadata: { ...node.metadata, annotations } });
    const back = step(world);
    assert.deepEqual([nodesByPolicy(back), epochOf(back)], [[owner], 2]);
    assert.deepEqual(nodesByPolicy(step(world)), [owner]);
  });

  it('is passed over when it lacks the family that a policy needs', () => {
    const world = cluster(0, ['a', 'b', 'c']);
    for (const name of ['a', 'b']) world.nodes.set(name, nodeObject(name, ['10.0.0.9', `fd10::${name}`]));
    putPolicy(world, policyObject('red/six', { gateway: 'g', useNodeIP: true, destSubnet: ['2001:db8::/32'] }));
    const [owner = ''] = nodesByPolicy(step(world));
    takeOverGroup(world, 'c', 'g', owner);
    assert.notEqual(nodesByPolicy(step(world))[0], 'c');
  });
});
