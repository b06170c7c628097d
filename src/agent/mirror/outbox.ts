/**
 * Outbox brings a successor to know what the book knows, over a way that loses, doubles and reorders packets. It sends how
 * connections stand, never how they changed, so that what is lost is simply told anew, as it stands by then:
 *
 *   waiting   names of connections about which the successor may be wrong
 *   flying    packets that were sent and are not answered; lost ones put their names back
 *   whole     when all connections of an EIP were told and answered, the successor is told to forget the others
 *
 * Pure: time comes in, packets come out. Memory is bounded by the book, because names wait once.
 */
import type { AddressBytes, ConnectionKey } from '../../dataplane/conntrack/connection.ts';
import type { ConnectionChange, ConnectionTable } from './connection-table.ts';
import { BatchWriter, type MirrorAck } from './message.ts';

/** Packets that may be under way at once. */
const WINDOW = 64;
/** A packet that is not answered for this long is taken for lost; a later one that is answered says so sooner. */
export const RETRY_MS = 200;
/** A successor that has not answered for this long is away: it is told everything when it is back. */
export const AWAY_MS = 3_000;
/** How often a successor is asked whether it is there: one that does not answer, and one that there is nothing to tell. */
export const KNOCK_MS = 100;
export const IDLE_MS = 1_000;

/** How far the successor is about an EIP. `waiting`: it has to be there first. */
interface EipProgress {
  readonly stage: 'waiting' | 'telling' | 'closing' | 'whole' | 'dropping';
  /** The number of the packet from which on everything is told; for `dropping`, from which on that was said. */
  readonly since: number;
  /** Names of this EIP that were put up to be told and are not answered yet. */
  left: number;
}

interface Name {
  readonly key: ConnectionKey;
  readonly eip: AddressBytes;
  /** Part of telling everything, and not of a change alone. */
  isOfWhole: boolean;
  /** The successor has never heard of it, so that nothing has to be said if it is over by then. */
  isUnheard: boolean;
  readonly sinceMs: number;
}

interface Flight {
  readonly sentAtMs: number;
  readonly names: readonly Name[];
  readonly wholes: readonly AddressBytes[];
}

export class Outbox {
  readonly #book: ConnectionTable;
  readonly #stream: number;
  readonly #progress = new Map<AddressBytes, EipProgress>();
  /** EIPs of which the successor is to forget what it was not told, and which no packet under way says. */
  readonly #ending = new Set<AddressBytes>();
  /** By EIP and key: a connection may be over and begin again with another EIP. */
  readonly #waiting = new Map<string, Name>();
  readonly #flying = new Map<number, Flight>();
  #number = 0;
  #instance: number | undefined;
  #answeredAtMs = -Infinity;
  #sentAtMs = -Infinity;
  #awayResets = 0;

  constructor(book: ConnectionTable, stream: number) {
    this.#book = book;
    this.#stream = stream;
  }

  /** Whether the successor knows all connections of an EIP, but for the last changes. */
  isWhole(eip: AddressBytes): boolean {
    return this.#progress.get(eip)?.stage === 'whole';
  }

  /** Of how many EIPs the successor does not know all connections yet. */
  get behind(): number {
    return this.#progress.values().reduce((count, { stage }) => count + (stage === 'whole' ? 0 : 1), 0);
  }

  /** How often everything had to be told anew because the successor was away or had forgotten. */
  get resets(): number {
    return this.#awayResets;
  }

  /** The age of the oldest change that the successor has not answered; zero when there is none. */
  lagMs(nowMs: number): number {
    let oldestMs = nowMs;
    for (const { sinceMs } of this.#waiting.values()) {
      oldestMs = Math.min(oldestMs, sinceMs);
      break;
    }
    for (const { names } of this.#flying.values()) {
      for (const { sinceMs } of names) oldestMs = Math.min(oldestMs, sinceMs);
    }
    return nowMs - oldestMs;
  }

  /** Nothing is left to say, so that it can be forgotten. */
  get isDone(): boolean {
    return this.#progress.size === 0;
  }

  /**
   * The EIPs to tell about. `isOwned` says of others whether they are still ours: then the successor is told to forget them; else
   * their new owner will tell it.
   */
  setEips(eips: ReadonlySet<AddressBytes>, isOwned: (eip: AddressBytes) => boolean, nowMs: number): void {
    for (const [eip, { stage }] of [...this.#progress]) {
      if (eips.has(eip)) continue;
      if (!isOwned(eip)) this.#progress.delete(eip);
      else if (stage !== 'dropping') this.#end(eip, { stage: 'dropping', since: this.#number + 1, left: 0 });
    }
    for (const eip of eips) {
      const stage = this.#progress.get(eip)?.stage;
      if (stage === undefined || stage === 'dropping') this.#tell(eip, nowMs);
    }
  }

  /** A connection has come, gone or changed. */
  changed(eip: AddressBytes, key: ConnectionKey, change: ConnectionChange, nowMs: number): void {
    const stage = this.#progress.get(eip)?.stage;
    if (stage === undefined || stage === 'waiting' || stage === 'dropping') return;
    const id = eip + key;
    const waits = this.#waiting.get(id);
    if (waits === undefined) {
      this.#waiting.set(id, { key, eip, isOfWhole: false, isUnheard: change === 'new', sinceMs: nowMs });
    } else if (change === 'gone' && waits.isUnheard) {
      this.#waiting.delete(id);
    }
  }

  /** The next packet; undefined when there is none now. */
  next(nowMs: number): Buffer | undefined {
    if (!this.#isThere(nowMs)) {
      this.#reset();
      return nowMs - this.#sentAtMs < KNOCK_MS ? undefined : this.#send(nowMs);
    }
    for (const [number, { sentAtMs }] of this.#flying) if (nowMs - sentAtMs >= RETRY_MS) this.#lose(number);
    if (this.#flying.size >= WINDOW) return undefined;
    const writer = new BatchWriter(this.#stream, this.#number + 1);
    const wholes = this.#writeWholes(writer);
    const names = this.#writeNames(writer);
    const quietMs = this.#answeredAtMs >= this.#sentAtMs ? IDLE_MS : KNOCK_MS;
    if (writer.isEmpty && nowMs - this.#sentAtMs < quietMs) return undefined;
    this.#flying.set(this.#number + 1, { sentAtMs: nowMs, names, wholes });
    return this.#send(nowMs, writer);
  }

  /** The successor has answered. */
  ack({ stream, instance, highest, seen }: MirrorAck, nowMs: number): void {
    if (stream !== this.#stream) return;
    this.#answeredAtMs = nowMs;
    if (instance !== this.#instance) {
      this.#reset();
      this.#instance = instance;
      for (const [eip, progress] of [...this.#progress]) {
        if (progress.stage === 'dropping') this.#ending.add(eip);
        else this.#tell(eip, nowMs);
      }
      return;
    }
    for (const number of [...this.#flying.keys()]) {
      const behind = highest - number;
      if (behind < 0) continue;
      const isGot = behind === 0 || (behind <= 32 && ((seen >>> (behind - 1)) & 1) === 1);
      if (isGot) this.#land(number);
      else this.#lose(number);
    }
  }

  #isThere(nowMs: number): boolean {
    return this.#instance !== undefined && nowMs - this.#answeredAtMs < AWAY_MS;
  }

  /** Puts all connections of an EIP up to be told. */
  #tell(eip: AddressBytes, nowMs: number): void {
    if (this.#instance === undefined) {
      this.#progress.set(eip, { stage: 'waiting', since: 0, left: 0 });
      return;
    }
    const progress = { stage: 'telling' as const, since: this.#number + 1, left: 0 };
    for (const key of this.#book.keys(eip)) {
      progress.left += 1;
      const sinceMs = this.#waiting.get(eip + key)?.sinceMs ?? nowMs;
      this.#waiting.set(eip + key, { key, eip, isOfWhole: true, isUnheard: false, sinceMs });
    }
    if (progress.left === 0) this.#end(eip, { ...progress, stage: 'closing' });
    else this.#progress.set(eip, progress);
  }

  #reset(): void {
    if (this.#instance === undefined) return;
    this.#instance = undefined;
    this.#awayResets += 1;
    this.#waiting.clear();
    this.#flying.clear();
    this.#ending.clear();
    for (const [eip, { stage }] of [...this.#progress]) {
      if (stage !== 'dropping') this.#progress.set(eip, { stage: 'waiting', since: 0, left: 0 });
    }
  }

  #writeWholes(writer: BatchWriter): AddressBytes[] {
    const wholes: AddressBytes[] = [];
    for (const eip of this.#ending) {
      const { stage, since } = this.#progress.get(eip) ?? { stage: 'waiting', since: 0 };
      if (stage === 'closing' || stage === 'dropping') {
        if (!writer.whole(eip, stage === 'dropping' ? this.#number + 1 : since)) break;
        wholes.push(eip);
      }
      this.#ending.delete(eip);
    }
    return wholes;
  }

  #writeNames(writer: BatchWriter): Name[] {
    const names: Name[] = [];
    for (const [id, name] of this.#waiting) {
      const { key, eip } = name;
      const stage = this.#progress.get(eip)?.stage;
      const connection = this.#book.get(eip, key);
      if (stage !== undefined && stage !== 'dropping') {
        const fits = connection === undefined ? writer.closed(eip, key) : writer.open(eip, connection);
        if (!fits) break;
        names.push(name);
      }
      this.#waiting.delete(id);
    }
    return names;
  }

  #send(nowMs: number, writer = new BatchWriter(this.#stream, this.#number + 1)): Buffer {
    this.#number += 1;
    this.#sentAtMs = nowMs;
    return writer.bytes();
  }

  #end(eip: AddressBytes, progress: EipProgress): void {
    this.#progress.set(eip, progress);
    this.#ending.add(eip);
  }

  /** A packet was answered. */
  #land(number: number): void {
    const flight = this.#flying.get(number);
    this.#flying.delete(number);
    for (const { eip, isOfWhole } of flight?.names ?? []) {
      const progress = this.#progress.get(eip);
      // A name of an earlier telling does not count for the present one.
      if (!isOfWhole || progress?.stage !== 'telling' || number < progress.since) continue;
      progress.left -= 1;
      if (progress.left === 0) this.#end(eip, { ...progress, stage: 'closing' });
    }
    for (const eip of flight?.wholes ?? []) {
      const progress = this.#progress.get(eip);
      // What was sent before the present stage began is no answer to it.
      if (progress === undefined || number < progress.since) continue;
      if (progress.stage === 'dropping') this.#progress.delete(eip);
      else if (progress.stage === 'closing') this.#progress.set(eip, { ...progress, stage: 'whole' });
    }
  }

  /** A packet was lost: its names are told anew, as their connections stand by then. */
  #lose(number: number): void {
    const flight = this.#flying.get(number);
    this.#flying.delete(number);
    for (const name of flight?.names ?? []) {
      const progress = this.#progress.get(name.eip);
      const isOfWhole = name.isOfWhole && progress?.stage === 'telling' && number >= progress.since;
      const waits = this.#waiting.get(name.eip + name.key);
      if (waits === undefined) this.#waiting.set(name.eip + name.key, { ...name, isOfWhole, isUnheard: false });
      else {
        waits.isOfWhole ||= isOfWhole;
        waits.isUnheard = false;
      }
    }
    for (const eip of flight?.wholes ?? []) this.#ending.add(eip);
  }
}
