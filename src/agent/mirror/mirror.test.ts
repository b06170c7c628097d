import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { replyMark, slotMark } from '../../core/node/numbers.ts';
import { ip } from '../../core/testing/address.ts';
import type { Connections } from '../../dataplane/conntrack/connections.ts';
import { sampleConnection } from '../../dataplane/conntrack/testing/connections-conformance.ts';
import {
  areSameConnections,
  createFakeConnections,
  type FakeConnections,
} from '../../dataplane/conntrack/testing/fake-connections.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Envelope } from '../thread/envelope.ts';
import { Mirror } from './mirror.ts';
import type { MirroredEip } from './port.ts';

const pair = [ip('10.9.0.100'), ip('fd09::e:100')] as const;
const addresses = new Map([
  ['a', '192.200.0.1'],
  ['b', '192.200.0.2'],
  ['c', '192.200.0.3'],
]);

/** The mark of what other nodes send back to a node. */
const markOf = (node: string): number => replyMark([...addresses.keys()].indexOf(node) + 1);

/** Nodes with a network between them that delivers at once, or not at all. */
class World {
  readonly #manual = new ManualClock();
  #stoodStillMs = 0;
  /** The clock of the machine, which goes on while the process stands still. */
  readonly clock = {
    now: () => this.#manual.now(),
    monotonicMs: () => this.#manual.monotonicMs() + this.#stoodStillMs,
    after: (delayMs: number, callback: () => void) => this.#manual.after(delayMs, callback),
    advance: (ms: number) => this.#manual.advance(ms),
  };
  readonly kernels = new Map<string, FakeConnections>();
  readonly mirrors = new Map<string, Mirror>();
  readonly failures: string[] = [];
  isCut = false;
  packets = 0;
  #number = 0;

  standStill(ms: number): void {
    this.#stoodStillMs += ms;
  }

  constructor(...nodes: readonly string[]) {
    for (const node of nodes) this.start(node);
  }

  start(node: string, connections?: Connections): void {
    const kernel = this.kernels.get(node) ?? createFakeConnections();
    this.kernels.set(node, kernel);
    this.mirrors.get(node)?.close();
    const randomNumber = (): number => {
      this.#number += 1;
      return this.#number;
    };
    const mirror = new Mirror({
      clock: this.clock,
      connections: connections ?? kernel,
      envelope: new Envelope({ node, version: 2, keys: [new Uint8Array(32).fill(7)], randomNumber }),
      instance: randomNumber(),
      send: (address, packet) => this.#carry(address, addresses.get(node) ?? '', packet),
      onFailure: ({ code }) => this.failures.push(code),
      beforeLook: () => {},
    });
    this.mirrors.set(node, mirror);
    this.own(node, []);
  }

  mirror(node: string): Mirror {
    const found = this.mirrors.get(node);
    assert.ok(found !== undefined);
    return found;
  }

  kernel(node: string): FakeConnections {
    const found = this.kernels.get(node);
    assert.ok(found !== undefined);
    return found;
  }

  own(node: string, owned: readonly MirroredEip[]): void {
    this.mirror(node).set({ owned, awaited: [], addresses, replyMark: markOf(node) });
  }

  close(): void {
    for (const mirror of this.mirrors.values()) mirror.close();
  }

  #carry(to: string, from: string, packet: Uint8Array): void {
    this.packets += 1;
    if (this.isCut) return;
    const node = [...addresses].find(([, address]) => address === to)?.[0] ?? '';
    // Not inside the call that sent it, as on a real way.
    this.clock.after(0, () => this.mirrors.get(node)?.packet(packet, from));
  }
}

const tcp = sampleConnection({ eipPort: 5000 });
const udp = sampleConnection({ family: 6, protocol: 'udp', eipPort: 5001 });
const owned = [{ ips: pair, successors: ['b', 'c'] }];

describe('Mirror', () => {
  it('makes on the successor what the owner had, found at the start or come since, of both families', async () => {
    const world = new World('a', 'b', 'c');
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.kernel('a').talk(udp);
    await world.clock.advance(100);
    assert.ok(world.mirror('b').isWhole(pair));
    assert.deepEqual(world.kernel('b').all, [], 'not before it takes over');
    for (const node of ['b', 'c']) {
      assert.equal(world.mirror(node).stats().held, 2);
      world.mirror(node).takeOver(pair);
      assert.ok(areSameConnections(world.kernel(node).all, [tcp, udp]));
      assert.equal(world.mirror(node).stats().written, 2);
      world.mirror(node).takeOver(pair);
      assert.equal(world.mirror(node).stats().written, 2, 'once');
    }
    const { mirrored, lagSeconds, behind } = world.mirror('a').stats();
    assert.deepEqual([mirrored, lagSeconds, behind], [2, 0, 0]);
    world.close();
  });

  it('tells nobody about EIPs in the first second after it stood still for long: another node may own them', async () => {
    const world = new World('a', 'b');
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.kernel('a').talk(tcp);
    world.standStill(35_000);
    await world.clock.advance(900);
    assert.equal(world.mirror('b').stats().held, 0);
    await world.clock.advance(1_000);
    assert.equal(world.mirror('b').stats().held, 1, 'nobody has said that it owns them no more');
    world.close();
  });

  it('makes nothing of a connection that is over', async () => {
    const world = new World('a', 'b');
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.kernel('a').talk(tcp);
    await world.clock.advance(100);
    world.kernel('a').end(tcp.key);
    await world.clock.advance(100);
    world.mirror('b').takeOver(pair);
    assert.deepEqual(world.kernel('b').all, []);
    world.close();
  });

  it('forgets what is over of EIPs that are to come here, and opens again what their owner has open', async () => {
    const world = new World('a', 'b');
    const [other, open] = [sampleConnection({ port: 4001 }), sampleConnection({ port: 4002 })];
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    for (const one of [tcp, other, open]) world.kernel('b').talk(one);
    for (const { key } of [tcp, other]) world.kernel('b').part(key);
    await world.clock.advance(1_000);
    world.mirror('b').clear(pair.slice(1));
    assert.notEqual(world.kernel('b').read(other.key), undefined, 'that of another EIP');
    world.mirror('b').clear(pair.slice(0, 1));
    assert.equal(world.kernel('b').read(other.key), undefined);
    world.kernel('b').talk(tcp);
    world.kernel('b').part(tcp.key);
    world.mirror('b').takeOver(pair);
    assert.ok(areSameConnections(world.kernel('b').all, [tcp, open]));
    world.close();
  });

  it('keeps what the owner had when the owner is gone, and goes on as owner itself', async () => {
    const world = new World('a', 'b', 'c');
    world.kernel('a').talk(tcp);
    world.own('a', [{ ips: pair, successors: ['b'] }]);
    await world.clock.advance(1_000);
    world.mirror('a').close();
    await world.clock.advance(60_000);
    world.mirror('b').takeOver(pair);
    world.own('b', [{ ips: pair, successors: ['c'] }]);
    await world.clock.advance(1_000);
    world.mirror('c').takeOver(pair);
    assert.deepEqual(world.kernel('c').all, [tcp]);
    world.close();
  });

  it('makes them also when the word that the EIP is owned comes before whoever asks for them, and tells them on', async () => {
    const world = new World('a', 'b', 'c');
    world.kernel('a').talk(tcp);
    world.own('a', [{ ips: pair, successors: ['b'] }]);
    await world.clock.advance(1_000);
    world.mirror('a').close();
    world.own('b', [{ ips: pair, successors: ['c'] }]);
    world.mirror('b').takeOver(pair);
    assert.deepEqual(world.kernel('b').all, [tcp]);
    await world.clock.advance(1_000);
    assert.equal(world.mirror('c').stats().held, 1);
    world.close();
  });

  it('tells everything anew to a successor that has started anew', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.start('b');
    assert.equal(world.mirror('b').stats().held, 0);
    await world.clock.advance(2_000);
    assert.equal(world.mirror('b').stats().held, 1);
    assert.equal(world.mirror('a').stats().resets, 1);
    world.close();
  });

  it('finds by a listing what the kernel could not tell', async () => {
    const world = new World('a', 'b');
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.kernel('a').talk(tcp);
    world.kernel('a').loseChanges();
    await world.clock.advance(100);
    assert.equal(world.mirror('b').stats().held, 1);
    world.kernel('a').end(tcp.key);
    world.kernel('a').loseChanges();
    await world.clock.advance(100);
    assert.equal(world.mirror('b').stats().held, 0);
    world.close();
  });

  it('says of a connection from a pod of this node that it comes from this node', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk({ ...tcp, mark: slotMark(5) });
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.mirror('b').takeOver(pair);
    assert.deepEqual(world.kernel('b').all, [{ ...tcp, mark: markOf('a') }]);
    world.close();
  });

  it('lets pods of this node go on through the owner until it has taken over, and exchanges their connections then', async () => {
    const world = new World('a', 'b');
    const ofPodHere = { ...tcp, mark: slotMark(5) };
    world.kernel('a').talk({ ...tcp, mark: markOf('b') });
    world.kernel('a').talk(udp);
    world.kernel('b').talk(ofPodHere, 'kept');
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.mirror('b').takeOver(pair, true);
    assert.deepEqual(world.kernel('b').all, [udp]);
    assert.equal(world.kernel('b').read(tcp.key)?.eip, undefined);
    world.mirror('b').takeOver(pair);
    assert.ok(areSameConnections(world.kernel('b').all, [ofPodHere, udp]));
    world.close();
  });

  it('says nothing of connections of an EIP that nobody is to know, and sends nothing then', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk(tcp);
    world.own('a', [{ ips: pair, successors: [] }]);
    await world.clock.advance(5_000);
    assert.deepEqual([world.packets, world.mirror('a').stats().mirrored], [0, 0]);
    world.close();
  });

  it('does not take the end of connections here for their end, once the EIP is no longer ours', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.own('a', []);
    world.kernel('a').end(tcp.key);
    await world.clock.advance(1_000);
    world.mirror('b').takeOver(pair);
    assert.deepEqual(world.kernel('b').all, [tcp]);
    world.close();
  });

  it('a node that comes back and still takes itself for the owner knows nothing later: what it does not take it does not answer', async () => {
    const world = new World('a', 'b');
    world.own('b', [{ ips: pair, successors: [] }]);
    world.kernel('a').talk(tcp);
    world.own('a', [{ ips: pair, successors: ['b'] }]);
    await world.clock.advance(500);
    assert.equal(world.mirror('a').stats().behind, 2, 'b has not taken it');
    world.own('b', []);
    await world.clock.advance(1_000);
    assert.deepEqual([world.mirror('a').stats().behind, world.mirror('b').stats().held], [0, 1]);
    world.close();
  });

  it('reads nothing that comes from another address than that of its sender', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    world.mirror('b').set({ owned: [], awaited: [], addresses: new Map([['a', '192.200.0.9']]), replyMark: undefined });
    await world.clock.advance(2_000);
    assert.equal(world.mirror('b').stats().held, 0);
    world.close();
  });

  it('knocks at a successor that is away, ten times a second, and has told it everything soon after', async () => {
    const world = new World('a', 'b');
    world.kernel('a').talk(tcp);
    world.isCut = true;
    world.own('a', [{ ips: pair, successors: ['b'] }]);
    await world.clock.advance(10_000);
    assert.ok(world.packets <= 101, `${world.packets} packets`);
    world.isCut = false;
    await world.clock.advance(1_000);
    assert.equal(world.mirror('b').stats().held, 1);
    world.close();
  });

  it('goes on when the kernel refuses', async () => {
    const world = new World('a', 'b');
    const refuse = (): never => {
      throw new EgressError('CONNTRACK_FAILED', 'no');
    };
    world.start('b', { list: refuse, watch: refuse, put: refuse, forgetOver: refuse });
    world.kernel('a').talk(tcp);
    world.own('a', owned);
    await world.clock.advance(1_000);
    world.mirror('b').clear(pair);
    world.mirror('b').takeOver(pair);
    world.own('b', [{ ips: pair, successors: ['a'] }]);
    await world.clock.advance(1_000);
    assert.deepEqual(new Set(world.failures), new Set(['CONNTRACK_FAILED']));
    world.close();
  });
});
