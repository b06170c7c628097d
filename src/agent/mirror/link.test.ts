/** An outbox and an inbox with a bad way between them: whatever happened, when it is over the successor knows what the owner knows. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ip } from '../../core/testing/address.ts';
import { type AddressBytes, addressBytes, type Connection } from '../../dataplane/conntrack/connection.ts';
import { sampleConnection } from '../../dataplane/conntrack/testing/connections-conformance.ts';
import { areSameConnections } from '../../dataplane/conntrack/testing/fake-connections.ts';
import { ConnectionTable } from './connection-table.ts';
import { Inbox, KEEP_MS } from './inbox.ts';
import { decodeMirror, type MirrorAck } from './message.ts';
import { AWAY_MS, Outbox } from './outbox.ts';

const eips = [addressBytes(ip('10.9.0.100')), addressBytes(ip('10.9.0.101'))] as const;
const connection = (eip: AddressBytes, port: number): Connection => ({ ...sampleConnection({ port }), eip });
const owner = { node: 'a', incarnation: 1 };

/** What may happen; numbers choose among what there is. */
type Step =
  | { readonly kind: 'open' | 'close'; readonly eip: number; readonly port: number }
  | { readonly kind: 'deliver' | 'lose' | 'double'; readonly which: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'eips'; readonly wanted: readonly number[] }
  | { readonly kind: 'restart' };

/** Few connections and many packets, so that old and new ones about the same connection meet on the way. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constantFrom<'open' | 'close'>('open', 'close'), eip: fc.nat(1), port: fc.nat(2) }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant<'wait'>('wait'), ms: fc.constant(5) }) },
  { weight: 14, arbitrary: fc.record({ kind: fc.constant<'deliver'>('deliver'), which: fc.nat(5) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom<'lose' | 'double'>('lose', 'double'), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant<'wait'>('wait'), ms: fc.constantFrom(300, 1_100, 3_500) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant<'eips'>('eips'), wanted: fc.uniqueArray(fc.nat(1)) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'restart' }) },
);

/** The two and the way; packets lie there until a step takes one. */
class Link {
  readonly book = new ConnectionTable(1_000);
  readonly outbox = new Outbox(this.book, 1);
  inbox = new Inbox({ instance: 1, limit: 1_000 });
  #way: ({ readonly batch: Buffer } | { readonly ack: MirrorAck })[] = [];
  #wanted: readonly number[] = [0, 1];
  #instance = 1;
  nowMs = 0;

  constructor() {
    this.book.setEips(new Set(eips));
    this.outbox.setEips(new Set(eips), () => true, 0);
  }

  get wanted(): readonly AddressBytes[] {
    return eips.filter((_, index) => this.#wanted.includes(index));
  }

  do(one: Step): void {
    switch (one.kind) {
      case 'open':
      case 'close':
        this.#change(one.kind, eips[one.eip === 0 ? 0 : 1], one.port);
        break;
      case 'wait':
        this.nowMs += one.ms;
        this.send();
        break;
      case 'eips':
        this.#wanted = one.wanted;
        this.outbox.setEips(new Set(this.wanted), () => true, this.nowMs);
        break;
      case 'restart':
        // A new run cannot read what was sent before: its envelope asks for a proof first.
        this.#way = this.#way.filter((packet) => 'ack' in packet);
        this.#instance += 1;
        this.inbox = new Inbox({ instance: this.#instance, limit: 1_000 });
        break;
      default:
        this.#carry(one.which, one.kind);
    }
  }

  send(): void {
    for (let packet = this.outbox.next(this.nowMs); packet !== undefined; packet = this.outbox.next(this.nowMs)) {
      this.#way.push({ batch: Buffer.from(packet) });
    }
  }

  /** Lets time pass and loses nothing, until nobody has anything to say. */
  settle(): void {
    for (let round = 0; round < 40; round += 1) {
      this.nowMs += 250;
      this.send();
      while (this.#way.length > 0) this.#carry(0, 'deliver');
    }
  }

  /** What the successor knows of an EIP. */
  known(eip: AddressBytes): Connection[] {
    return [...this.inbox.unmade(eip)];
  }

  /** What the owner knows of an EIP. */
  written(eip: AddressBytes): Connection[] {
    return [...this.book.keys(eip)].flatMap((key) => {
      const found = this.book.get(eip, key);
      return found === undefined ? [] : [{ key, eip, eipPort: found.port, mark: found.mark }];
    });
  }

  #change(kind: 'open' | 'close', eip: AddressBytes, port: number): void {
    const one = connection(eip, port);
    const change = kind === 'open' ? this.book.open(one) : this.book.close(eip, one.key);
    if (change !== undefined) this.outbox.changed(eip, one.key, change, this.nowMs);
  }

  #carry(which: number, kind: 'deliver' | 'lose' | 'double'): void {
    const index = which % Math.max(1, this.#way.length);
    const [packet] = kind === 'double' ? this.#way.slice(index, index + 1) : this.#way.splice(index, 1);
    if (packet === undefined || kind === 'lose') return;
    if ('ack' in packet) {
      this.outbox.ack(packet.ack, this.nowMs);
      return;
    }
    const batch = decodeMirror(packet.batch);
    assert.ok(batch?.kind === 'batch');
    const ack = this.inbox.take(owner, batch, () => false, this.nowMs);
    if (ack !== undefined) this.#way.push({ ack });
  }
}

describe('owner and successor', () => {
  it('know the same when packets get through again, whatever was lost, doubled, overtaken or forgotten', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 60, maxLength: 200, size: 'max' }), (steps) => {
        const link = new Link();
        link.settle();
        for (const one of steps) link.do(one);
        link.settle();
        for (const eip of eips) {
          const isWanted = link.wanted.includes(eip);
          assert.ok(areSameConnections(link.known(eip), isWanted ? link.written(eip) : []));
          if (isWanted) assert.ok(link.outbox.isWhole(eip) && link.inbox.isWhole(eip));
        }
        assert.equal(link.outbox.lagMs(link.nowMs), 0);
      }),
      { numRuns: 500 },
    );
  });

  it('have nothing to say about a connection that came and went between two looks', () => {
    const link = new Link();
    link.settle();
    link.do({ kind: 'open', eip: 0, port: 1 });
    link.do({ kind: 'close', eip: 0, port: 1 });
    assert.equal(link.outbox.next(link.nowMs), undefined);
    link.do({ kind: 'open', eip: 0, port: 1 });
    assert.notEqual(link.outbox.next(link.nowMs), undefined);
    link.do({ kind: 'close', eip: 0, port: 1 });
    assert.notEqual(link.outbox.next(link.nowMs), undefined, 'once it was told, its end is told too');
  });

  it('keep what was known while the owner starts anew, and forget only what it does not tell any more', () => {
    const link = new Link();
    for (const port of [1, 2, 3]) link.do({ kind: 'open', eip: 0, port });
    link.settle();
    const book = new ConnectionTable(1_000);
    book.setEips(new Set(eips));
    const outbox = new Outbox(book, 1);
    outbox.setEips(new Set(eips), () => true, link.nowMs);
    book.open(connection(eips[0], 2));
    const again = { node: 'a', incarnation: 2 };
    for (let round = 0; round < 3; round += 1) {
      assert.equal(link.inbox.size, 3, 'nothing is forgotten before everything was told');
      link.nowMs += 250;
      const batch = decodeMirror(outbox.next(link.nowMs) ?? Buffer.alloc(0));
      assert.ok(batch?.kind === 'batch');
      const ack = link.inbox.take(again, batch, () => false, link.nowMs);
      if (ack !== undefined) outbox.ack(ack, link.nowMs);
    }
    assert.deepEqual(link.known(eips[0]), [connection(eips[0], 2)]);
  });

  it('lose each other: the owner asks on, but remembers nothing for a successor that is away', () => {
    const link = new Link();
    link.settle();
    link.nowMs += AWAY_MS;
    for (let port = 0; port < 30; port += 1) link.do({ kind: 'open', eip: 0, port });
    let packets = 0;
    for (let ms = 0; ms < 10_000; ms += 20) {
      link.nowMs += 20;
      if (link.outbox.next(link.nowMs) !== undefined) packets += 1;
    }
    assert.ok(packets <= 101, `${packets} packets in ten seconds`);
    assert.equal(link.outbox.lagMs(link.nowMs), 0);
    assert.ok(!link.outbox.isWhole(eips[0]));
    link.settle();
    assert.equal(link.known(eips[0]).length, 30);
  });

  it('have limits', () => {
    const book = new ConnectionTable(2);
    book.setEips(new Set(eips));
    assert.deepEqual(
      [1, 2, 3].map((port) => book.open(connection(eips[0], port))),
      ['new', 'new', undefined],
    );
    assert.deepEqual([book.size, book.dropped], [2, 1]);
    book.setEips(new Set([eips[1]]));
    assert.equal(book.size, 0);
    const inbox = new Inbox({ instance: 1, limit: 2 });
    const connections = [1, 2, 3].map((port) => ({ key: connection(eips[0], port).key, port, mark: 1 }));
    const parts = [{ kind: 'open', eip: eips[0], connections }] as const;
    inbox.take(owner, { kind: 'batch', stream: 1, number: 1, parts }, () => false, 0);
    assert.deepEqual([inbox.size, inbox.dropped], [2, 1]);
    inbox.expire(KEEP_MS - 1);
    assert.equal(inbox.size, 2);
    inbox.expire(KEEP_MS);
    assert.equal(inbox.size, 0);
  });

  it('leave alone what the successor owns itself, and a stream that was replaced', () => {
    const inbox = new Inbox({ instance: 1, limit: 10 });
    const parts = [
      { kind: 'open', eip: eips[0], connections: [{ key: connection(eips[0], 1).key, port: 1, mark: 1 }] },
    ] as const;
    inbox.take(owner, { kind: 'batch', stream: 2, number: 1, parts }, (eip) => eip === eips[0], 0);
    assert.equal(inbox.size, 0);
    assert.equal(
      inbox.take(owner, { kind: 'batch', stream: 1, number: 9, parts }, () => false, 0),
      undefined,
    );
    assert.equal(inbox.size, 0);
  });
});
