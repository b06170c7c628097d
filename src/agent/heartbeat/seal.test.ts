import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Message } from '../../core/ownership/message.ts';
import { ReplayWindow } from '../thread/replay-window.ts';
import { HeartbeatSeal } from './seal.ts';

const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const numbers = (start: number) => {
  let next = start;
  return () => {
    next += 1;
    return next;
  };
};
const sealOf = (node: string, start: number, ...keys: Uint8Array[]): HeartbeatSeal =>
  new HeartbeatSeal({ node, keys: [keys[0] ?? key(1), ...keys.slice(1)], randomNumber: numbers(start) });
const beat: Message = { kind: 'beat', sequence: 1, unreached: [] };

/** Carries a packet and everything that it makes the two send, until nobody has anything to say. */
const carry = (packet: Uint8Array, sealByName: Readonly<Record<string, HeartbeatSeal>>, to: string): void => {
  let opened = sealByName[to]?.open(packet);
  while (opened?.kind === 'reply') opened = sealByName[opened.to]?.open(opened.packet);
};
/** Two that know each other's runs. */
const acquainted = (): { readonly a: HeartbeatSeal; readonly b: HeartbeatSeal } => {
  const [a, b] = [sealOf('a', 100), sealOf('b', 200)];
  carry(a.seal('b', beat), { a, b }, 'b');
  carry(b.seal('a', beat), { a, b }, 'a');
  return { a, b };
};
const kindOf = (seal: HeartbeatSeal, packet: Uint8Array): string => {
  const opened = seal.open(packet);
  return opened.kind === 'nothing' ? opened.why : opened.kind;
};

describe('Seal', () => {
  it('opens what the other has sealed, with its name and run', () => {
    const { a, b } = acquainted();
    const opened = b.open(a.seal('b', beat));
    assert.deepEqual(opened, { kind: 'message', from: 'a', incarnation: 101, message: beat });
  });

  it('reads nothing of a run that has not answered a challenge', () => {
    const [a, b] = [sealOf('a', 100), sealOf('b', 200)];
    assert.equal(kindOf(b, a.seal('b', beat)), 'reply');
    assert.equal(kindOf(b, a.seal('b', beat)), 'reply');
  });

  it('lets a packet through once, and one that was overtaken too', () => {
    const { a, b } = acquainted();
    const [first, second] = [a.seal('b', beat), a.seal('b', beat)];
    assert.deepEqual(
      [second, first, second, first].map((packet) => kindOf(b, packet)),
      ['message', 'message', 'replayed', 'replayed'],
    );
  });

  it('refuses every packet in which any bit is changed', () => {
    const { a, b } = acquainted();
    fc.assert(
      fc.property(fc.nat(), fc.nat({ max: 7 }), (place, bit) => {
        const packet = a.seal('b', beat);
        const index = place % packet.length;
        packet[index] = (packet[index] ?? 0) ^ (1 << bit);
        assert.ok(['malformed', 'forged'].includes(kindOf(b, packet)));
      }),
    );
  });

  it('throws at no bytes whatever', () => {
    const { b } = acquainted();
    fc.assert(fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => assert.equal(b.open(bytes).kind, 'nothing')));
  });

  it('refuses a packet for another node, and one of another cluster', () => {
    const { a, b } = acquainted();
    assert.equal(kindOf(b, a.seal('c', beat)), 'forged');
    assert.equal(kindOf(b, sealOf('a', 100, key(2)).seal('b', beat)), 'forged');
    assert.equal(kindOf(a, a.seal('b', beat)), 'forged');
  });

  it('takes a new run of a sender after a challenge, and the old one never again', () => {
    const { a, b } = acquainted();
    const recorded = a.seal('b', beat);
    const again = sealOf('a', 300);
    carry(again.seal('b', beat), { a: again, b }, 'b');
    assert.equal(kindOf(b, again.seal('b', beat)), 'message');
    carry(recorded, { a: again, b }, 'b');
    assert.equal(kindOf(b, recorded), 'reply');
    assert.equal(kindOf(b, again.seal('b', beat)), 'message');
  });

  it('does not take a recorded proof for an answer to a new challenge', () => {
    const { a, b } = acquainted();
    const challenge = sealOf('b', 900).open(a.seal('b', beat));
    assert.ok(challenge.kind === 'reply');
    const proof = a.open(challenge.packet);
    assert.ok(proof.kind === 'reply');
    assert.equal(kindOf(b, proof.packet), 'replayed');
  });

  it('opens with either key while the Secret changes', () => {
    const [a, b] = [sealOf('a', 100, key(2), key(1)), sealOf('b', 200, key(1), key(2))];
    carry(a.seal('b', beat), { a, b }, 'b');
    assert.equal(kindOf(b, a.seal('b', beat)), 'message');
  });

  it('refuses a short key', () => {
    assert.throws(() => sealOf('a', 1, new Uint8Array(16)), /32 bytes/);
  });

  it('makes a heartbeat of a node with a name of 10 characters 49 bytes long', () => {
    assert.equal(sealOf('gateway-01', 1).seal('b', beat).length, 49);
  });
});

describe('ReplayWindow', () => {
  it('agrees with a set of all numbers seen, within its width', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 60 })), (steps) => {
        const window = new ReplayWindow(100);
        const seen = new Set([100]);
        for (const step of steps) {
          const number = 70 + step;
          const highest = Math.max(...seen);
          assert.equal(window.isNew(number), !seen.has(number) && number > highest - 32);
          if (number > highest - 32) seen.add(number);
        }
      }),
    );
  });
});
