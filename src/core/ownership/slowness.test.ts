/** Failure detection where processors are short, as stories; testing/starved.ts has many of them, with kernels as the judge. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FalseAlarms } from './false-alarms.ts';
import { Hearing } from './hearing.ts';
import { Jitter } from './jitter.ts';
import { type Message, PROMISES_FROM } from './message.ts';
import { Ownership } from './ownership.ts';
import type { Effect } from './port.ts';
import { eip, eventsIn, isolate, ownersOf, started } from './testing/story.ts';
import { defaultTiming, timingOf } from './timing.ts';

const timing = timingOf(defaultTiming);

describe('Jitter', () => {
  it('is the second longest delay, so that one stop alone is none', () => {
    const jitter = new Jitter(1_000);
    jitter.note(300, 0);
    assert.equal(jitter.expectedMs(1), 0);
    jitter.note(40, 2);
    assert.equal(jitter.expectedMs(3), 40);
    jitter.note(200, 4);
    assert.equal(jitter.expectedMs(5), 200);
  });

  it('is forgotten after its time, and after twice of it at the latest', () => {
    const jitter = new Jitter(1_000);
    for (const nowMs of [0, 999]) jitter.note(200, nowMs);
    assert.deepEqual(
      [1_000, 1_999, 2_000].map((nowMs) => jitter.expectedMs(nowMs)),
      [200, 200, 0],
    );
  });
});

describe('Hearing', () => {
  /** Hears a node at each of these times. */
  const heardAt = (timesMs: readonly number[]): Hearing => {
    const hearing = new Hearing('a', timing);
    for (const nowMs of timesMs) hearing.hear('b', 1, true, nowMs);
    return hearing;
  };

  it('grants the usual silence while heartbeats come, one of them now and then twice as late', () => {
    assert.equal(heardAt([0, 25, 75, 100, 150, 175]).silenceOf('b'), 100);
  });

  it('grants four times as much as heartbeats come late, and a second at the most', () => {
    assert.equal(heardAt([0, 100, 200]).silenceOf('b'), 300);
    assert.equal(heardAt([0, 600, 1_200]).silenceOf('b'), timing.widestMs);
  });

  it('learns nothing from a node that was away for longer than any silence, nor from another run of it', () => {
    assert.equal(heardAt([0, 3_000, 6_000]).silenceOf('b'), 100);
    const hearing = heardAt([0]);
    for (const [incarnation, nowMs] of [
      [2, 300],
      [3, 600],
    ] as const)
      hearing.hear('b', incarnation, true, nowMs);
    assert.equal(hearing.silenceOf('b'), 100);
  });

  it('keeps what it has granted when it grants less', () => {
    const hearing = heardAt([0, 200, 400]);
    assert.equal(hearing.silenceOf('b'), 700);
    for (let nowMs = 425; nowMs <= 400 + 2 * timing.jitterMs; nowMs += 25) hearing.hear('b', 1, true, nowMs);
    assert.equal(hearing.silenceOf('b'), 100, 'a minute later it is quiet');
    const quick = new Hearing('a', { ...timing, jitterMs: 10 });
    for (const nowMs of [0, 200, 209]) quick.hear('b', 1, true, nowMs);
    quick.forgive(200, 210);
    quick.forgive(200, 211);
    quick.hear('b', 1, true, 212);
    const grantedUntilMs = quick.aliveUntilMs('b');
    assert.equal(grantedUntilMs, 212 + 800);
    for (let nowMs = 237; nowMs < 400; nowMs += 25) quick.hear('b', 1, true, nowMs);
    assert.equal(quick.silenceOf('b'), 100);
    assert.equal(quick.aliveUntilMs('b'), grantedUntilMs);
  });

  it('takes a lost node for lost though its own timer is always late, after the widest silence and a usual one', () => {
    const hearing = heardAt([0, 25, 50]);
    let nowMs = 50;
    for (; hearing.isAlive('b', nowMs); nowMs += 60) hearing.forgive(50, nowMs);
    assert.ok(nowMs <= 50 + timing.widestMs + timing.silenceMs + 60, `${nowMs} ms`);
  });
});

describe('FalseAlarms', () => {
  it('double the silence before the next take-over, up to the widest one, and are forgotten after a minute', () => {
    const alarms = new FalseAlarms(timing);
    const silences: number[] = [];
    for (let nowMs = 0; nowMs < 5_000; nowMs += 1_000) {
      alarms.taken(eip, 'b', nowMs);
      alarms.heard('b', nowMs + 300);
      silences.push(alarms.silenceMs(eip, nowMs + 300));
    }
    assert.deepEqual(silences, [200, 400, 800, 1_000, 1_000]);
    assert.equal(alarms.silenceMs(eip, 4_300 + timing.dampingMs), 100);
  });

  it('are none if the node was away for a second', () => {
    const alarms = new FalseAlarms(timing);
    alarms.taken(eip, 'b', 0);
    alarms.heard('b', timing.falseAlarmMs);
    assert.equal(alarms.silenceMs(eip, 2_000), 100);
  });
});

describe('Ownership where processors are short', () => {
  const plan = {
    electorate: { generation: 1, voters: ['a', 'b', 'c'], hasApi: false },
    gateways: ['a', 'b'],
    nodes: [],
    eips: [{ eip, epoch: 1, candidates: ['a', 'b'] }],
  };
  const start = (node: string, held: readonly { eip: typeof eip; epoch: number }[]): Ownership => {
    const machine = new Ownership({ node, timing, held, promisedUntilMs: -Infinity, nowMs: 0 });
    machine.step({ kind: 'plan', plan }, 0);
    return machine;
  };
  const messages = (effects: readonly Effect[]): readonly Message[] =>
    effects.flatMap((effect) => (effect.kind === 'send' ? [effect.message] : []));

  /** What a voter answers to heartbeats that come so irregularly, of an agent that begins to count at a number. */
  const answersTo = (firstSequence: number): readonly Message[] => {
    const voter = start('c', []);
    const answers: Message[] = [];
    for (const nowMs of [0, 150, 300]) {
      while (voter.wakeAtMs < nowMs) voter.step({ kind: 'wake' }, voter.wakeAtMs);
      const message = { kind: 'beat' as const, sequence: firstSequence + nowMs, unreached: [] };
      answers.push(...messages(voter.step({ kind: 'message', from: 'a', incarnation: 1, message }, nowMs)));
    }
    return answers.filter(({ kind }) => kind === 'ack');
  };

  it('tells an owner how long voters wait for it', () => {
    const promised = answersTo(PROMISES_FROM).map((ack) => (ack.kind === 'ack' ? ack.promisedMs : undefined));
    assert.deepEqual(promised, [undefined, undefined, 500]);
  });

  it('answers an agent of an older version, which knows no promises, as that version does', () => {
    const promised = answersTo(1).map((ack) => (ack.kind === 'ack' ? ack.promisedMs : undefined));
    assert.deepEqual(promised, [undefined, undefined, undefined]);
  });

  it('holds for less than was promised, and for a hold where nothing was: voters of an older version promise nothing', () => {
    const letsGoAfterMs = (promisedMs: number | undefined): number => {
      const owner = start('a', [{ eip, epoch: 1 }]);
      let sentAtMs = 0;
      for (;;) {
        const nowMs = owner.wakeAtMs;
        const effects = owner.step({ kind: 'wake' }, nowMs);
        if (effects.some(({ kind }) => kind === 'hold')) return nowMs - sentAtMs;
        assert.ok(nowMs < 5_000, 'it lets go');
        if (nowMs > timing.foundMs + 200) continue;
        for (const message of messages(effects)) {
          const at = nowMs + 0.5;
          const { kind } = message;
          if (kind !== 'beat' && kind !== 'claim') continue;
          sentAtMs = nowMs;
          const [sequence, losses] = [message.sequence, 0];
          const answer: Message =
            kind === 'beat'
              ? { kind: 'ack', sequence, losses, promisedMs }
              : { kind: 'answer', sequence, losses, granted: [{ eip, epoch: 1 }], refused: [] };
          for (const from of ['b', 'c']) owner.step({ kind: 'message', from, incarnation: 1, message: answer }, at);
        }
      }
    };
    assert.equal(letsGoAfterMs(undefined), timing.holdMs);
    assert.equal(letsGoAfterMs(400), 350);
  });

  it('takes an EIP later when it was taken from a node that was only slow, and not much later if that one is lost', () => {
    const stage = started({ gateways: 2, witnesses: 1, graceMs: 10_000 });
    const [first, second] = [stage.node(0), stage.node(1)];
    isolate(stage, first);
    stage.run(800);
    assert.deepEqual(ownersOf(stage), ['n1']);
    stage.network.healLinks();
    stage.run(1_400);
    stage.network.powerOff(second);
    stage.run(2_400);
    const [taken] = eventsIn(stage.told, 1_400);
    assert.deepEqual([taken?.node, taken?.reason], ['n0', 'EipTakenOver']);
    const afterMs = (taken?.atMs ?? Infinity) - 1_400;
    assert.ok(afterMs > 2 * timing.silenceMs - timing.heartbeatMs && afterMs < 500, `${afterMs} ms`);
  });

  it('leaves an EIP where it is for ten minutes in which agents wait up to 250 ms for a processor, again and again', () => {
    const stage = started({ gateways: 2, witnesses: 1, graceMs: 30_000 });
    for (const node of stage.network.nodes) stage.network.starve(node, 600_000, 250);
    let unownedAtMs: number | undefined;
    stage.network.runUntil(600_000, () => {
      const owners = ownersOf(stage);
      assert.ok(owners.length <= 1, owners.join(' and '));
      if (owners.length === 0) unownedAtMs ??= stage.network.timeMs;
    });
    const moves = stage.judge.changesOf(eip).length - 1;
    assert.ok(moves <= 1, `it moved ${moves} times`);
    assert.ok(unownedAtMs === undefined || unownedAtMs < 5_000, `nobody owned it at ${unownedAtMs} ms`);
  });

  it('is as quick as ever a minute after processors were short', () => {
    const stage = started({ graceMs: 10_000, jitterMs: 500 });
    for (const node of stage.network.nodes) stage.network.starve(node, 1_300, 100);
    stage.run(1_300);
    const told = stage.told.filter(({ effect }) => effect.kind === 'silence');
    assert.ok(told.length > 0, 'it says that it is slow');
    const quietMs = 1_300 + 2 * stage.timing.jitterMs + stage.timing.widestMs + 200;
    stage.run(quietMs);
    const last = stage.told.findLast(({ effect }) => effect.kind === 'silence');
    assert.ok(last?.effect.kind === 'silence' && last.effect.silenceMs === timing.silenceMs, 'and that it is not');
    const [lost] = stage.judge.ownersOf(eip);
    assert.ok(lost !== undefined);
    stage.network.powerOff(lost);
    stage.run(quietMs + timing.silenceMs + 2 * timing.heartbeatMs);
    assert.equal(ownersOf(stage).length, 1);
  });
});
