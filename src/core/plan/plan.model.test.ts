/**
 * Long random histories: an event, a plan, the plan written down, and again, hundreds of times. After each step the
 * statuses are checked against invariants that a simple reference computes from the objects alone.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Event, eventFrom, happen, NUMBERS_PER_EVENT, sharedSubnets } from '../testing/events.ts';
import { agentsReport, createViewer, emptyWorld, heldIn, record, viewOf, type World } from '../testing/world.ts';
import { createPlanner, type Plan, plan } from './plan.ts';
import type { PolicyPlan } from './policy-plan.ts';

const STEPS = 400;

const event = fc.array(fc.nat(), { minLength: NUMBERS_PER_EVENT, maxLength: NUMBERS_PER_EVENT }).map(eventFrom);

type Bound = {
  readonly key: string;
  readonly gateway: string;
  readonly ips: string[];
  readonly node: string | undefined;
  readonly slot: number | undefined;
  readonly isServing: boolean;
  readonly epoch: number;
};

const boundOf = (planned: Plan): Bound[] =>
  planned.policies.flatMap(({ key, gateway, binding }) =>
    binding === undefined || gateway === undefined
      ? []
      : [
          {
            key,
            gateway,
            ips: [binding.eip?.ipv4, binding.eip?.ipv6].filter((ip) => ip !== undefined),
            node: binding.node,
            slot: binding.slot,
            isServing: binding.isServing,
            epoch: binding.epoch,
          },
        ],
  );

const specOf = (world: World, gateway: string) =>
  // The objects of the test are made by gatewayObject, so their shape is known.
  world.gateways.get(gateway)?.spec as {
    ippools: { ipv4: string[]; ipv6: string[] };
    nodeSelector: { selector: { matchLabels: Record<string, string> } };
  };

const isSelected = (world: World, gateway: string, node: string): boolean =>
  Object.entries(specOf(world, gateway).nodeSelector.selector.matchLabels).every(
    ([key, value]) => world.nodes.get(node)?.metadata.labels?.[key] === value,
  );

const isReady = (world: World, node: string): boolean => {
  const isUp = world.nodes.get(node)?.status?.conditions?.some(({ status }) => status === 'True') === true;
  const status = world.tunnels.get(node)?.status;
  const hasDevice = JSON.stringify(status ?? {}).includes('eth0');
  return isUp && hasDevice && !world.silent.has(node);
};

const unique = (values: readonly unknown[], what: string): void =>
  assert.equal(new Set(values).size, values.length, `${what} are distinct: ${values.join(' ')}`);

/** The invariants; `world` is as it was when the plan was made. */
const check = (world: World, planned: Plan): void => {
  const age = (key: string): string => `${world.policies.get(key)?.metadata.creationTimestamp} ${key}`;
  for (const names of [planned.policies.map(({ key }) => age(key)), planned.gateways.map(({ name }) => name)]) {
    assert.deepEqual(names, names.toSorted(), 'sorted');
  }
  const bound = boundOf(planned);
  const nodeByIp = new Map<string, string | undefined>();
  const gatewayByIp = new Map<string, string>();
  const partnersByIp = new Map<string, string>();
  for (const { key, gateway, ips, node, isServing } of bound) {
    const { ipv4, ipv6 } = specOf(world, gateway).ippools;
    for (const ip of ips) {
      assert.ok([...ipv4, ...ipv6].includes(ip), `${key} has ${ip} of the pool of ${gateway}`);
      assert.equal(nodeByIp.get(ip) ?? node, node, `${ip} is on one node`);
      assert.equal(gatewayByIp.get(ip) ?? gateway, gateway, `${ip} belongs to one gateway`);
      assert.equal(partnersByIp.get(ip) ?? ips.join(), ips.join(), `the pair of ${ip} stays together`);
      nodeByIp.set(ip, node);
      gatewayByIp.set(ip, gateway);
      partnersByIp.set(ip, ips.join());
    }
    const able = [...world.nodes.keys()].filter((name) => isSelected(world, gateway, name) && isReady(world, name));
    assert.equal(isServing, able.length > 0, `${key} is served exactly when a node of ${gateway} is ready`);
    if (isServing) assert.ok(able.includes(node ?? ''), `${key} is on ${node}, which is ready and selected`);
    else assert.ok(node === undefined || isSelected(world, gateway, node), `${key} waits on a node of ${gateway}`);
  }
  unique(
    bound.map(({ slot }) => slot),
    'slots',
  );
  assert.ok(
    bound.every(({ slot }) => slot !== undefined && slot >= 1 && slot <= 16_383),
    'slots have 14 bits',
  );
  for (const gateway of planned.gateways) {
    const used = new Set(bound.filter((one) => one.gateway === gateway.name).flatMap(({ ips }) => ips));
    const { ipv4Total, ipv4Free, ipv6Total, ipv6Free } = gateway.usage;
    const counts = [...used].map((ip) => (ip.includes(':') ? 6 : 4));
    assert.equal(ipv4Total - ipv4Free, counts.filter((family) => family === 4).length, 'IPv4 addresses in use');
    assert.equal(ipv6Total - ipv6Free, counts.filter((family) => family === 6).length, 'IPv6 addresses in use');
    const shown = gateway.nodes.flatMap(({ eips }) => eips.flatMap(({ policies }) => policies));
    const placed = bound.filter((one) => one.gateway === gateway.name && one.node !== undefined);
    assert.deepEqual(shown.toSorted(), placed.map(({ key }) => key).toSorted(), 'every policy is shown once');
  }
  unique(
    planned.tunnels.map(({ mark }) => mark),
    'marks',
  );
  unique(
    planned.tunnels.map(({ ipv4 }) => ipv4),
    'IPv4 tunnel addresses',
  );
  unique(
    planned.tunnels.map(({ ipv6 }) => ipv6),
    'IPv6 tunnel addresses',
  );
  unique(
    planned.tunnels.map(({ mac }) => mac),
    'MAC addresses',
  );
};

/** Who holds one of these addresses in the latest epoch. A node whose object was deleted is off: its last report says nothing. */
const latestHolder = (world: World, ips: readonly string[]): { node: string; epoch: number } | undefined =>
  [...heldIn(world)]
    .filter(([node]) => world.nodes.has(node))
    .flatMap(([node, held]) => held.filter(({ ip }) => ips.includes(ip)).map(({ epoch }) => ({ node, epoch })))
    .toSorted((a, b) => b.epoch - a.epoch)[0];

/** True when a policy has one of these addresses on record. One that is given anew is placed as if nobody had ever had it. */
const isOnRecord = (world: World, ips: readonly string[]): boolean =>
  [...world.policies.values()].some(({ status }) => {
    const { ipv4, ipv6 } = Object(Object(status).eip);
    return ips.includes(ipv4) || ips.includes(ipv6);
  });

/** Who has taken an EIP over keeps it; who is named instead of the holder is named with an epoch that is not older. */
const checkEpochs = (world: World, planned: Plan): void => {
  for (const { key, gateway, ips, node, isServing, epoch } of boundOf(planned)) {
    const holder = latestHolder(world, ips);
    if (!isServing || holder === undefined || holder.node === node) continue;
    assert.ok(
      epoch >= holder.epoch,
      `${key} is moved from ${holder.node}, which has epoch ${holder.epoch}, not ${epoch}`,
    );
    const canServe = isSelected(world, gateway, holder.node) && isReady(world, holder.node);
    const recorded = Object(world.policies.get(key)?.status).epoch ?? 0;
    const isLater = isOnRecord(world, ips) && holder.epoch > recorded;
    assert.ok(!canServe || !isLater, `${key} stays with ${holder.node}, which has taken it over`);
  }
};

/** True when an event on a gateway may concern policies of another one: its own, and those of pools that overlap. */
const isConcerned = (world: World, event: Event, gateway: string): boolean => {
  if (event.kind !== 'gateway' && event.kind !== 'dropGateway') return false;
  const { ipv4, ipv6 } = specOf(world, gateway).ippools;
  return (
    event.name === gateway || [...ipv4, ...ipv6].some((ip) => sharedSubnets.some((subnet) => ip.startsWith(subnet)))
  );
};

/** What one event must not have changed. */
const checkStable = (world: World, event: Event, before: Plan, after: Plan): void => {
  const old = new Map(boundOf(before).map((bound) => [bound.key, bound]));
  for (const bound of boundOf(after)) {
    const was = old.get(bound.key);
    if (was === undefined || was.gateway !== bound.gateway) continue;
    if ('key' in event && event.key === bound.key) continue;
    if (isConcerned(world, event, bound.gateway)) continue;
    assert.deepEqual(
      [bound.ips, bound.slot],
      [was.ips, was.slot],
      `${bound.key} keeps EIP and slot after ${event.kind}`,
    );
    if (was.ips.join() === bound.ips.join()) {
      assert.ok(bound.epoch >= was.epoch, `the epoch of ${bound.key} does not fall after ${event.kind}`);
    }
    if (event.kind === 'takeOver') continue;
    const couldStay = was.node !== undefined && isSelected(world, was.gateway, was.node) && isReady(world, was.node);
    if (couldStay) assert.equal(bound.node, was.node, `${bound.key} does not move after ${event.kind}`);
  }
};

const live = (history: readonly Event[]): World => {
  const world = emptyWorld();
  const planner = createPlanner();
  const viewer = createViewer();
  const told = new Map<string, PolicyPlan>();
  let before: Plan | undefined;
  for (const [at, event] of history.entries()) {
    happen(world, event, at);
    const planned = plan(viewOf(world));
    check(world, planned);
    checkEpochs(world, planned);
    const next = planner(viewer(world));
    assert.deepEqual(next.plan, planned, 'what a planner remembers does not show');
    for (const { policy, plan: each } of next.changes) {
      if (each === undefined) told.delete(policy.key);
      else told.set(policy.key, each);
    }
    assert.equal(told.size, next.plan.policies.length);
    for (const each of next.plan.policies) assert.equal(told.get(each.key), each, 'every change is told');
    if (before !== undefined) checkStable(world, event, before, planned);
    record(world, planned);
    // What the plan says to delete is gone once it is carried out; everything else comes out the same.
    assert.deepEqual(plan(viewOf(world)), { ...planned, orphanTunnels: [] }, 'the record gives the same plan');
    agentsReport(world);
    before = planned;
  }
  return world;
};

const checkNothingLeaks = (world: World): void => {
  world.policies.clear();
  const empty = plan(viewOf(world));
  for (const { usage, nodes } of empty.gateways) {
    assert.deepEqual([usage.ipv4Free, usage.ipv6Free], [usage.ipv4Total, usage.ipv6Total], 'all EIPs are free');
    assert.deepEqual(
      nodes.flatMap(({ eips }) => eips),
      [],
      'no node carries anything',
    );
  }
  assert.deepEqual(empty.policies, []);
};

describe('a random history', () => {
  it('never breaks an invariant, moves what it does not touch, or leaks', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 60, size: 'max' }), (history) =>
        checkNothingLeaks(live(history)),
      ),
      { numRuns: 30 },
    );
  });

  it(`of ${STEPS} events does not either`, () => {
    // Drawn without a property: a history of this length is not worth shrinking, and its seed is enough to repeat it.
    for (const history of fc.sample(fc.array(event, { minLength: STEPS, maxLength: STEPS }), {
      numRuns: 1,
      seed: 15,
    })) {
      checkNothingLeaks(live(history));
    }
  });
});
