import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readEip } from '../project/address.ts';
import { ip } from '../testing/address.ts';
import { type BoundPolicy, outcomeOf, type PacketOutcome, type SourceNode } from './outcome.ts';

const site: SourceNode = { canReach: () => true, isReady: () => true, addressOf: () => undefined };
const eip = readEip({ ipv4: '10.6.1.1', ipv6: 'fd06::1' }, '', []);
const none = readEip({}, '', []);
const bound: BoundPolicy = {
  spec: { address: { kind: 'allocated', allocator: 'rr' }, onUnavailable: 'Drop' },
  eip,
  node: 'a',
  slot: 7,
};
const nodeIp: BoundPolicy = { ...bound, spec: { ...bound.spec, address: { kind: 'nodeIp' } }, eip: none };
const through = (source: string): PacketOutcome => ({ kind: 'gateway', node: 'a', slot: 7, eip: ip(source) });

describe('outcomeOf', () => {
  it('is the EIP of the family', () => {
    assert.deepEqual(outcomeOf(bound, 4, site), through('10.6.1.1'));
    assert.deepEqual(outcomeOf(bound, 6, site), through('fd06::1'));
  });

  it('is the address of the gateway node for a policy that asks for it', () => {
    const known: SourceNode = {
      ...site,
      addressOf: (node, family) => (node === 'a' && family === 4 ? ip('192.0.2.1') : undefined),
    };
    assert.deepEqual(outcomeOf(nodeIp, 4, known), through('192.0.2.1'));
    assert.deepEqual(outcomeOf(nodeIp, 6, known), { kind: 'drop', because: 'noAddress' });
  });

  it('is not the address of the node for a policy that asks for an EIP and has none yet', () => {
    const known: SourceNode = { ...site, addressOf: () => ip('192.0.2.1') };
    assert.deepEqual(outcomeOf({ ...bound, eip: none }, 4, known), { kind: 'drop', because: 'noAddress' });
  });

  const lacking: readonly [string, Partial<BoundPolicy>, Partial<SourceNode>, string][] = [
    ['it has no node', { node: undefined }, {}, 'unbound'],
    ['it has no slot', { slot: undefined }, {}, 'unbound'],
    ['its node cannot be reached', {}, { canReach: (node) => node !== 'a' }, 'unreachable'],
    ['it has no address of the family', { eip: { ...eip, ipv6: undefined } }, {}, 'noAddress'],
  ];
  for (const [when, over, overSite, because] of lacking) {
    it(`is what onUnavailable says when ${when}`, () => {
      const lacks = { ...bound, ...over };
      const there = { ...site, ...overSite };
      assert.deepEqual(outcomeOf(lacks, 6, there), { kind: 'drop', because });
      const open: BoundPolicy = { ...lacks, spec: { ...bound.spec, onUnavailable: 'NodeIP' } };
      assert.deepEqual(outcomeOf(open, 6, there), { kind: 'nodeIp', because });
    });
  }

  it('gives up a node that is not ready only where the policy says NodeIP', () => {
    const lost: SourceNode = { ...site, isReady: () => false };
    assert.deepEqual(outcomeOf(bound, 4, lost), through('10.6.1.1'));
    const open: BoundPolicy = { ...bound, spec: { ...bound.spec, onUnavailable: 'NodeIP' } };
    assert.deepEqual(outcomeOf(open, 4, lost), { kind: 'nodeIp', because: 'notReady' });
  });
});
