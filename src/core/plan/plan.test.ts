import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ClusterView } from '../cluster/view.ts';
import { eventFrom, happen, NUMBERS_PER_EVENT } from '../testing/events.ts';
import { gatewayObject, nodeObject, policyObject, putPolicy, step, worldOf } from '../testing/objects.ts';
import { agentsReport, copyWorld, createViewer, emptyWorld, record, viewOf, type World } from '../testing/world.ts';
import { createPlanner, plan } from './plan.ts';

const event = fc.array(fc.nat(), { minLength: NUMBERS_PER_EVENT, maxLength: NUMBERS_PER_EVENT }).map(eventFrom);
const events = (maxLength: number) => fc.array(event, { maxLength, size: 'max' });

/** A cluster with a history, of which the last events are not planned yet. */
const lived = fc.tuple(events(40), events(10)).map(([history, news]): World => {
  const world = emptyWorld();
  for (const [at, event] of history.entries()) {
    happen(world, event, at);
    record(world, plan(viewOf(world)));
    agentsReport(world);
  }
  for (const [at, event] of news.entries()) happen(world, event, history.length + at);
  return world;
});

const shuffled = (view: ClusterView, seed: number): ClusterView => {
  const mixed = <T>(list: readonly T[]): T[] =>
    fc.sample(fc.shuffledSubarray([...list], { minLength: list.length }), { seed, numRuns: 1 })[0] ?? [];
  return {
    ...view,
    nodes: mixed(view.nodes),
    tunnels: mixed(view.tunnels),
    gateways: mixed(view.gateways),
    policies: mixed(view.policies),
    namespaces: mixed(view.namespaces),
  };
};

describe('plan', () => {
  it('is the same for the same view, in whatever order its lists come', () => {
    fc.assert(
      fc.property(lived, fc.nat(), (world, seed) => {
        const view = viewOf(world);
        assert.deepEqual(plan(shuffled(view, seed)), plan(view));
      }),
      { numRuns: 60 },
    );
  });

  it('does not change the view', () => {
    fc.assert(
      fc.property(lived, (world) => {
        const view = viewOf(world);
        plan(view);
        assert.deepEqual(view, viewOf(world));
      }),
      { numRuns: 30 },
    );
  });

  it('after a restart is the plan before it, whatever was going on', () => {
    fc.assert(
      fc.property(lived, (world) => {
        const planned = plan(viewOf(world));
        const restarted = copyWorld(world);
        record(restarted, planned);
        assert.deepEqual(plan(viewOf(restarted)), { ...planned, orphanTunnels: [] });
      }),
      { numRuns: 60 },
    );
  });

  it('serves the others when one object is odd', () => {
    const world = worldOf(
      [nodeObject('a')],
      [gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] })],
      [policyObject('red/good', { gateway: 'g' })],
    );
    const before = step(world);
    world.gateways.set('odd', { metadata: { name: 'odd' }, spec: 42, status: 'x' });
    world.policies.set('red/odd', {
      metadata: { name: 'odd', namespace: 'red' },
      spec: { egressIP: null },
      status: [],
    });
    world.policies.set('none', { metadata: { name: 'none' } });
    world.policies.set('red/user', policyObject('red/user', { gateway: 'odd' }));
    const after = step(world);
    assert.deepEqual(
      after.policies.find(({ key }) => key === 'red/good'),
      before.policies[0],
    );
    const reasons = Object.fromEntries(after.policies.map(({ key, accepted }) => [key, accepted.reason]));
    assert.deepEqual(reasons, {
      none: 'SpecInvalid',
      'red/good': 'Valid',
      'red/odd': 'SpecInvalid',
      'red/user': 'GatewayNotAccepted',
    });
    assert.equal(after.gateways.find(({ name }) => name === 'odd')?.accepted.reason, 'SpecInvalid');
    assert.equal(after.policies.find(({ key }) => key === 'red/odd')?.traffic, undefined);
  });

  it('takes a policy that is being deleted for gone, foreign finalizers or not', () => {
    const world = worldOf(
      [nodeObject('a')],
      [gatewayObject('g', { ipv4: ['10.6.1.1'] })],
      [policyObject('red/p', { gateway: 'g', isDeleting: true })],
    );
    const planned = step(world);
    assert.deepEqual(planned.policies, []);
    assert.equal(planned.gateways[0]?.usage.ipv4Free, 1);
  });

  it('refuses the youngest when slots run out, and says so', () => {
    const policies = Array.from({ length: 16_384 }, (_, index) =>
      policyObject(`red/p${index}`, { gateway: 'g', at: index }),
    );
    const world = worldOf([nodeObject('a')], [gatewayObject('g', { ipv4: ['10.6.1.1'] })], policies);
    const without = plan(viewOf(world)).policies.filter(({ binding }) => binding?.slot === undefined);
    assert.deepEqual(
      without.map(({ key, allocated }) => [key, allocated.reason]),
      [['red/p16383', 'SlotsExhausted']],
    );
    assert.match(without[0]?.allocated.sentence ?? '', /No slot is left for policy red\/p16383\. Join policies/);
  });
});

describe('createPlanner', () => {
  it('gives the same values for all that a new policy does not concern', () => {
    const gateways = ['g', 'h'].map((name, index) =>
      gatewayObject(name, { ipv4: [`10.6.${index}.1-10.6.${index}.9`] }),
    );
    const world = worldOf([nodeObject('a')], gateways, []);
    for (const gateway of ['g', 'h']) putPolicy(world, policyObject(`red/${gateway}`, { gateway, allocator: 'rr' }));
    step(world);
    const [planner, viewer] = [createPlanner(), createViewer()];
    const { plan: before } = planner(viewer(world));
    putPolicy(world, policyObject('red/new', { at: 1, gateway: 'h', allocator: 'rr' }));
    const { plan: after } = planner(viewer(world));
    assert.equal(after.gateways[0], before.gateways[0]);
    assert.notEqual(after.gateways[1], before.gateways[1]);
    assert.deepEqual(
      after.policies.map((policy) => before.policies.includes(policy)),
      [true, true, false],
    );
  });

  it('gives what plan() gives, whatever other cluster it has seen before', () => {
    fc.assert(
      fc.property(fc.array(lived, { minLength: 2, maxLength: 4 }), (worlds) => {
        const [planner, viewer] = [createPlanner(), createViewer()];
        for (const world of [...worlds, ...worlds]) assert.deepEqual(planner(viewer(world)).plan, plan(viewOf(world)));
      }),
      { numRuns: 30 },
    );
  });
});
