/**
 * Mirror keeps the connections of EIPs alive across a change of their owner: the owner tells its successors about them as they
 * come and go, a successor keeps them in memory and makes them in its own kernel in the moment in which it takes over. Here the
 * parts are joined: the kernel (Connections), the book of the owner, an outbox for each successor, and the inbox. One timer.
 */
import { EgressError } from '../../api/error.ts';
import type { Ip } from '../../core/ip/index.ts';
import { KIND_MASK, SLOT_KIND } from '../../core/node/numbers.ts';
import {
  type AddressBytes,
  addressBytes,
  type Connection,
  type ConnectionKey,
} from '../../dataplane/conntrack/connection.ts';
import type { ConnectionFeed, Connections } from '../../dataplane/conntrack/connections.ts';
import type { ConnectionEvent } from '../../dataplane/conntrack/heard.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { Envelope } from '../thread/envelope.ts';
import { Answers } from './answers.ts';
import { type ConnectionChange, ConnectionTable } from './connection-table.ts';
import { Inbox } from './inbox.ts';
import { type Batch, decodeMirror, encodeAck } from './message.ts';
import { AWAY_MS, Outbox } from './outbox.ts';
import type { MirrorPlan, MirrorStats } from './port.ts';

export interface MirrorDeps {
  readonly clock: Clock;
  readonly connections: Connections;
  readonly envelope: Envelope;
  /** A number that tells this run from others. */
  readonly instance: number;
  /** Sends a packet to the tunnel address of a node. What cannot be sent is lost, as on the way. */
  readonly send: (address: string, packet: Uint8Array) => void;
  /** Told when the kernel refuses to list, to tell or to make connections; it is tried again. */
  readonly onFailure: (error: EgressError) => void;
  /** Called before each look: a plan that waits comes first, so that the end of connections of an EIP that was let go is told to nobody. */
  readonly beforeLook: () => void;
}

/** Connections that a node remembers, as owner and as successor each; docs/explanation/failover.md says what that takes. */
export const LIMIT = 131_072;
/** How often the kernel is asked for changes: short connections come and go between two looks and are told to nobody. */
const LOOK_MS = 20;
/** The same when nothing has happened for some looks: a node without traffic should cost next to nothing. */
const IDLE_LOOK_MS = 50;
const IDLE_LOOKS = 25;
/** One look takes no more, so that a flood of changes cannot hold up take-overs. */
const CHANGES_AT_ONCE = 20_000;
/** Packets to one successor per look: 800 a second, with 40 connections each. */
const PACKETS_AT_ONCE = 16;
/** The kernel's table is listed this often, whatever it has told: changes may be turned off or lost. */
const LIST_MS = 30_000;
const ASK_MS = 5;
const EXPIRE_MS = 60_000;
/**
 * After this process stood still for long it tells nobody anything for so long: another node may own the EIPs by now, and whoever says
 * what is owned here is about to learn it.
 */
const RECOVERY_MS = 1_000;

export class Mirror {
  readonly #deps: MirrorDeps;
  readonly #book = new ConnectionTable(LIMIT);
  readonly #inbox: Inbox;
  readonly #outboxes = new Map<string, Outbox>();
  readonly #answers: Answers;
  #plan: MirrorPlan = { owned: [], awaited: [], addresses: new Map(), replyMark: undefined };
  #owned: ReadonlySet<AddressBytes> = new Set();
  #feed: ConnectionFeed | undefined;
  #listAtMs = Infinity;
  #idleLooks = 0;
  #expireAtMs = 0;
  #dueAtMs = Infinity;
  #isSilentUntilMs = -Infinity;
  #streams = 0;
  #written = 0;
  #refused = 0;
  #cancel: () => void = nothing;
  #isClosed = false;

  constructor(deps: MirrorDeps) {
    this.#deps = deps;
    this.#inbox = new Inbox({ instance: deps.instance, limit: LIMIT });
    this.#answers = new Answers(deps.clock, (node, ack) => this.#wrap(node, encodeAck(ack)));
  }

  /** What this node owns and who follows it. May be called with the same value forever. */
  set(plan: MirrorPlan): void {
    if (this.#isClosed) return;
    const nowMs = this.#nowMs();
    this.#plan = plan;
    this.#owned = new Set(plan.owned.flatMap(({ ips }) => ips.map(addressBytes)));
    // This word may overtake whoever asks for the connections, on the other channel: made now, or never.
    const unmade = [...this.#owned].filter((eip) => this.#inbox.hasUnmade(eip));
    if (unmade.length > 0) this.#make(unmade);
    // What is owned is known better here than by whoever owned it before.
    for (const eip of this.#owned) this.#inbox.forget(eip);
    const told = plan.owned.filter(({ successors }) => successors.length > 0);
    const eips = new Set(told.flatMap(({ ips }) => ips.map(addressBytes)));
    const isNew = [...eips].some((eip) => !this.#book.has(eip));
    this.#book.setEips(eips);
    this.#watch(eips.size > 0);
    if (isNew) this.#list(nowMs);
    const eipsByNode = new Map<string, Set<AddressBytes>>();
    for (const { ips, successors } of told) {
      for (const node of successors) {
        const own = eipsByNode.get(node) ?? new Set();
        eipsByNode.set(node, own);
        for (const ip of ips) own.add(addressBytes(ip));
      }
    }
    for (const node of eipsByNode.keys()) {
      if (this.#outboxes.has(node)) continue;
      this.#streams += 1;
      this.#outboxes.set(node, new Outbox(this.#book, this.#streams));
    }
    for (const [node, outbox] of this.#outboxes) {
      // A node that is no more need not be told to forget.
      if (!plan.addresses.has(node)) this.#outboxes.delete(node);
      outbox.setEips(eipsByNode.get(node) ?? new Set(), (eip) => this.#owned.has(eip), nowMs);
    }
    this.#sleep();
  }

  /** A packet came from an address. */
  packet(bytes: Uint8Array, address: string): void {
    if (this.#isClosed) return;
    const unwrapped = this.#deps.envelope.unwrap(bytes);
    if (unwrapped.kind === 'nothing') return;
    const from = unwrapped.kind === 'reply' ? unwrapped.to : unwrapped.from;
    // Sealed by an agent, and sent from where that agent is.
    if (this.#plan.addresses.get(from) !== address) return;
    if (unwrapped.kind === 'reply') {
      this.#deps.send(address, unwrapped.packet);
      return;
    }
    const message = decodeMirror(unwrapped.content);
    if (message?.kind === 'ack') this.#outboxes.get(from)?.ack(message, this.#nowMs());
    else if (message !== undefined) this.#take(from, unwrapped.incarnation, message);
  }

  /**
   * Makes the connections of EIPs that this node takes over, or is about to: those that were not made before. To be called before
   * packets may leave with them. `isPrepared`: it only may take them over, and until then pods of this node go on through the owner.
   */
  takeOver(ips: readonly Ip[], isPrepared = false): void {
    this.#make(ips.map(addressBytes), isPrepared);
  }

  /**
   * EIPs are to come here by plan. From the last time that they were here, this node may remember connections that are over: pods
   * use their ports again, and packets of a new connection that began elsewhere would not fit the old one.
   */
  clear(ips: readonly Ip[]): void {
    try {
      this.#deps.connections.forgetOver(new Set(ips.map(addressBytes)));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Resolves when this node knows the connections of EIPs that are to come here by plan; at the latest when the time is over. */
  async untilWhole(ips: readonly Ip[], limitMs: number): Promise<void> {
    const awaited = ips.filter((ip) => this.#plan.awaited.includes(ip));
    const endsAtMs = this.#nowMs() + limitMs;
    while (!this.#isClosed && !this.isWhole(awaited) && this.#nowMs() < endsAtMs) await wait(this.#deps.clock, ASK_MS);
  }

  /** Whether this node knows the connections of EIPs that it is to take over. */
  isWhole(eips: readonly Ip[]): boolean {
    return eips.every((ip) => this.#inbox.isWhole(addressBytes(ip)));
  }

  stats(): MirrorStats {
    const outboxes = [...this.#outboxes.values()];
    const nowMs = this.#nowMs();
    return {
      mirrored: this.#book.size,
      held: this.#inbox.size,
      dropped: this.#book.dropped + this.#inbox.dropped,
      lagSeconds: Math.max(0, ...outboxes.map((outbox) => outbox.lagMs(nowMs))) / 1_000,
      behind: outboxes.reduce((sum, { behind }) => sum + behind, 0),
      resets: outboxes.reduce((sum, { resets }) => sum + resets, 0),
      written: this.#written,
      refused: this.#refused,
    };
  }

  /** Does nothing more. What was made in the kernel stays. */
  close(): void {
    this.#isClosed = true;
    this.#watch(false);
    this.#cancel();
    this.#answers.close();
  }

  /** Makes what was told of EIPs and is not made yet. */
  #make(eips: readonly AddressBytes[], isPrepared = false): void {
    const own = this.#plan.replyMark;
    // Of connections that are made while nobody listens, the kernel never tells the end (nf_conntrack_events 2, its default).
    this.#watch(true);
    try {
      // All at once: each call opens a socket, and a gateway node may have thousands of EIPs.
      const unmade = Iterator.from(eips).flatMap((eip) => this.#inbox.unmade(eip, isPrepared ? own : undefined));
      const { written, refused } = this.#deps.connections.put(unmade, own);
      this.#written += written;
      this.#refused += refused;
    } catch (error) {
      this.#fail(error);
    }
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #sleep(): void {
    this.#cancel();
    this.#cancel = nothing;
    const isBusy = this.#feed !== undefined || this.#outboxes.size > 0;
    if (this.#isClosed || (!isBusy && this.#inbox.size === 0)) return;
    const lookMs = this.#idleLooks < IDLE_LOOKS ? LOOK_MS : IDLE_LOOK_MS;
    const delayMs = isBusy ? lookMs : EXPIRE_MS;
    this.#dueAtMs = this.#nowMs() + delayMs;
    this.#cancel = this.#deps.clock.after(delayMs, () => this.#look());
  }

  /** Asks the kernel what has changed and tells the successors. */
  #look(): void {
    this.#deps.beforeLook();
    if (this.#isClosed) return;
    const nowMs = this.#nowMs();
    if (nowMs - this.#dueAtMs > AWAY_MS) this.#isSilentUntilMs = nowMs + RECOVERY_MS;
    this.#idleLooks += 1;
    if (nowMs >= this.#listAtMs) this.#list(nowMs);
    if (this.#feed?.receive(CHANGES_AT_ONCE, (heard) => this.#hear(heard, nowMs)) === 'lost') this.#list(nowMs);
    for (const [node, outbox] of this.#outboxes) {
      if (outbox.isDone) this.#outboxes.delete(node);
      else if (nowMs >= this.#isSilentUntilMs) this.#send(node, outbox, nowMs);
    }
    if (nowMs >= this.#expireAtMs) {
      this.#inbox.expire(nowMs);
      this.#expireAtMs = nowMs + EXPIRE_MS;
    }
    this.#sleep();
  }

  #send(node: string, outbox: Outbox, nowMs: number): void {
    for (let count = 0; count < PACKETS_AT_ONCE; count += 1) {
      const content = outbox.next(nowMs);
      if (content === undefined) return;
      this.#wrap(node, content);
    }
  }

  #hear({ kind, connection }: ConnectionEvent, nowMs: number): void {
    const { eip, key } = connection;
    const change = kind === 'open' ? this.#book.open(this.#seenFromAfar(connection)) : this.#book.close(eip, key);
    this.#changed(eip, key, change, nowMs);
  }

  #changed(eip: AddressBytes, key: ConnectionKey, change: ConnectionChange | undefined, nowMs: number): void {
    if (change === undefined) return;
    this.#idleLooks = 0;
    for (const outbox of this.#outboxes.values()) outbox.changed(eip, key, change, nowMs);
  }

  /** A pod of this node has a slot here; for any other node its packets come from this node. */
  #seenFromAfar(connection: Connection): Connection {
    const { replyMark } = this.#plan;
    const isFromHere = (connection.mark & KIND_MASK) >>> 0 === SLOT_KIND;
    return isFromHere && replyMark !== undefined ? { ...connection, mark: replyMark } : connection;
  }

  #watch(isWanted: boolean): void {
    if (!isWanted) {
      this.#feed?.close();
      this.#feed = undefined;
      this.#listAtMs = Infinity;
    } else if (this.#feed === undefined) {
      try {
        this.#feed = this.#deps.connections.watch();
      } catch (error) {
        this.#fail(error);
      }
      this.#listAtMs = this.#nowMs();
    }
  }

  /** Makes the book say what the kernel's table does. */
  #list(nowMs: number): void {
    this.#listAtMs = nowMs + LIST_MS;
    const seen = new Set<ConnectionKey>();
    try {
      this.#deps.connections.list((connection) => {
        if (!this.#book.has(connection.eip)) return;
        seen.add(connection.key);
        this.#changed(connection.eip, connection.key, this.#book.open(this.#seenFromAfar(connection)), nowMs);
      });
    } catch (error) {
      this.#fail(error);
      return;
    }
    for (const eip of this.#book.eips) {
      for (const key of this.#book.keys(eip)) {
        if (!seen.has(key)) this.#changed(eip, key, this.#book.close(eip, key), nowMs);
      }
    }
  }

  #take(node: string, incarnation: number, batch: Batch): void {
    const isOurs = (eip: AddressBytes): boolean => this.#owned.has(eip);
    const wasEmpty = this.#inbox.size === 0;
    const ack = this.#inbox.take({ node, incarnation }, batch, isOurs, this.#nowMs());
    if (wasEmpty && this.#inbox.size > 0) this.#sleep();
    if (ack !== undefined) this.#answers.add(node, ack);
  }

  #wrap(node: string, content: Buffer): void {
    const address = this.#plan.addresses.get(node);
    if (address !== undefined) this.#deps.send(address, this.#deps.envelope.wrap(node, content));
  }

  #fail(error: unknown): void {
    if (!(error instanceof EgressError)) throw error;
    this.#deps.onFailure(error);
  }
}

const nothing = (): void => {};
