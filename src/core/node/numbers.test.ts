import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SLOTS } from '../gateways/slots.ts';
import {
  classMark,
  DROP,
  GATEWAY_MASK,
  GATEWAY_NUMBERS,
  gatewayMark,
  gatewayTable,
  isOurTable,
  KIND_MASK,
  markText,
  PRIORITIES,
  replyMark,
  replyTable,
  SLOT_MASK,
  slotMark,
  snatMark,
} from './numbers.ts';

const slot = fc.integer({ min: 1, max: SLOTS });
const gateway = fc.integer({ min: 1, max: GATEWAY_NUMBERS });
const bits = fc.integer({ min: 1, max: 0xffff });
const KUBE_PROXY = 0xc000n;

describe('marks', () => {
  it('are written as nft prints them', () => {
    assert.deepEqual(
      [0, classMark(1), slotMark(0x3fff), gatewayMark(255, 1), snatMark(7), replyMark(0xa1b2)].map(markText),
      ['0x00000000', '0x25000001', '0x26003fff', '0x26ff0001', '0x28000007', '0x27a100b2'],
    );
  });

  it('of packets never touch the bits of kube-proxy', () => {
    fc.assert(
      fc.property(slot, gateway, bits, (s, g, b) => {
        for (const mark of [gatewayMark(g, s), snatMark(s), replyMark(b)]) assert.equal(BigInt(mark) & KUBE_PROXY, 0n);
      }),
    );
  });

  it('give the gateway number and the slot back', () => {
    fc.assert(
      fc.property(slot, gateway, (s, g) => {
        const mark = gatewayMark(g, s);
        assert.equal(mark & SLOT_MASK, s);
        assert.equal(BigInt(mark) & BigInt(GATEWAY_MASK), BigInt(gatewayMark(g, 0)));
        assert.equal(BigInt(mark) & BigInt(KIND_MASK), BigInt(DROP));
      }),
    );
  });

  it('of replies differ for two nodes', () => {
    assert.equal(new Set(Array.from({ length: 0xffff }, (_, index) => replyMark(index + 1))).size, 0xffff);
  });
});

describe('routing tables', () => {
  it('are known as ours, and those beside them are not', () => {
    const ours = [gatewayTable(1), gatewayTable(255), replyTable(1), replyTable(0xffff), gatewayTable(0)];
    assert.deepEqual(ours.map(isOurTable), [true, true, true, true, true]);
    assert.deepEqual([254, 255, 2004, 2599, 2856, 51820, 2_699_999, 2_765_536].filter(isOurTable), []);
  });

  it('of gateways are in other places of the kernel: they differ in the lowest byte', () => {
    const bytes = Array.from({ length: GATEWAY_NUMBERS }, (_, index) => gatewayTable(index + 1) & 0xff);
    assert.equal(new Set(bytes).size, GATEWAY_NUMBERS);
  });
});

it('the jump comes before what it jumps over, and lands behind it', () => {
  assert.ok(PRIORITIES.jump < PRIORITIES.lookup && PRIORITIES.lookup < PRIORITIES.land);
});
