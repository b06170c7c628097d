/**
 * Wire: messages as bytes, without sender and seal (src/agent/heartbeat has those). One message has one form and one form
 * is one message: what is not exactly as it would be written is refused, so nothing can be smuggled in or half read.
 *
 *   kind     1 byte, then by kind, numbers in network order:
 *   number   6 bytes (up to 2^48 - 1); flag: 1 byte, 0 or 1; name: length byte and that many ASCII characters
 *   list     count byte and that many entries; EIP: byte 4 and 4 bytes, or byte 6 and 16 bytes
 *   networks 1 for none; 0 for both families, all lost; else 2, a count byte and that many: address as an EIP, length byte, flag.
 *            Agents of older versions write and read 1 and 0 only
 */
import { type Ip, ipBytes, ipOfBytes, parseCidr, parseIp, prefixLengthOf } from '../ip/index.ts';
import { EIPS_PER_MESSAGE } from './context.ts';
import type { Holding, Message, Refusal, RequestedHolding } from './message.ts';
import type { Unreached } from './reach.ts';

/** A message, or undefined for bytes that are none. */
export type Decoded = Message | undefined;

/** The most networks in a heartbeat. */
export const NETWORKS_PER_BEAT = 16;

const kinds = [
  'beat',
  'ack',
  'claim',
  'answer',
  'release',
  'doubt',
  'offer',
  'ready',
  'notice',
  'noted',
  'promise',
] as const;
const reasons = ['held', 'soon', 'epoch', 'starting'] as const;

/** The largest number that fits. */
const LIMIT = 2 ** 48;
const WIDTH_4 = 4;
const WIDTH_6 = 16;
// No message is larger: 40 IPv6 entries of 24 bytes, a name of 253, and change.
const SIZE_LIMIT = 1_300;
const namePattern = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

/** The bytes of a message. Throws for one that the protocol does not send: more EIPs than allowed, a number out of range. */
export const encode = (message: Message): Uint8Array => {
  const writer = new MessageWriter();
  // An acknowledgement that promises nothing is what older versions know.
  const isPromise = message.kind === 'ack' && message.promisedMs !== undefined;
  writer.byte(kinds.indexOf(isPromise ? 'promise' : message.kind));
  switch (message.kind) {
    case 'beat':
      writer.number(message.sequence).networks(message.unreached);
      break;
    case 'ack':
      writer.number(message.sequence).number(message.losses);
      if (message.promisedMs !== undefined) writer.number(message.promisedMs);
      break;
    case 'claim':
      writer.number(message.sequence).number(message.generation);
      writer.list(message.wanted, ({ isOwned }) => writer.flag(isOwned));
      break;
    case 'answer':
      writer.number(message.sequence).number(message.losses).list(message.granted);
      writer.list(message.refused, ({ why }) => writer.byte(reasons.indexOf(why)));
      break;
    case 'release':
      writer.list(message.released).name(message.to ?? '');
      break;
    case 'notice':
      writer.number(message.sequence).list(message.holdings);
      break;
    case 'noted':
      writer.number(message.sequence);
      break;
    default:
      writer.list(message.holdings);
  }
  return writer.bytes();
};

/** The message that bytes stand for; undefined if they are not exactly one. */
export const decode = (bytes: Uint8Array): Decoded => {
  const reader = new Reader(bytes);
  const message = messageIn(reader);
  return reader.isDone ? message : undefined;
};

const messageIn = (reader: Reader): Decoded => {
  const kind = kinds[reader.byte()];
  switch (kind) {
    case undefined:
      return undefined;
    case 'beat':
      return { kind, sequence: reader.number(), unreached: reader.networks() };
    case 'ack':
      return { kind, sequence: reader.number(), losses: reader.number(), promisedMs: undefined };
    case 'promise':
      return { kind: 'ack', sequence: reader.number(), losses: reader.number(), promisedMs: reader.number() };
    case 'claim':
      return { kind, sequence: reader.number(), generation: reader.number(), wanted: reader.list(requestedIn) };
    case 'answer': {
      const [sequence, losses] = [reader.number(), reader.number()];
      return { kind, sequence, losses, granted: reader.list(asIs), refused: reader.list(refusalIn) };
    }
    case 'release': {
      const released = reader.list(asIs);
      return { kind, released, to: reader.name() || undefined };
    }
    case 'notice':
      return { kind, sequence: reader.number(), holdings: reader.list(asIs) };
    case 'noted':
      return { kind, sequence: reader.number() };
    default:
      return { kind, holdings: reader.list(asIs) };
  }
};

const asIs = (_: Reader, holding: Holding): Holding => holding;
const requestedIn = (reader: Reader, holding: Holding): RequestedHolding => ({ ...holding, isOwned: reader.flag() });
const refusalIn = (reader: Reader, holding: Holding): Refusal => {
  const why = reasons[reader.byte()];
  if (why === undefined) reader.refuse();
  return { ...holding, why: why ?? 'held' };
};

const wholeFamilies = ['0.0.0.0/0', '::/0'].flatMap((text) => {
  const parsed = parseCidr(text);
  return parsed.ok ? [parsed.value] : [];
});
const everything: readonly Unreached[] = wholeFamilies.map((network) => ({ network, isLost: true }));

const isEverything = (list: readonly Unreached[]): boolean =>
  list.length === everything.length &&
  list.every(({ network, isLost }, place) => isLost && network === everything[place]?.network);

const addressIn = (network: string): Ip => {
  const parsed = parseIp(network.slice(0, network.indexOf('/')));
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};

/** Writes the parts of a message one after the other. */
export class MessageWriter {
  readonly #bytes = new Uint8Array(SIZE_LIMIT);
  readonly #view = new DataView(this.#bytes.buffer);
  #size = 0;

  byte(value: number): this {
    this.#view.setUint8(this.#size, value);
    this.#size += 1;
    return this;
  }

  flag(value: boolean): this {
    return this.byte(value ? 1 : 0);
  }

  number(value: number): this {
    if (!Number.isInteger(value) || value < 0 || value >= LIMIT)
      throw new Error(`${value} does not fit into a message`);
    this.#view.setUint16(this.#size, Math.floor(value / 2 ** 32));
    this.#view.setUint32(this.#size + 2, value % 2 ** 32);
    this.#size += 6;
    return this;
  }

  /** A node name; empty for none. */
  name(value: string): this {
    this.byte(value.length);
    for (let index = 0; index < value.length; index += 1) this.byte(value.charCodeAt(index));
    return this;
  }

  list<T extends Holding>(list: readonly T[], rest?: (entry: T) => void): this {
    if (list.length > EIPS_PER_MESSAGE) throw new Error(`${list.length} EIPs do not fit into a message`);
    this.byte(list.length);
    for (const entry of list) {
      this.#eip(entry.eip);
      this.number(entry.epoch);
      rest?.(entry);
    }
    return this;
  }

  networks(list: readonly Unreached[]): this {
    if (list.length > NETWORKS_PER_BEAT) throw new Error(`${list.length} networks do not fit into a heartbeat`);
    if (list.length === 0) return this.byte(1);
    if (isEverything(list)) return this.byte(0);
    this.byte(2).byte(list.length);
    for (const { network, isLost } of list) {
      this.#eip(addressIn(network)).byte(prefixLengthOf(network)).flag(isLost);
    }
    return this;
  }

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#size);
  }

  #eip(eip: Ip): this {
    const bytes = ipBytes(eip);
    this.byte(bytes.length === WIDTH_4 ? 4 : 6);
    this.#bytes.set(bytes, this.#size);
    this.#size += bytes.length;
    return this;
  }
}

/** Reads the parts of a message. After anything that is not allowed it reads zeros and is never done. */
export class Reader {
  readonly #view: DataView;
  #place = 0;
  #isRefused = false;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.byteLength > SIZE_LIMIT) this.refuse();
  }

  /** True when all bytes were read and all were allowed. */
  get isDone(): boolean {
    return !this.#isRefused && this.#place === this.#view.byteLength;
  }

  /** How many bytes were read; undefined after anything that is not allowed. */
  get place(): number | undefined {
    return this.#isRefused ? undefined : this.#place;
  }

  refuse(): void {
    this.#isRefused = true;
  }

  byte(): number {
    if (!this.#has(1)) return 0;
    this.#place += 1;
    return this.#view.getUint8(this.#place - 1);
  }

  flag(): boolean {
    const value = this.byte();
    if (value > 1) this.refuse();
    return value === 1;
  }

  number(): number {
    if (!this.#has(6)) return 0;
    this.#place += 6;
    return this.#view.getUint16(this.#place - 6) * 2 ** 32 + this.#view.getUint32(this.#place - 4);
  }

  name(): string {
    const length = this.byte();
    let name = '';
    for (let index = 0; index < length && !this.#isRefused; index += 1) name += String.fromCharCode(this.byte());
    if (length > 253 || (length > 0 && !namePattern.test(name))) this.refuse();
    return name;
  }

  list<T>(entryOf: (reader: Reader, holding: Holding) => T): T[] {
    const count = this.byte();
    if (count > EIPS_PER_MESSAGE) this.refuse();
    const list: T[] = [];
    for (let index = 0; index < count && !this.#isRefused; index += 1) {
      const eip = this.#eip();
      if (eip !== undefined) list.push(entryOf(this, { eip, epoch: this.number() }));
    }
    return list;
  }

  networks(): readonly Unreached[] {
    const form = this.byte();
    if (form === 1) return [];
    if (form === 0) return everything;
    const count = this.byte();
    if (form !== 2 || count === 0 || count > NETWORKS_PER_BEAT) this.refuse();
    const list: Unreached[] = [];
    for (let index = 0; index < count && !this.#isRefused; index += 1) {
      const [address, length, isLost] = [this.#eip(), this.byte(), this.flag()];
      const network = parseCidr(`${address}/${length}`);
      if (network.ok) list.push({ network: network.value, isLost });
      else this.refuse();
    }
    // It has another form.
    if (isEverything(list)) this.refuse();
    return list;
  }

  #eip(): Ip | undefined {
    const family = this.byte();
    const width = family === 4 ? WIDTH_4 : WIDTH_6;
    if ((family !== 4 && family !== 6) || !this.#has(width)) {
      this.refuse();
      return undefined;
    }
    const eip = ipOfBytes(new Uint8Array(this.#view.buffer, this.#view.byteOffset + this.#place, width));
    this.#place += width;
    if (eip === undefined) this.refuse();
    return eip;
  }

  #has(count: number): boolean {
    if (this.#isRefused || this.#place + count > this.#view.byteLength) this.refuse();
    return !this.#isRefused;
  }
}
