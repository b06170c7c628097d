import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { diffElements } from './diff.ts';
import { renderChanges, renderReplacement, renderTable } from './render.ts';
import { chainsFor } from './ruleset.ts';
import { storedContainers, storedOf } from './stored.ts';
import { settings, smallTable, smallTableWith } from './testing/tables.ts';

const golden = (name: string): string => join(import.meta.dirname, 'testing', 'golden', name);
const plain = { serializers: [(text: string): string => text] };

describe('the scripts', () => {
  it('replace the whole table in one transaction', (t) => {
    t.assert.fileSnapshot(renderReplacement(smallTable, 0x12340001), golden('replacement.nft'), plain);
  });

  it('change only what differs', (t) => {
    const changed = smallTableWith({
      pod4: new Map([...smallTable.elements.pod4, ['10.244.1.3', '0x25000001']]),
      pod6: new Map(),
      net4: new Map([['10.244.7.0/24', '0x25000003']]),
      dst4: new Map([['0x25000003 . 198.51.100.7', '0x26000001']]),
      eips4: new Map([['10.6.0.100', '']]),
      slot_eip4: new Map([['0x28000002', '10.6.0.100']]),
    });
    const changes = diffElements(storedOf(smallTable.elements), storedOf(changed.elements));
    t.assert.fileSnapshot(renderChanges(changes, 0x12340002), golden('change.nft'), plain);
  });
});

describe('the chains', () => {
  const text = renderTable(settings);

  it('name no chain and no container that does not exist, and leave none unused', () => {
    const chains = chainsFor(settings);
    const called = new Set([...text.matchAll(/(?:goto|jump) (\w+)/g)].map(([, name]) => name));
    const made = new Set(chains.filter(({ hook }) => hook === undefined).map(({ name }) => name));
    assert.deepEqual([...called].sort(), [...made].sort());
    const asked = new Set([...text.matchAll(/@(\w+)/g)].map(([, name]) => name));
    assert.deepEqual([...asked].sort(), [...storedContainers.keys()].sort());
  });

  it('never let a packet through early where others still have a say', () => {
    const forwarding = chainsFor(settings).filter(({ name }) => name !== 'eip_input');
    assert.deepEqual(
      forwarding.filter(({ rules }) => rules.some((rule) => /\baccept\b/.test(rule))),
      [],
    );
  });
});
