import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { diffElements } from './diff.ts';
import { renderChanges, renderRenewal, renderReplacement, renderTable } from './render.ts';
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
  it('take no tunnel packet while no interface carries the tunnel', () => {
    const guardOf = (text: string) => /chain tunnel_guard \{([^}]*)\}/.exec(text)?.[1] ?? '';
    assert.match(guardOf(renderTable(settings)), /iifname "eth0" ip saddr @vteps4 notrack return/);
    assert.doesNotMatch(guardOf(renderTable({ ...settings, parent: undefined })), /notrack/);
  });
});

describe('a renewal', () => {
  const held = { text: renderTable(settings), chains: chainsFor(settings).map(({ name }) => name) };
  const others = { ...settings, mss: { ipv4: 1300, ipv6: 1280 } };

  it('empties every chain, takes those of others away and keeps the containers', () => {
    const script = renderRenewal({ ...held, chains: [...held.chains, 'intruder'] }, others, [], 1) ?? '';
    const [before = '', after = ''] = script.split('table inet sallyport {');
    assert.deepEqual(before.trim().split('\n'), [
      ...[...held.chains, 'intruder'].map((name) => `flush chain inet sallyport ${name}`),
      'delete chain inet sallyport intruder',
    ]);
    assert.match(after, /maxseg size set 1300/);
  });

  it('takes away what the table before had and this one has not', () => {
    const text = held.text.replace('  set sent4 ', '  set old { type mark; }\n  set sent4 ');
    const script = renderRenewal({ ...held, text }, others, [], 1) ?? '';
    assert.match(script, /^delete set inet sallyport old$/m);
  });

  it('cannot be when a container or a hook has another definition', () => {
    for (const [from, to] of [
      ['set vteps4 { type ipv4_addr; }', 'set vteps4 { type ipv4_addr; flags interval; }'],
      ['priority raw;', 'priority raw - 1;'],
    ] as const) {
      assert.ok(held.text.includes(from));
      assert.equal(renderRenewal({ ...held, text: held.text.replace(from, to) }, others, [], 1), undefined);
    }
  });
});

describe('the chains', () => {
  // With strict start there are all of them.
  const strict = { ...settings, isStrict: true };
  const text = renderTable(strict);

  it('name no chain and no container that does not exist, and leave none unused', () => {
    const chains = chainsFor(strict);
    const called = new Set([...text.matchAll(/(?:goto|jump) (\w+)/g)].map(([, name]) => name));
    const made = new Set(chains.filter(({ hook }) => hook === undefined).map(({ name }) => name));
    assert.deepEqual([...called].sort(), [...made].sort());
    const asked = new Set([...text.matchAll(/@(\w+)/g)].map(([, name]) => name));
    assert.deepEqual([...asked].sort(), [...storedContainers.keys()].sort());
  });

  it('never let a packet through early where others still have a say', () => {
    assert.deepEqual(
      chainsFor(strict).filter(({ rules }) => rules.some((rule) => /\baccept\b/.test(rule))),
      [],
    );
  });

  it('ask nobody about unknown pods unless they are told to be strict', () => {
    assert.doesNotMatch(renderTable(settings), /@known|@range|strict_start/);
  });
});
