/** Laws of a NodeDesired, for random clusters. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyView } from '../cluster/view.ts';
import { ListChangeLog, touchedBetween } from '../incremental/change-log.ts';
import { emptySet, type IntervalSet, intersection, parseCidr, parseSet, union } from '../ip/index.ts';
import { type Cluster, clusterFrom, knownPods, NUMBERS_PER_CLUSTER } from '../testing/clusters.ts';
import { nodeInput, podOn } from '../testing/nodes.ts';
import type { NodeDesired } from './desired.ts';
import { createNodePlanner } from './desired-for.ts';
import type { NodeInput } from './input.ts';

const numbers = fc.array(fc.nat(), { minLength: NUMBERS_PER_CLUSTER, maxLength: NUMBERS_PER_CLUSTER });
const cluster = numbers.map(clusterFrom);
const inputsOf = (made: Cluster): NodeInput[] =>
  made.view.nodes.map(({ name }) => nodeInput(made.view, name, knownPods(made)));
const fresh = (input: NodeInput): NodeDesired => createNodePlanner()(input);
const runs = { numRuns: 60 };
// For laws that plan many times in a run.
const fewRuns = { numRuns: 25 };

const shuffled = <T>(values: readonly T[], seed: number): T[] =>
  values
    .map((value, index) => ({ value, place: Math.imul(index + 1, seed | 1) >>> 0 }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ value }) => value);

/** A policy that records something else; it may be a slot of another policy, which the older one has then. */
const changedAs = (
  kind: 'slot' | 'node' | 'epoch',
  policy: PolicyView,
  other: PolicyView,
  nodes: readonly string[],
): PolicyView => {
  const { recorded } = policy;
  const { slot, eip } = other.recorded;
  const node = nodes[recorded.epoch % nodes.length];
  const over = { slot: { slot, eip }, node: { node, epoch: recorded.epoch + 1 }, epoch: { epoch: recorded.epoch + 1 } };
  return { ...policy, recorded: { ...recorded, ...over[kind] } };
};

/** Every element as one text. */
const elementsOf = ({ table }: NodeDesired): Set<string> =>
  new Set(
    Object.entries(table.elements).flatMap(([name, map]) => [...map].map(([key, value]) => `${name} ${key} ${value}`)),
  );

describe('what a node should hold', () => {
  it('does not depend on the order of lists', () => {
    fc.assert(
      fc.property(cluster, fc.nat(), (made, seed) => {
        for (const input of inputsOf(made)) {
          const mixed = {
            ...input,
            tunnels: shuffled(input.tunnels, seed),
            policies: shuffled(input.policies, seed),
            namespaces: shuffled(input.namespaces, seed),
            pods: shuffled(input.pods, seed),
          };
          assert.deepEqual(fresh(mixed), fresh(input));
        }
      }),
      runs,
    );
  });

  it('is the same from a planner that remembers another cluster', () => {
    fc.assert(
      fc.property(cluster, cluster, (first, second) => {
        const plan = createNodePlanner();
        // Back and forth, and with single lists of the other cluster: whatever is remembered must not show.
        const [a] = inputsOf(first);
        const [b] = inputsOf(second);
        if (a === undefined || b === undefined) return;
        const inputs = [a, b, { ...b, pods: a.pods }, { ...b, policies: a.policies }, { ...a, tunnels: b.tunnels }];
        inputs.push({ ...a, ranges: undefined }, { ...a, host: b.host }, { ...a, namespaces: [] }, a);
        for (const input of inputs) assert.deepEqual(plan(input), fresh(input));
      }),
      runs,
    );
  });

  it('is the same from a planner that has seen policies come and go', () => {
    const steps = fc.array(fc.nat(), { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(cluster, steps, (made, seeds) => {
        for (const input of inputsOf(made)) {
          const plan = createNodePlanner();
          for (const seed of seeds) {
            const policies = input.policies.filter((_, place) => (seed >>> (place % 31)) % 2 === 0);
            const some = { ...input, policies };
            assert.deepEqual(plan(some), fresh(some));
          }
        }
      }),
      fewRuns,
    );
  });

  it('is the same when a change log tells which policies have come, gone, or record something else', () => {
    const steps = fc.array(fc.record({ at: fc.nat(), kind: fc.constantFrom('swap', 'slot', 'node', 'epoch') }), {
      minLength: 3,
      maxLength: 8,
    });
    fc.assert(
      fc.property(cluster, steps, fc.nat(3), (made, changes, skipped) => {
        for (const input of inputsOf(made)) {
          const plan = createNodePlanner();
          const changeLog = new ListChangeLog<PolicyView>();
          const present = new Map(input.policies.map((policy) => [policy.key, policy]));
          const nodes = made.view.nodes.map(({ name }) => name);
          let last = plan({ ...input, policies: changeLog.mark([...present.values()]) });
          for (const [step, { at, kind }] of changes.entries()) {
            const policy = input.policies[at % input.policies.length];
            const other = input.policies[(at >>> 8) % input.policies.length];
            if (policy === undefined || other === undefined) return;
            const before = present.get(policy.key);
            const after =
              kind === 'swap' ? (before === undefined ? policy : undefined) : changedAs(kind, policy, other, nodes);
            if (after === undefined) present.delete(policy.key);
            else present.set(policy.key, after);
            changeLog.exchange(before, after);
            // Others may have asked for a list that the planner never sees.
            if (step % 4 === skipped) continue;
            const some = { ...input, policies: changeLog.mark([...present.values()]) };
            const now = plan(some);
            assert.deepEqual(now, fresh(some));
            for (const name of ['slot_fwd', 'slot_eip4', 'slot_eip6'] as const) {
              assertTold(last.table.elements[name], now.table.elements[name]);
            }
            last = now;
          }
        }
      }),
      fewRuns,
    );
  });

  it('keeps every container of sources when a policy comes that is about no source here', () => {
    fc.assert(
      fc.property(cluster, (made) => {
        for (const input of inputsOf(made)) {
          const plan = createNodePlanner();
          const policies = input.policies.filter(({ spec }) => spec?.appliedTo.kind === 'labels');
          const bystander = { ...input, pods: [], policies };
          const first = plan({ ...bystander, policies: policies.slice(1) });
          const second = plan(bystander);
          for (const name of ['pod4', 'pod6', 'net4', 'net6', 'dst4', 'dst6', 'dflt4', 'dflt6'] as const) {
            assert.equal(second.table.elements[name], first.table.elements[name], name);
          }
        }
      }),
      fewRuns,
    );
  });

  it('is the same value again after a heartbeat, which writes a tunnel anew', () => {
    const [input] = inputsOf(clusterFrom([]));
    assert.ok(input !== undefined);
    const plan = createNodePlanner();
    const first = plan(input);
    const second = plan({
      ...input,
      tunnels: input.tunnels.map((tunnel) => ({ ...tunnel, parent: { ...tunnel.parent } })),
      gatewayNumbers: first.gatewayNumbers,
    });
    assert.equal(second.network, first.network);
    assert.equal(second.sysctls, first.sysctls);
    assert.equal(second.claims, first.claims);
    for (const [name, elements] of Object.entries(first.table.elements)) {
      assert.equal(Object.entries(second.table.elements).find(([other]) => other === name)?.[1], elements, name);
    }
  });

  it('changes for a new pod only in the elements of that pod', () => {
    fc.assert(
      fc.property(cluster, fc.constantFrom('shop', 'web', 'other'), (made, app) => {
        for (const input of inputsOf(made)) {
          const pod = podOn(input.node, 'red/new', ['10.244.3.250', 'fd44:1::fa'], { app });
          const [before, after] = [fresh(input), fresh({ ...input, pods: [...input.pods, pod] })];
          assert.deepEqual([...elementsOf(before).difference(elementsOf(after))], [], 'nothing goes');
          const mark = after.table.elements.pod4.get('10.244.3.250');
          const strange = [...elementsOf(after).difference(elementsOf(before))].filter(
            (text) => !/^pod[46] (10\.244\.3\.250|fd44:1::fa) /.test(text) && !text.includes(` ${mark}`),
          );
          assert.deepEqual(strange, [], 'what comes is the pod, or belongs to its class');
          const [{ table, existing }, problems] = [before, []];
          assert.deepEqual({ ...after, table, existing, problems }, { ...before, problems });
        }
      }),
      runs,
    );
  });

  it('has no two ranges of a class, or of unknown sources, with an address in common', () => {
    fc.assert(
      fc.property(cluster, (made) => {
        for (const { table } of inputsOf(made).map(fresh)) {
          const { net4, net6, dst4, dst6, cluster4, cluster6 } = table.elements;
          for (const ranges of [net4, net6, cluster4, cluster6]) assertDisjoint([...ranges.keys()]);
          for (const map of [dst4, dst6]) {
            const byClass = Map.groupBy(map.keys(), (key) => key.slice(0, 10));
            for (const keys of byClass.values()) assertDisjoint(keys.map((key) => key.slice(13)));
          }
        }
      }),
      runs,
    );
  });

  it('has no two entries of a list for one thing', () => {
    fc.assert(
      fc.property(cluster, (made) => {
        for (const { network, claims } of inputsOf(made).map(fresh)) {
          const keys = [
            ...network.rules.map(({ family, mark }) => `rule ${family} ${mark}`),
            ...network.routes.map(({ table, via }) => `route ${table} ${via.includes(':')}`),
            ...network.neighbours.map(({ ip }) => `neighbour ${ip}`),
            ...network.forwardings.map(({ mac }) => `forwarding ${mac}`),
            ...network.addresses.map(({ ip }) => `address ${ip}`),
            ...network.proxies.map(({ device, ip }) => `proxy ${device} ${ip}`),
            ...claims.map(({ ip }) => `claim ${ip}`),
          ];
          assert.deepEqual(keys, [...new Set(keys)]);
        }
      }),
      runs,
    );
  });
});

/** Whoever goes by the change log of two maps misses nothing. */
const assertTold = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): void => {
  const touched = before === after ? new Set<string>() : touchedBetween(before, after);
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => before.get(key) !== after.get(key),
  );
  assert.deepEqual(new Set(differing).difference(touched ?? assert.fail('the map has no change log')), new Set());
};

const assertDisjoint = (ranges: readonly string[]): void => {
  let before: IntervalSet = emptySet;
  for (const range of ranges) {
    const set = parseSet([range], parseCidr);
    assert.ok(set.ok, `${range} can be read`);
    assert.deepEqual(intersection(before, set.value).intervals, [], `${range} overlaps another of ${ranges}`);
    before = union(before, set.value);
  }
};
