import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KernelSource, KernelView } from '../core/node/kernel-view.ts';
import type { PacketOutcome } from '../core/policies/outcome.ts';
import { ip } from '../core/testing/address.ts';
import { checkGateway, checkWorker } from './kernel-check.ts';

const source: KernelSource = {
  ip: '10.244.3.7',
  class: '0x25000001',
  destinations: [
    { range: '198.51.100.0/24', verdict: { kind: 'slot', slot: 3 } },
    { range: '203.0.113.7', verdict: { kind: 'leftAlone' } },
    { range: '203.0.113.20-203.0.113.29', verdict: { kind: 'drop' } },
  ],
  otherwise: { kind: 'slot', slot: 4 },
};
const view: KernelView = {
  node: 'w',
  hasTable: true,
  source,
  slot: { slot: 3, gateway: 'g', eip: { ipv4: '10.6.1.1' } },
};
const throughG = { kind: 'gateway', node: 'g', slot: 3, eip: ip('10.6.1.1') } as const;

describe('checkWorker', () => {
  const check = (outcome: PacketOutcome, to: string, isOutside = true, kernel: KernelView = view): string => {
    const way = { source: ip('10.244.3.7'), about: to, to: { ip: ip(to), isOutside }, policy: undefined, outcome };
    const { result, sentence } = checkWorker('w', way, { ok: true, view: kernel });
    return `${result}: ${sentence.replace('10.244.3.7 (class 0x25000001)', 'it')}`;
  };

  it('looks the destination up as the kernel does', () => {
    assert.equal(check(throughG, '198.51.100.7'), 'same: it to 198.51.100.7: slot 3 to node g.');
    assert.equal(check({ kind: 'leftAlone' }, '203.0.113.7'), 'same: it to 203.0.113.7: left alone.');
    assert.equal(check({ kind: 'drop', because: 'unbound' }, '203.0.113.29'), 'same: it to 203.0.113.29: dropped.');
    assert.equal(
      check(throughG, '203.0.113.30'),
      'different: it to 203.0.113.30: slot 4 to no known node; expected: slot 3 to node g.',
    );
  });

  it('knows that the rest of the cluster is left alone, but not what policies name', () => {
    assert.equal(check({ kind: 'leftAlone' }, '10.244.9.9', false), 'same: it to 10.244.9.9: left alone.');
    assert.equal(check(throughG, '198.51.100.7', false), 'same: it to 198.51.100.7: slot 3 to node g.');
  });

  it('takes the address of the own node for traffic that is left alone', () => {
    assert.match(check({ kind: 'nodeIp', because: 'notReady' }, '203.0.113.7'), /^same/);
  });

  it('compares the node that the slot leads to', () => {
    assert.equal(
      check({ ...throughG, node: 'other' }, '198.51.100.7'),
      'different: it to 198.51.100.7: slot 3 to node g; expected: slot 3 to node other.',
    );
  });

  it('says when the kernel has no table of ours', () => {
    const bare = { node: 'w', hasTable: false };
    assert.equal(
      check(throughG, '198.51.100.7', true, bare),
      'different: 10.244.3.7 (no class) to 198.51.100.7: left alone, because the kernel has no table of Sallyport; expected: slot 3 to node g.',
    );
  });
});

describe('checkGateway', () => {
  it('compares the address of the family', () => {
    const check = (eip: string): string => {
      const { result, sentence } = checkGateway({ ...throughG, eip: ip(eip) }, { ok: true, view });
      return `${result}: ${sentence}`;
    };
    assert.equal(check('10.6.1.1'), 'same: slot 3 leaves with 10.6.1.1.');
    assert.equal(check('10.6.1.2'), 'different: slot 3 leaves with 10.6.1.1; expected: 10.6.1.2.');
    assert.equal(check('fd00::1'), 'different: slot 3 leaves with no IPv6 address; expected: fd00::1.');
  });
});
