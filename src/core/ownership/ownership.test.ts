/** The rules one by one, each as a short story in a network that is otherwise well. simulation.test.ts mixes them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ownership } from './ownership.ts';
import type { Effect, Input } from './port.ts';
import { bothFamilies, eip, eventsIn, isolate, ownersOf, started, uplink } from './testing/story.ts';
import { clockToleranceOf, defaultTiming, timingOf } from './timing.ts';

describe('Ownership', () => {
  it('gives the EIP of a node without power to the next within 135 ms', () => {
    const stage = started();
    stage.network.powerOff(stage.node(0));
    stage.run(300 + 135);
    assert.deepEqual(ownersOf(stage), ['n1']);
    assert.deepEqual(
      eventsIn(stage.told, 300).map(({ node, reason, cause }) => [node, reason, cause]),
      [['n1', 'EipTakenOver', 'silence']],
    );
  });

  it('lets an owner that is cut off let go before the next one takes over', () => {
    const stage = started();
    isolate(stage, stage.node(0));
    stage.run(600);
    const [first, second] = eventsIn(stage.told, 300);
    assert.deepEqual([first?.node, first?.cause, second?.node], ['n0', 'voters lost', 'n1']);
    assert.ok((first?.atMs ?? 0) < (second?.atMs ?? 0));
  });

  it('keeps the EIPs when all agents are stopped together, for any time that kernels hold by themselves', () => {
    const stage = started({ graceMs: 30_000 });
    let atMs = 300;
    for (const forMs of [20, 40, 70, 90, 150, 1_000, 5_000, 24_000]) {
      for (const node of stage.network.nodes) {
        stage.network.at(atMs, () => stage.network.pause(node));
        stage.network.at(atMs + forMs, () => stage.network.resume(node));
      }
      atMs += forMs + 300;
      stage.run(atMs);
    }
    assert.deepEqual(eventsIn(stage.told, 300), []);
    assert.deepEqual(ownersOf(stage), ['n0']);
  });

  it('lets an owner that stood still with its whole machine let go with the first answers', () => {
    const stage = started();
    const owner = stage.node(0);
    isolate(stage, owner);
    stage.network.pause(owner);
    stage.run(1_300);
    assert.ok(ownersOf(stage).includes('n1'));
    stage.network.healLinks();
    stage.network.resume(owner);
    stage.run(1_300 + 2 * stage.timing.heartbeatMs);
    assert.deepEqual(ownersOf(stage), ['n1']);
    stage.run(2_000);
    assert.deepEqual(ownersOf(stage), ['n1']);
  });

  it('lets an owner that is cut off let go also when it is held up again and again', () => {
    const stage = started();
    const owner = stage.node(0);
    isolate(stage, owner);
    for (let atMs = 310; atMs < 1_000; atMs += 45) {
      stage.network.at(atMs, () => stage.network.pause(owner));
      stage.network.at(atMs + 40, () => stage.network.resume(owner));
    }
    stage.run(900);
    const [first] = eventsIn(stage.told, 300).filter(({ node }) => node === owner.name);
    assert.equal(first?.cause, 'voters lost');
    assert.deepEqual(ownersOf(stage), ['n1']);
  });

  it('keeps the EIP when a vote is added while another voter is lost, although the new majority has to be asked', () => {
    const stage = started({ witnesses: 1 });
    const three = { generation: 1, voters: ['n0', 'n1', 'n2'], hasApi: false };
    for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, electorate: three });
    stage.run(600);
    stage.network.powerOff(stage.node(1));
    stage.run(900);
    // Three of four votes are needed now, and two are there.
    const four = { generation: 2, voters: ['n0', 'n1', 'n2', 'n3'], hasApi: false };
    for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, electorate: four });
    stage.run(1_500);
    assert.deepEqual(ownersOf(stage), ['n0']);
    assert.deepEqual(eventsIn(stage.told, 600), []);
  });

  it('takes over at once again after it was cut off and healed: it does not ask for what another one owns meanwhile', () => {
    const stage = started();
    isolate(stage, stage.node(0));
    // For longer than it takes to call the loss a false alarm.
    stage.run(1_500);
    assert.deepEqual(ownersOf(stage), ['n1']);
    stage.network.healLinks();
    const epoch = stage.judge.changesOf(eip).at(-1)?.epoch ?? 0;
    const eips = stage.plan.eips.map((planned) => ({ ...planned, epoch, candidates: ['n1', 'n0', 'n2'] }));
    for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, eips });
    stage.run(3_000);
    stage.network.powerOff(stage.node(1));
    stage.run(3_135);
    assert.deepEqual(ownersOf(stage), ['n0']);
  });

  it('lets a node sleep that only wants to hear who owns, until it gets a part in it', () => {
    const timing = timingOf(defaultTiming);
    const ownership = new Ownership({ node: 'w', timing, held: [], promisedUntilMs: -Infinity, nowMs: 0 });
    const electorate = { generation: 1, voters: ['a', 'b', 'c'], hasApi: false };
    const nothing = { electorate, gateways: [], nodes: [], eips: [] };
    ownership.step({ kind: 'plan', plan: nothing }, 0);
    let wakes = 0;
    for (; ownership.wakeAtMs < 60_000; wakes += 1) ownership.step({ kind: 'wake' }, ownership.wakeAtMs);
    assert.ok(wakes <= 60_000 / timing.renewMs + 2, `${wakes} times in a minute`);
    const eips = [{ eip, epoch: 0, candidates: ['w', 'a'] }];
    const effects = ownership.step({ kind: 'plan', plan: { ...nothing, gateways: ['w', 'a'], eips } }, 59_000);
    assert.ok(effects.length > 0 || ownership.wakeAtMs <= 59_000 + timing.heartbeatMs);
  });

  it('does not move back when the lost node returns', () => {
    const stage = started();
    stage.network.powerOff(stage.node(0));
    stage.run(600);
    stage.network.powerOn(stage.node(0));
    stage.run(1_200);
    assert.deepEqual(ownersOf(stage), ['n1']);
    assert.equal(stage.judge.changesOf(eip).length, 2);
  });

  it('leaves everything as it is while an agent is dead or stopped for less than the grace', () => {
    for (const act of ['crash', 'pause'] as const) {
      const stage = started();
      stage.network[act](stage.node(0));
      stage.run(1_000);
      stage.network.start(stage.node(0));
      stage.network.resume(stage.node(0));
      stage.run(1_500);
      assert.deepEqual(ownersOf(stage), ['n0']);
      assert.deepEqual(eventsIn(stage.told, 300), []);
    }
  });

  it('moves an EIP whose agent stays away, less than two silences after its kernel has let go by itself', () => {
    const stage = started();
    stage.network.crash(stage.node(0));
    const { leaseMs, silenceMs } = stage.timing;
    let goneAtMs = Infinity;
    let backAtMs = Infinity;
    stage.network.runUntil(1_500, () => {
      const { timeMs } = stage.network;
      const owners = ownersOf(stage);
      assert.ok(owners.length <= 1, `${owners.join(' and ')} at ${timeMs} ms`);
      if (owners.length === 0) goneAtMs = Math.min(goneAtMs, timeMs);
      else if (owners[0] === 'n1') backAtMs = Math.min(backAtMs, timeMs);
    });
    assert.ok(goneAtMs > 300 + leaseMs - 100 && goneAtMs < 300 + leaseMs, `let go at ${goneAtMs} ms`);
    assert.ok(backAtMs < goneAtMs + 2 * silenceMs, `owned by another at ${backAtMs} ms`);
    assert.deepEqual(stage.judge.faults, []);
  });

  it('keeps an EIP while the agents of all other voters are dead', () => {
    const stage = started();
    for (const index of [1, 2]) stage.network.crash(stage.node(index));
    stage.run(1_000);
    assert.deepEqual(ownersOf(stage), ['n0']);
  });

  it('lets go when the majority of voters is gone, and nobody owns then', () => {
    const stage = started();
    for (const index of [1, 2]) stage.network.powerOff(stage.node(index));
    stage.run(420);
    assert.deepEqual(ownersOf(stage), []);
    stage.run(2_000);
    assert.deepEqual(ownersOf(stage), []);
  });

  it('hands an EIP over when the uplink is lost, to a node that has one', () => {
    const stage = started();
    stage.network.tell(stage.node(1), uplink(...bothFamilies));
    stage.run(330);
    stage.network.tell(stage.node(0), uplink(...bothFamilies));
    stage.run(330 + 140);
    assert.deepEqual(ownersOf(stage), ['n2']);
  });

  it('takes at once what is handed to it, also when it has just asked in vain and would wait before it asks again', () => {
    for (let waitMs = 0; waitMs < 1_000; waitMs += 50) {
      const stage = started({ gateways: 2, witnesses: 1 });
      isolate(stage, stage.node(0));
      stage.run(800);
      assert.deepEqual(ownersOf(stage), ['n1']);
      stage.network.healLinks();
      stage.run(900 + waitMs);
      stage.network.tell(stage.node(1), uplink(...bothFamilies));
      stage.run(900 + waitMs + 150);
      assert.deepEqual(ownersOf(stage), ['n0'], `${waitMs} ms after it came back`);
    }
  });

  it('keeps an EIP when nobody has an uplink', () => {
    const stage = started();
    for (const index of [1, 2, 0]) stage.network.tell(stage.node(index), uplink(...bothFamilies));
    stage.run(600);
    assert.deepEqual(ownersOf(stage), ['n0']);
  });

  it('asks the API server where there are two voters: with its vote one of them owns, without it nobody', () => {
    for (const hasApi of [true, false]) {
      const stage = started({ gateways: 2 });
      stage.node(1).hasApi = hasApi;
      stage.network.powerOff(stage.node(0));
      stage.run(900);
      assert.deepEqual(ownersOf(stage), hasApi ? ['n1'] : []);
    }
  });

  it('moves by plan, and the old owner carries packets on until nothing comes any more', () => {
    const stage = started();
    const eips = [{ eip, epoch: 1, candidates: ['n2', 'n0', 'n1'] }];
    for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, eips });
    stage.run(400);
    assert.deepEqual(ownersOf(stage), ['n2']);
    const held = (index: number) => {
      const { mode, other } = stage.node(index).kernel.get(eip) ?? {};
      return { mode, other };
    };
    assert.deepEqual(
      [held(0), held(2)],
      [
        { mode: 'carried', other: 'n2' },
        { mode: 'owned', other: 'n0' },
      ],
    );
    // The new one stops handing back before the old one stops taking it.
    stage.run(400 + stage.timing.handBackMs);
    assert.deepEqual([held(0).mode, held(2).other], ['carried', undefined]);
    stage.run(400 + stage.timing.lingerMs);
    assert.equal(stage.node(0).kernel.get(eip), undefined);
  });

  it('moves by plan also when the owner takes the EIP anew meanwhile: the kernel says only once that it is prepared', () => {
    const ownership = new Ownership({
      node: 'a',
      timing: timingOf(defaultTiming),
      held: [],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const electorate = { generation: 1, voters: ['a', 'b', 'c'], hasApi: false };
    const members = ['a', 'b', 'c'];
    const plan = {
      electorate,
      gateways: members,
      nodes: members,
      eips: [{ eip, epoch: 1, candidates: ['b', 'a', 'c'] }],
    };
    ownership.step({ kind: 'plan', plan }, 0);
    const readyAfter = (input: Input) =>
      ownership.step(input, 1).flatMap((effect) => {
        if (effect.kind !== 'send' || effect.message.kind !== 'ready') return [];
        return effect.message.holdings.map(({ epoch }) => `${effect.to} ${epoch}`);
      });
    const offer = (epoch: number): Input => ({
      kind: 'message',
      from: 'b',
      incarnation: 1,
      message: { kind: 'offer', holdings: [{ eip, epoch }] },
    });
    assert.deepEqual(readyAfter(offer(1)), []);
    assert.deepEqual(readyAfter(offer(2)), [], 'the kernel is not there yet');
    assert.deepEqual(readyAfter({ kind: 'prepared', eips: [eip] }), ['b 2']);
    assert.deepEqual(readyAfter(offer(3)), ['b 3']);
  });

  it('is not moved by a plan that does not know its epoch', () => {
    const stage = started();
    stage.network.powerOff(stage.node(0));
    stage.run(600);
    const eips = [{ eip, epoch: 1, candidates: ['n2', 'n1'] }];
    for (const node of stage.network.nodes) stage.network.setPlan(node, { ...stage.plan, eips });
    stage.run(900);
    assert.deepEqual(ownersOf(stage), ['n1']);
  });

  it('lets go of an EIP that the plan no longer has', () => {
    const stage = started();
    stage.network.setPlan(stage.node(0), { ...stage.plan, eips: [] });
    stage.run(310);
    assert.deepEqual(ownersOf(stage), []);
  });

  it('tells every node about a take-over until it has noted it', () => {
    const stage = started({ witnesses: 2 });
    for (const node of stage.network.nodes) {
      stage.network.setPlan(node, { ...stage.plan, nodes: ['n0', 'n1', 'n2', 'n3', 'n4'] });
    }
    stage.network.crash(stage.node(4));
    stage.network.powerOff(stage.node(0));
    stage.run(700);
    stage.network.start(stage.node(4));
    stage.run(900);
    const owners = stage.told.filter(({ effect }) => effect.kind === 'owner' && effect.node === 'n1');
    assert.deepEqual(owners.map(({ node }) => node).toSorted(), ['n2', 'n3', 'n4']);
  });

  it('does not vote for a node whose electorate is two steps from its own', () => {
    const machine = new Ownership({
      node: 'n0',
      timing: timingOf(defaultTiming),
      held: [],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const electorate = { generation: 5, voters: ['n0', 'n1', 'n2'], hasApi: false };
    const plan = { electorate, gateways: ['n1'], nodes: [], eips: [{ eip, epoch: 0, candidates: ['n1'] }] };
    machine.step({ kind: 'plan', plan }, 0);
    const answersTo = (generation: number): number => {
      const wanted = [{ eip, epoch: 1, isOwned: false }];
      const message = { kind: 'claim' as const, sequence: 1, generation, wanted };
      const effects = machine.step({ kind: 'message', from: 'n1', incarnation: 5, message }, 150);
      return effects.filter((effect) => effect.kind === 'send' && effect.message.kind === 'answer').length;
    };
    assert.deepEqual([3, 4, 5, 6, 7].map(answersTo), [0, 1, 1, 1, 0]);
  });

  it('announces again when another machine has its EIP, and yields to a later epoch', () => {
    const timing = timingOf(defaultTiming);
    const machine = new Ownership({
      node: 'n0',
      timing,
      held: [{ eip, epoch: 3 }],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const electorate = { generation: 1, voters: ['n0', 'n1', 'n2'], hasApi: false };
    const plan = { electorate, gateways: ['n0', 'n1'], nodes: [], eips: [{ eip, epoch: 3, candidates: ['n0', 'n1'] }] };
    machine.step({ kind: 'plan', plan }, 0);
    const kindsOf = (effects: readonly Effect[]): string[] => effects.map(({ kind }) => kind);
    assert.ok(kindsOf(machine.step({ kind: 'conflict', eips: [eip] }, 1)).includes('announce'));
    const notice = { kind: 'notice' as const, sequence: 1, holdings: [{ eip, epoch: 4 }] };
    const effects = machine.step({ kind: 'message', from: 'n1', incarnation: 5, message: notice }, 2);
    assert.deepEqual(
      effects.find(({ kind }) => kind === 'hold'),
      { kind: 'hold', held: [] },
    );
  });
});

describe('timing', () => {
  it('follows from heartbeat and count, and the owner is always first', () => {
    const timing = timingOf(defaultTiming);
    assert.deepEqual([timing.silenceMs, timing.holdMs], [100, 87.5]);
    assert.ok(timing.leaseMs < timing.graceMs - timing.silenceMs);
    assert.ok(clockToleranceOf(timing) > 0.06);
  });

  it('refuses what no promise could be kept with', () => {
    assert.throws(() => timingOf({ ...defaultTiming, heartbeatCount: 2 }), /no ownership with 2 heartbeats/);
    assert.throws(() => timingOf({ ...defaultTiming, graceMs: 300 }), /grace of 300 ms/);
  });
});
