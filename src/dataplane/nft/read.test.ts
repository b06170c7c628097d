import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readChains, readKey, readTable } from './read.ts';

const listing = (...objects: readonly unknown[]): string =>
  JSON.stringify({ nftables: [{ metainfo: { version: '1.0.6' } }, ...objects] });

describe('a key that nft lists', () => {
  // Left as nft 1.0.6 prints it, right as core writes it.
  const cases: readonly (readonly [unknown, string])[] = [
    ['10.0.0.1', '10.0.0.1'],
    [637534209, '0x26000001'],
    [0, '0x00000000'],
    ['66:00:00:00:00:11', '66:00:00:00:00:11'],
    [{ prefix: { addr: 'fd00::', len: 8 } }, 'fd00::/8'],
    [{ range: ['10.0.3.1', '10.0.3.5'] }, '10.0.3.1-10.0.3.5'],
    [{ concat: [620756993, { prefix: { addr: '0.0.0.0', len: 0 } }] }, '0x25000001 . 0.0.0.0/0'],
    [{ elem: { val: 637534209, counter: { packets: 1, bytes: 84 } } }, '0x26000001'],
    ['::1.2.3.4', '::102:304'],
    [{ range: ['64:ff9b::1.2.3.4', '64:ff9b::1.2.3.9'] }, '64:ff9b::102:304-64:ff9b::102:309'],
  ];
  for (const [json, text] of cases) {
    it(`is written as core writes it: ${text}`, () => assert.equal(readKey(json), text));
  }

  it('is an error when it looks like nothing we know', () => {
    assert.throws(() => readKey({ set: [1] }), { code: 'NFT_UNREADABLE' });
    assert.throws(() => readKey(null), { code: 'NFT_UNREADABLE' });
  });
});

describe('a table that nft lists', () => {
  const table = { table: { family: 'inet', name: 'sallyport', handle: 7 } };
  const pods = { name: 'pod4', type: 'ipv4_addr', map: 'mark', handle: 3, elem: [['10.0.0.1', 620756993]] };

  it('has the elements of its containers, and none in those that are missing', () => {
    const { elements } = readTable(listing(table, { map: pods }, { set: { name: 'strange', elem: ['x'] } }));
    assert.deepEqual([...elements.pod4], [['10.0.0.1', '0x25000001']]);
    assert.equal(elements.pod6.size, 0);
  });

  it('has the same chains whatever its elements, handles and counts are', () => {
    const rule = { rule: { chain: 'arrive', handle: 9, expr: [{ drop: null }] } };
    const later = { rule: { ...rule.rule, handle: 12 } };
    const emptied = { map: { name: 'pod4', type: 'ipv4_addr', map: 'mark', handle: 4 } };
    assert.equal(readChains(listing(table, { map: pods }, rule)), readChains(listing(table, emptied, later)));
  });

  it('has other chains when a rule, its order, a flag or a container differs', () => {
    const rule = (name: string) => ({ rule: { chain: 'arrive', expr: [{ [name]: null }] } });
    const chains = [
      listing(table, rule('drop'), rule('return')),
      listing(table, rule('return'), rule('drop')),
      listing(table, rule('drop')),
      listing({ table: { ...table.table, flags: 'dormant' } }, rule('drop')),
      listing(table, { map: pods }, rule('drop')),
    ].map(readChains);
    assert.equal(new Set(chains).size, chains.length);
  });

  it('is an error when it is no listing', () => {
    for (const text of ['', '{}', '{"nftables":[1]}', '{"nftables":{}}', 'Error: no']) {
      assert.throws(() => readTable(text), { code: 'NFT_UNREADABLE' });
    }
  });
});
