import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ip as ipOf } from '../testing/address.ts';
import { containers, type TableElements } from './desired.ts';
import { kernelViewOf } from './kernel-view.ts';

const elementsWith = (some: Partial<Record<keyof TableElements, Readonly<Record<string, string>>>>): TableElements => {
  const entries = Object.keys(containers).map((name) => {
    const given: Readonly<Record<string, string>> = some[name as keyof TableElements] ?? {};
    return [name, new Map(Object.entries(given))];
  });
  // Made from all names.
  return Object.fromEntries(entries) as TableElements;
};

const elements = elementsWith({
  pod4: { '10.244.1.5': '0x25000001' },
  pod6: { 'fd44::5': '0x25000001' },
  net4: { '10.9.0.0/24': '0x25000002', '10.9.1.3-10.9.1.9': '0x25000003' },
  dst4: {
    '0x25000001 . 192.0.2.0/24': '0x26000007',
    '0x25000001 . 192.0.3.1-192.0.3.5': '0x26000000',
    '0x25000002 . 192.0.2.0/24': '0x26000008',
  },
  dflt4: { '0x25000001': '0x26000009' },
  dflt6: { '0x25000001': '0x24000000' },
  slot_fwd: { '0x26000007': '0x26010007', '0x26000009': '0x28000009', '0x26000008': '0x26030008' },
  slot_eip4: { '0x28000009': '192.0.2.100' },
});
const numbers = new Map([['gateway-1', 1]]);
const ask = (ip: string | undefined, slot?: number) =>
  kernelViewOf('gateway-2', elements, numbers, { ip: ip === undefined ? undefined : ipOf(ip), slot });

describe('kernelViewOf', () => {
  it('tells what happens to a source: its destinations and everything else', () => {
    assert.deepEqual(ask('10.244.1.5').source, {
      ip: '10.244.1.5',
      class: '0x25000001',
      destinations: [
        { range: '192.0.2.0/24', verdict: { kind: 'slot', slot: 7 } },
        { range: '192.0.3.1-192.0.3.5', verdict: { kind: 'drop' } },
      ],
      otherwise: { kind: 'slot', slot: 9 },
    });
    assert.deepEqual(ask('fd44::5').source?.otherwise, { kind: 'leftAlone' });
  });

  it('finds a source by its range, and leaves a class without a default alone', () => {
    assert.equal(ask('10.9.0.77').source?.class, '0x25000002');
    assert.deepEqual(ask('10.9.1.4').source, {
      ip: '10.9.1.4',
      class: '0x25000003',
      destinations: [],
      otherwise: { kind: 'leftAlone' },
    });
  });

  it('tells where a slot goes: to another node, out of this one, or to a node that nobody knows', () => {
    const nowhere = { ipv4: undefined, ipv6: undefined };
    assert.deepEqual(ask(undefined, 7).slot, { slot: 7, gateway: 'gateway-1', eip: nowhere });
    assert.deepEqual(ask(undefined, 9).slot, {
      slot: 9,
      gateway: 'gateway-2',
      eip: { ipv4: '192.0.2.100', ipv6: undefined },
    });
    assert.deepEqual(ask(undefined, 8).slot, { slot: 8, gateway: undefined, eip: nowhere });
  });

  it('says nothing about what the kernel does not know, and that there is no table', () => {
    assert.deepEqual(ask('10.244.9.9', 99), { node: 'gateway-2', hasTable: true, source: undefined, slot: undefined });
    const without = kernelViewOf('gateway-2', undefined, numbers, { ip: undefined, slot: 1 });
    assert.deepEqual(without, { node: 'gateway-2', hasTable: false });
  });
});
