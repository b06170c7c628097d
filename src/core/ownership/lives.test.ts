/** Lives of an EIP: it is given up, and given again, perhaps to another node. testing/histories.ts has many of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ownership } from './ownership.ts';
import type { Effect, OwnershipPlan } from './port.ts';
import { Chance } from './testing/chance.ts';
import type { Node } from './testing/network.ts';
import { allEips, quietLinks, stageOf } from './testing/stage.ts';
import { defaultTiming, timingOf } from './timing.ts';

const [eip = assert.fail()] = allEips;

describe('Ownership of an EIP that is given again', () => {
  it('tells every node who owns an EIP that was given up and is given again, to another node', () => {
    const told: { readonly atMs: number; readonly node: string; readonly effect: Effect }[] = [];
    const onEffect = (atMs: number, { name }: Node, effect: Effect) => told.push({ atMs, node: name, effect });
    const settings = { gateways: 3, witnesses: 2, eips: 1, links: quietLinks, graceMs: 1_000, skew: 0 };
    const stage = stageOf({ seed: 1, onEffect }, settings, new Chance(1));
    const owners = () => stage.judge.ownersOf(eip).map(({ name }) => name);
    stage.run(300);
    assert.deepEqual(owners(), ['n0']);
    const nodes = ['n0', 'n1', 'n2', 'n3', 'n4'];
    const ofAll = (eips: OwnershipPlan['eips']) => {
      for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, nodes, eips });
    };
    // n4 is no voter: it has no plan of EIPs, and forgets nothing.
    const bystander = stage.network.nodes[4] ?? assert.fail();
    const given = (candidates: readonly string[]) => {
      ofAll([{ eip, epoch: 0, candidates }]);
      stage.network.setPlan(bystander, { ...stage.plan, nodes: [], gateways: [], eips: [] });
    };
    given(['n0', 'n1', 'n2']);
    stage.run(500);
    ofAll([]);
    stage.run(800);
    assert.deepEqual(owners(), []);
    given(['n1', 'n2', 'n0']);
    stage.run(1_300);
    assert.deepEqual(owners(), ['n1']);
    const heard = told.filter(({ atMs, effect }) => atMs > 800 && effect.kind === 'owner' && effect.node === 'n1');
    assert.deepEqual(heard.map(({ node }) => node).toSorted(), ['n0', 'n2', 'n3', 'n4']);
    const epochs = new Set(heard.map(({ effect }) => (effect.kind === 'owner' ? effect.epoch : 0)));
    assert.ok(
      [...epochs].every((epoch) => epoch > 1),
      `epochs ${[...epochs].join(', ')}`,
    );
  });

  it('waits for the first of a new EIP that reads the API later than others, and not for one that is gone', () => {
    for (const { lateMs, isGone, owner } of [
      { lateMs: 700, isGone: false, owner: 'n0' },
      { lateMs: 2_000, isGone: false, owner: 'n1' },
      { lateMs: 700, isGone: true, owner: 'n1' },
    ]) {
      const settings = { gateways: 3, witnesses: 0, eips: 1, links: quietLinks, graceMs: 1_000, skew: 0 };
      const stage = stageOf({ seed: 1 }, settings, new Chance(1));
      for (const node of stage.network.nodes) node.plan = { ...stage.plan, eips: [] };
      stage.run(300);
      for (const node of stage.network.nodes) {
        const atMs = node.name === 'n0' ? 300 + lateMs : 300;
        stage.network.at(atMs, () => stage.network.setPlan(node, stage.plan));
        if (isGone && node.name === 'n0') stage.network.powerOff(node);
      }
      stage.run(isGone ? 500 : 2_200);
      assert.deepEqual(
        stage.judge.changesOf(eip).map(({ node }) => node),
        [owner],
        `${lateMs} ms late`,
      );
    }
  });

  it('believes another node that owns with an epoch which it knows already: the voters have forgotten a former life', () => {
    const machine = new Ownership({
      node: 'n3',
      timing: timingOf(defaultTiming),
      held: [],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const ownersAfter = (from: string, epoch: number): string[] => {
      const message = { kind: 'notice' as const, sequence: 1, holdings: [{ eip, epoch }] };
      const effects = machine.step({ kind: 'message', from, incarnation: 5, message }, 1);
      return effects.flatMap((effect) => (effect.kind === 'owner' ? [effect.node] : []));
    };
    assert.deepEqual([ownersAfter('n0', 2), ownersAfter('n0', 2)], [['n0'], []]);
    assert.deepEqual([ownersAfter('n1', 1), ownersAfter('n1', 2)], [[], ['n1']]);
  });
});
