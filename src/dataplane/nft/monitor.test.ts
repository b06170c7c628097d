import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TransactionReader, watchTable } from './monitor.ts';
import { packetsOf, type Transaction } from './testing/packets.ts';

const OWN = 0x12340001;
const isOwn = (signature: number): boolean => signature === OWN;

const packets = (given: Partial<Transaction>): readonly Buffer[] =>
  packetsOf({ table: 'sallyport', concernsChains: false, signatures: [], program: 'nft', pid: 77, ...given });

describe('transactions of nftables', () => {
  it('of others are told with the program that made them', () => {
    assert.equal(new TransactionReader(isOwn).read(packets({ program: 'firewalld' }))?.who, 'firewalld, process 77');
  });

  it('of ours are known by their signature', () => {
    assert.equal(new TransactionReader(isOwn).read(packets({ signatures: [OWN] })), undefined);
    assert.equal(new TransactionReader(isOwn).read(packets({ signatures: [OWN + 1, OWN] })), undefined);
  });

  it('with the signature of another process are those of others', () => {
    assert.equal(new TransactionReader(isOwn).read(packets({ signatures: [0x99990001] }))?.who, 'nft, process 77');
  });

  it('on other tables do not matter, whatever their names are', () => {
    const reader = new TransactionReader(isOwn);
    for (const table of ['kube-proxy', 'sallyport2', 'sally', '']) {
      assert.equal(reader.read(packets({ table })), undefined, table);
    }
  });

  it('are told apart when they come together, in either order', () => {
    const [own, foreign] = [packets({ signatures: [OWN] }), packets({ program: 'someone' })];
    assert.equal(new TransactionReader(isOwn).read([...own, ...foreign])?.who, 'someone, process 77');
    assert.equal(new TransactionReader(isOwn).read([...foreign, ...own])?.who, 'someone, process 77');
  });

  it('say whether they changed more than elements', () => {
    const [elements, chains] = [packets({}), packets({ concernsChains: true })];
    const concerned = [elements, chains, [...chains, ...elements]].map(
      (given) => new TransactionReader(isOwn).read(given)?.concernsChains,
    );
    assert.deepEqual(concerned, [false, true, true]);
  });

  it('may come in pieces', () => {
    const reader = new TransactionReader(isOwn);
    const told = [...packets({}), ...packets({ signatures: [OWN] })].map((packet) => reader.read([packet])?.who);
    assert.deepEqual(told, [undefined, 'nft, process 77', undefined, undefined]);
  });

  it('begin anew after some were lost', () => {
    const reader = new TransactionReader(isOwn);
    const [change, end] = packets({});
    reader.read([change ?? Buffer.alloc(0)]);
    assert.match(reader.restart().who, /could not tell/);
    assert.equal(reader.read([end ?? Buffer.alloc(0)]), undefined);
  });

  it('may hold anything: bytes that are no messages are passed over', () => {
    const reader = new TransactionReader(isOwn);
    const garbage = [
      Buffer.alloc(0),
      Buffer.alloc(64),
      Buffer.from('ff'.repeat(40), 'hex'),
      Buffer.from('14000000', 'hex'),
    ];
    assert.equal(reader.read(garbage), undefined);
  });
});

describe('watching', () => {
  it('reads on after each call, tells what was lost, and closes the feed at the end', async () => {
    const waiting: (readonly Buffer[] | 'lost')[] = [
      [],
      packets({ program: 'someone' }),
      'lost',
      packets({ signatures: [OWN] }),
    ];
    let isOpen = true;
    const feed = {
      receive: () => waiting.shift() ?? [],
      close: () => {
        isOpen = false;
      },
    };
    let next = (): void => {};
    const heard: string[] = [];
    const stopping = new AbortController();
    const watching = watchTable({
      openChangeFeed: () => feed,
      clock: {
        after: (_delayMs, callback) => {
          next = callback;
          return () => {
            next = () => assert.fail('reads after the end');
          };
        },
      },
      isOwn,
      onForeign: ({ who }) => heard.push(who),
      signal: stopping.signal,
    });
    for (let reads = 0; reads < 5; reads += 1) next();
    assert.deepEqual(heard, ['someone, process 77', 'unknown, because the kernel could not tell all changes']);
    stopping.abort();
    await watching;
    assert.equal(isOpen, false);
  });
});
