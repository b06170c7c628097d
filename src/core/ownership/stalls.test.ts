/** A node that stands still, as stories; testing/stalls.ts has many of them, with kernels as the judge. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PROMISES_FROM } from './message.ts';
import { Ownership } from './ownership.ts';
import { eip, ownersOf, started } from './testing/story.ts';
import { defaultTiming, timingOf } from './timing.ts';

const timing = timingOf(defaultTiming);

describe('Ownership of a node that stands still', () => {
  it('has one owner at any moment when the agent of the owner is stopped for 1, 5, 29, 35 and 120 s, and nobody for 0.5 s at the most', () => {
    for (const [seconds, owner] of [
      [1, 'n0'],
      [5, 'n0'],
      [29, 'n1'],
      [35, 'n1'],
      [120, 'n1'],
    ] as const) {
      const stage = started({ graceMs: 30_000, witnesses: 1 });
      const node = stage.node(0);
      stage.network.pause(node);
      const resumeAtMs = 300 + 1_000 * seconds;
      stage.network.at(resumeAtMs, () => stage.network.resume(node));
      let [ownedAtMs, longestMs] = [300, 0];
      stage.network.runUntil(resumeAtMs + 1_000, () => {
        const owners = ownersOf(stage);
        assert.ok(owners.length <= 1, `${owners.join(' and ')} at ${stage.network.timeMs} ms`);
        longestMs = Math.max(longestMs, stage.network.timeMs - ownedAtMs);
        if (owners.length === 1) ownedAtMs = stage.network.timeMs;
      });
      assert.deepEqual(ownersOf(stage), [owner], `${seconds} s`);
      assert.ok(longestMs < 500, `nobody for ${longestMs} ms after ${seconds} s`);
    }
  });

  const alone = (): Ownership => {
    const machine = new Ownership({
      node: 'a',
      timing,
      held: [{ eip, epoch: 1 }],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const electorate = { generation: 1, voters: ['a', 'b', 'c'], hasApi: false };
    const eips = [{ eip, epoch: 1, candidates: ['a'] }];
    machine.step({ kind: 'plan', plan: { electorate, gateways: ['a', 'b'], nodes: [], eips } }, 0);
    return machine;
  };

  it('is stale when the lease of its kernel is over, when it has done nothing for as long, or when the machine was suspended', () => {
    const machine = alone();
    const isStale = (nowMs: number, heldUntilMs = Infinity, suspendedMs = 0) =>
      machine.isStale({ nowMs, heldUntilMs, suspendedMs });
    assert.deepEqual([isStale(5_000), isStale(timing.leaseMs - 1), isStale(timing.leaseMs)], [false, false, true]);
    assert.deepEqual([isStale(99, 100), isStale(100, 100)], [false, true]);
    assert.deepEqual([isStale(50, Infinity, 20), isStale(90, Infinity, timing.holdMs)], [false, true]);
  });

  it('does not tell its kernel to hold on before voters have confirmed what it found there', () => {
    const machine = alone();
    const renewals = (nowMs: number) =>
      machine.step({ kind: 'wake' }, nowMs).filter(({ kind }) => kind === 'renew').length;
    assert.deepEqual([renewals(25), renewals(50)], [0, 0]);
    for (const voter of ['b', 'c']) {
      for (let sequence = PROMISES_FROM; sequence < PROMISES_FROM + 30; sequence += 1) {
        const message = { kind: 'answer' as const, sequence, losses: 0, granted: [{ eip, epoch: 1 }], refused: [] };
        machine.step({ kind: 'message', from: voter, incarnation: 1, message }, 60);
      }
    }
    assert.equal(renewals(75), 1);
  });
});
