/** Many EIPs, and many moves: what one node asks of others stays bounded. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../ip/index.ts';
import { ip } from '../testing/address.ts';
import type { Message, VoteRequest } from './message.ts';
import { Ownership } from './ownership.ts';
import type { Input } from './port.ts';
import { eip } from './testing/story.ts';
import { defaultTiming, timingOf } from './timing.ts';

describe('Ownership of many EIPs', () => {
  it('does not flood a voter that is slow to answer with claims of a thousand EIPs, and asks it for all of them', () => {
    const timing = timingOf(defaultTiming);
    const machine = new Ownership({ node: 'a', timing, held: [], promisedUntilMs: -Infinity, nowMs: 0 });
    const electorate = { generation: 1, voters: ['a', 'b', 'c'], hasApi: false };
    const all = Array.from({ length: 1_000 }, (_, place) => ip(`10.7.${place >> 8}.${place & 255}`));
    const claims: VoteRequest[] = [];
    const step = (input: Input, nowMs: number): void => {
      for (const effect of machine.step(input, nowMs)) {
        if (effect.kind === 'send' && effect.to === 'b' && effect.message.kind === 'claim') claims.push(effect.message);
      }
    };
    const say = (message: Message, nowMs: number): void => {
      step({ kind: 'message', from: 'b', incarnation: 1, message }, nowMs);
    };
    const eips = all.map((one) => ({ eip: one, epoch: 0, candidates: ['a', 'b'] }));
    const plan = { electorate, gateways: ['a', 'b'], nodes: ['a', 'b', 'c'], eips };
    step({ kind: 'plan', plan }, 0);
    // The voter is heard, but answers no claim for 120 ms.
    for (let nowMs = 5; nowMs < 125; nowMs += 5) {
      say({ kind: 'beat', sequence: nowMs, unreached: [] }, nowMs);
      step({ kind: 'wake' }, nowMs);
    }
    assert.ok(claims.length <= 3 * 4, `${claims.length} messages in 120 ms`);
    // Then it answers whatever it is asked.
    const asked = new Set<Ip>();
    let messages = 0;
    for (let nowMs = 125; nowMs < 175; nowMs += 1) {
      for (const { sequence, wanted } of claims.splice(0)) {
        messages += 1;
        for (const { eip: one } of wanted) asked.add(one);
        say({ kind: 'answer', sequence, losses: 0, granted: wanted, refused: [] }, nowMs);
      }
      step({ kind: 'wake' }, nowMs);
    }
    assert.equal(asked.size, 1_000);
    assert.ok(messages <= 50, `${messages} messages`);
    assert.equal(machine.owned.length, 1_000);
  });

  it('asks no kernel of owners on a node that only hears who owns, however many moves it is told of', () => {
    const ownership = new Ownership({
      node: 'w',
      timing: timingOf(defaultTiming),
      held: [],
      promisedUntilMs: -Infinity,
      nowMs: 0,
    });
    const electorate = { generation: 1, voters: ['a', 'b', 'c'], hasApi: false };
    ownership.step({ kind: 'plan', plan: { electorate, gateways: [], nodes: [], eips: [] } }, 0);
    const kinds = new Set<string>();
    const step = (input: Input, nowMs: number): void => {
      for (const { kind } of ownership.step(input, nowMs)) kinds.add(kind);
    };
    for (let epoch = 1; epoch < 10; epoch += 1) {
      const notice = { kind: 'notice', sequence: epoch, holdings: [{ eip, epoch }] } as const;
      step({ kind: 'message', from: 'a', incarnation: 1, message: notice }, 2_000 * epoch);
      while (ownership.wakeAtMs < 2_000 * (epoch + 1)) step({ kind: 'wake' }, ownership.wakeAtMs);
    }
    assert.deepEqual([...kinds].toSorted(), ['owner', 'send']);
  });
});
