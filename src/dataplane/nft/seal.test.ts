import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KernelSeal } from './seal.ts';
import { settings, smallTable, smallTableWith } from './testing/tables.ts';

const nothing = new Map<string, string>();
const bare = { pod4: nothing, pod6: nothing, net4: nothing, net6: nothing, slot_eip4: nothing, slot_eip6: nothing };

/** A seal that holds what the table wants. */
const sealed = (): KernelSeal => {
  const seal = new KernelSeal();
  seal.learn(undefined, undefined);
  assert.match(seal.scriptFor(smallTable), /^table inet sallyport_seal\ndelete table inet sallyport_seal\n/);
  assert.equal(seal.settle(smallTable), true);
  assert.equal(seal.scriptFor(smallTable), '');
  return seal;
};

describe('the seal', () => {
  it('lets pass what has a mark of ours, and drops what should have one or was not judged', () => {
    const [, chains = ''] = new KernelSeal()
      .scriptFor(smallTable)
      .split('  set nets6 { type ipv6_addr; flags interval; }\n');
    assert.equal(
      chains.slice(0, chains.indexOf('\n}')),
      `  chain forward {
    type filter hook forward priority filter; policy accept;
    meta mark and 0xf0000000 == 0x20000000 return
    ct mark and 0xff000000 == 0x26000000 ct direction original drop
    ct state new ct mark and 0xff000000 != 0x24000000 jump unjudged
    iifname "egw0" ct direction original drop
  }
  chain unjudged {
    ip saddr @pods4 drop
    ip6 saddr @pods6 drop
    ip saddr @nets4 drop
    ip6 saddr @nets6 drop
  }`,
    );
  });

  it('changes by the pods that come and go, in changes of elements', () => {
    const pod4 = new Map([...smallTable.elements.pod4].with(0, ['10.244.1.9', '0x25000001']));
    assert.equal(
      sealed().scriptFor(smallTableWith({ pod4 })),
      'delete element inet sallyport_seal pods4 { 10.244.1.1 }\nadd element inet sallyport_seal pods4 { 10.244.1.9 }\n',
    );
  });

  it('does not change when pods come under other policies', () => {
    const pod4 = new Map([...smallTable.elements.pod4.keys()].map((ip) => [ip, '0x25000003']));
    assert.equal(sealed().scriptFor(smallTableWith({ pod4 })), '');
  });

  it('is made anew for another tunnel device', () => {
    assert.match(sealed().scriptFor({ ...smallTable, settings: { ...settings, device: 'egw1' } }), /iifname "egw1"/);
  });

  it('goes when there is nothing to seal, and is not missed then', () => {
    const seal = sealed();
    const empty = smallTableWith(bare);
    assert.equal(seal.scriptFor(empty), 'table inet sallyport_seal\ndelete table inet sallyport_seal\n');
    assert.equal(seal.settle(empty), false);
    assert.equal(seal.scriptFor(empty), '');
    assert.equal(seal.learn(undefined, undefined), false);
  });

  it('tells when somebody took it', () => {
    const seal = sealed();
    assert.equal(seal.learn(undefined, undefined), true);
    assert.notEqual(seal.scriptFor(smallTable), '');
  });
});
