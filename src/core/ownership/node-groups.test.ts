/**
 * The life of policies with `useNodeIP`, as nodes see it: what was recorded with a lost node is served by another one; then
 * the record follows, so that this group is gone and that of the other node has begun or grown.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { OwnershipPlan } from './port.ts';
import { Chance } from './testing/chance.ts';
import { allEips, quietLinks, stageOf } from './testing/stage.ts';

const [, ofN0 = assert.fail(), ofN1 = assert.fail(), ofN2 = assert.fail()] = allEips;

it('a node group goes to another node, ends when the record follows, and begins again, always with one owner', () => {
  const settings = { gateways: 3, witnesses: 0, eips: 4, links: quietLinks, graceMs: 1_000, skew: 0 };
  const stage = stageOf({ seed: 1 }, settings, new Chance(1));
  const { network, judge } = stage;
  const node = (index: number) => network.nodes[index] ?? assert.fail();
  const owners = (group: typeof ofN0) => judge.ownersOf(group).map(({ name }) => name);
  const group = (eip: typeof ofN0, first: string, epoch = 0): OwnershipPlan['eips'][number] => {
    const names = ['n0', 'n1', 'n2'];
    return { eip, epoch, candidates: [first, ...names.filter((name) => name !== first)] };
  };
  const record = (...eips: OwnershipPlan['eips']) => {
    for (const each of network.nodes) network.setPlan(each, { ...stage.plan, eips });
  };
  record(group(ofN0, 'n0'), group(ofN2, 'n2'));
  stage.run(1_500);
  assert.deepEqual([owners(ofN0), owners(ofN2)], [['n0'], ['n2']]);

  network.powerOff(node(0));
  stage.run(1_700);
  assert.deepEqual(owners(ofN0), ['n1'], 'without the API server');
  record(group(ofN1, 'n1'), group(ofN2, 'n2'));
  stage.run(3_000);
  assert.deepEqual([owners(ofN0), owners(ofN1), owners(ofN2)], [[], ['n1'], ['n2']]);

  network.powerOn(node(0));
  network.setPlan(node(0), { ...stage.plan, eips: [group(ofN1, 'n1'), group(ofN2, 'n2')] });
  stage.run(4_000);
  assert.deepEqual(owners(ofN1), ['n1'], 'nothing moves back');
  record(group(ofN0, 'n0'), group(ofN1, 'n1'), group(ofN2, 'n2'));
  stage.run(6_000);
  assert.deepEqual(owners(ofN0), ['n0'], 'a new policy is recorded with the node that was lost');
  const epochs = judge.changesOf(ofN0).map(({ epoch }) => epoch);
  assert.deepEqual(
    epochs,
    epochs.toSorted((a, b) => a - b),
    'no node takes the word of an earlier life for news',
  );

  network.powerOff(node(1));
  stage.run(6_300);
  const [heir = assert.fail()] = owners(ofN1);
  const epoch = judge.changesOf(ofN1).at(-1)?.epoch ?? 0;
  // The only other node is drained: what was recorded with n1 is to go back to it, and the record knows the epoch.
  network.powerOn(node(1));
  record(group(ofN0, 'n0'), group(ofN1, 'n1', epoch), group(ofN2, 'n2'));
  stage.run(9_000);
  assert.notEqual(heir, 'n1');
  assert.deepEqual(owners(ofN1), ['n1']);
  assert.deepEqual(judge.faults, []);
});
