/** Starts of agents, as stories: what a node finds in its kernel, and whether others let it have that. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ownership } from './ownership.ts';
import type { Effect } from './port.ts';
import { eip, eventsIn, ownersOf, started, type Told } from './testing/story.ts';
import { defaultTiming, timingOf } from './timing.ts';

describe('Ownership at a start', () => {
  it('keeps what it finds in its kernel at the start, also when voters answer late', () => {
    const stage = started();
    const [owner, ...voters] = stage.network.nodes;
    if (owner === undefined) assert.fail();
    stage.network.crash(owner);
    stage.run(600);
    for (const voter of voters) stage.network.cut(voter, owner);
    stage.network.start(owner);
    stage.run(600 + 3.5 * stage.timing.silenceMs);
    stage.network.healLinks();
    stage.run(1_500);
    assert.deepEqual(ownersOf(stage), ['n0']);
    assert.deepEqual(eventsIn(stage.told, 300), []);
  });

  it('makes the owner announce its EIPs when the node that had them before is back and speaks of them with an earlier epoch', () => {
    const stage = started();
    const [before, owner] = [stage.node(0), stage.node(1)];
    // Its agent dies, its cable is pulled; both come back, in the other order, while its kernel still holds.
    stage.network.crash(before);
    for (const other of [owner, stage.node(2)]) {
      stage.network.cut(before, other);
      stage.network.cut(other, before);
    }
    stage.run(700);
    stage.network.healLinks();
    stage.run(800);
    stage.network.start(before);
    stage.run(1_000);
    assert.deepEqual(ownersOf(stage), ['n1']);
    const announcements = stage.told.filter(({ effect, atMs }) => effect.kind === 'announce' && atMs > 800);
    assert.deepEqual(
      announcements.map(({ node }) => node),
      ['n1'],
      'once: announcements are not answered with announcements',
    );
    const told = stage.told.find(({ node, effect, atMs }) => node === 'n0' && effect.kind === 'owner' && atMs > 800);
    assert.ok(told !== undefined, 'the node is told who owns, and need not wait for the API');
  });

  const timing = timingOf(defaultTiming);

  /** One that starts with an EIP in its kernel, and whom nobody answers. */
  const lonely = (): Ownership => {
    const machine = new Ownership({
      node: 'n0',
      timing,
      held: [{ eip, epoch: 1 }],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const nodes = ['n0', 'n1', 'n2'];
    const plan = {
      electorate: { generation: 1, voters: nodes, hasApi: false },
      gateways: nodes,
      nodes,
      eips: [{ eip, epoch: 1, candidates: nodes }],
    };
    machine.step({ kind: 'plan', plan }, 0);
    return machine;
  };

  /** Wakes it, each time as late, until it has let go; returns when. */
  const letsGoAtMs = (machine: Ownership, lateMs: number): number => {
    const isLetGo = (effect: Effect) => effect.kind === 'hold' && effect.held.length === 0;
    for (;;) {
      const nowMs = machine.wakeAtMs + lateMs;
      if (nowMs > 10_000 || machine.step({ kind: 'wake' }, nowMs).some(isLetGo)) return nowMs;
    }
  };

  it('is excused once for a time in which it was held up, however many messages it finds then', () => {
    const machine = lonely();
    const message = { kind: 'release' as const, released: [], to: undefined };
    for (let nowMs = 100; nowMs < 112; nowMs += 1) {
      machine.step({ kind: 'message', from: 'n1', incarnation: 1, message }, nowMs);
    }
    const atMs = letsGoAtMs(machine, 0);
    assert.ok(atMs < 112 + timing.foundMs, `it let go after ${atMs} ms`);
  });

  it('lets go though it is late each time: it is excused for a silence in all', () => {
    for (const lateMs of [13, 30, 100]) {
      const atMs = letsGoAtMs(lonely(), lateMs);
      const limitMs = timing.foundMs + timing.extensionMs + 3 * lateMs;
      assert.ok(atMs <= limitMs, `late by ${lateMs} ms it let go after ${atMs} ms`);
    }
  });

  it('gives its vote back to an owner whom it took for lost when it has asked in vain', () => {
    const stage = started({ gateways: 2, witnesses: 1 });
    const [owner, rival, witness] = [stage.node(0), stage.node(1), stage.node(2)];
    stage.network.crash(owner);
    stage.network.cut(owner, rival);
    stage.network.cut(rival, owner);
    stage.run(900);
    const isClaim = ({ node, effect }: Told) =>
      node === rival.name && effect.kind === 'send' && effect.message.kind === 'claim';
    assert.ok(stage.told.some(isClaim), 'it has asked');
    stage.network.healLinks();
    stage.network.start(owner);
    stage.run(1_300);
    stage.network.powerOff(witness);
    stage.run(1_700);
    assert.deepEqual(ownersOf(stage), ['n0']);
    assert.deepEqual(eventsIn(stage.told, 300), []);
  });
});
