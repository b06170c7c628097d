/**
 * What owners of EIPs and their successors say to each other about connections, and its bytes. A record is about one connection
 * and says how it stands, not how it changed: records may be repeated and the last one counts.
 *
 *   batch   kind, 6 stream, 6 number, then parts: 1 kind, 1 width, the EIP, and
 *             open     1 count, then key, 2 port of the EIP, 4 mark of each
 *             closed   1 count, then key of each
 *             whole    6 number
 *   ack     kind, 6 stream, 6 instance, 6 highest, 4 seen
 */
import { type AddressBytes, addressIn, type ConnectionKey, keyIn } from '../../dataplane/conntrack/connection.ts';

export type MirrorMessage = Batch | MirrorAck;

/** From the owner: records, or none to ask whether somebody is there. */
export interface Batch {
  readonly kind: 'batch';
  /** Which run of packets it belongs to; a later one of the same sender is higher. */
  readonly stream: number;
  /** Its place in the stream. */
  readonly number: number;
  readonly parts: readonly MirrorRecord[];
}

export type MirrorRecord =
  | { readonly kind: 'open'; readonly eip: AddressBytes; readonly connections: readonly Carried[] }
  | { readonly kind: 'closed'; readonly eip: AddressBytes; readonly keys: readonly ConnectionKey[] }
  /** All connections of the EIP were told in packets from this number on: any other is over. */
  | { readonly kind: 'whole'; readonly eip: AddressBytes; readonly since: number };

/** A connection of an EIP. */
export interface Carried {
  readonly key: ConnectionKey;
  readonly port: number;
  readonly mark: number;
}

/** From the successor: what it has got. */
export interface MirrorAck {
  readonly kind: 'ack';
  readonly stream: number;
  /** Another one than before means that the successor has forgotten everything. */
  readonly instance: number;
  /** The highest number that it has got. */
  readonly highest: number;
  /** Bit n: it has got `highest - 1 - n` too. What it has not got it will never take. */
  readonly seen: number;
}

/** Bytes of a message at the most: with sender and seal it fits into a packet through any tunnel. */
export const SIZE_LIMIT = 1_000;
const HEAD_BYTES = 13;
const kinds = { batch: 1, ack: 2 } as const;
const recordKinds = ['open', 'closed', 'whole'] as const;

/** Puts records together until no more fit. */
export class BatchWriter {
  readonly #bytes = Buffer.alloc(SIZE_LIMIT);
  #size = HEAD_BYTES;
  #part: { readonly kind: MirrorRecord['kind']; readonly eip: AddressBytes; readonly at: number } | undefined;

  constructor(stream: number, number: number) {
    this.#bytes[0] = kinds.batch;
    this.#bytes.writeUIntBE(stream, 1, 6);
    this.#bytes.writeUIntBE(number, 7, 6);
  }

  get isEmpty(): boolean {
    return this.#size === HEAD_BYTES;
  }

  /** False when it does not fit any more. */
  open(eip: AddressBytes, { key, port, mark }: Carried): boolean {
    if (!this.#begin('open', eip, key.length + 6)) return false;
    this.#text(key);
    this.#size = this.#bytes.writeUInt16BE(port, this.#size);
    this.#size = this.#bytes.writeUInt32BE(mark, this.#size);
    return true;
  }

  /** False when it does not fit any more. */
  closed(eip: AddressBytes, key: ConnectionKey): boolean {
    if (!this.#begin('closed', eip, key.length)) return false;
    this.#text(key);
    return true;
  }

  /** False when it does not fit any more. */
  whole(eip: AddressBytes, since: number): boolean {
    this.#part = undefined;
    if (!this.#begin('whole', eip, 6)) return false;
    this.#part = undefined;
    this.#size -= 1;
    this.#size = this.#bytes.writeUIntBE(since, this.#size, 6);
    return true;
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  #begin(kind: MirrorRecord['kind'], eip: AddressBytes, bytes: number): boolean {
    const part = this.#part;
    const goesOn = part?.kind === kind && part.eip === eip && (this.#bytes[part.at] ?? 0) < 255;
    const head = goesOn ? 0 : 3 + eip.length;
    if (this.#size + head + bytes > SIZE_LIMIT) return false;
    if (!goesOn) {
      this.#size = this.#bytes.writeUInt8(recordKinds.indexOf(kind), this.#size);
      this.#size = this.#bytes.writeUInt8(eip.length, this.#size);
      this.#text(eip);
      this.#part = { kind, eip, at: this.#size };
      this.#size = this.#bytes.writeUInt8(0, this.#size);
    }
    const at = this.#part?.at ?? 0;
    this.#bytes[at] = (this.#bytes[at] ?? 0) + 1;
    return true;
  }

  #text(text: string): void {
    this.#size += this.#bytes.write(text, this.#size, 'latin1');
  }
}

/** The bytes of an answer. */
export const encodeAck = ({ stream, instance, highest, seen }: Omit<MirrorAck, 'kind'>): Buffer => {
  const bytes = Buffer.alloc(23);
  bytes[0] = kinds.ack;
  bytes.writeUIntBE(stream, 1, 6);
  bytes.writeUIntBE(instance, 7, 6);
  bytes.writeUIntBE(highest, 13, 6);
  bytes.writeUInt32BE(seen >>> 0, 19);
  return bytes;
};

/** The message that bytes stand for; undefined if they are not exactly one. */
export const decodeMirror = (content: Uint8Array): MirrorMessage | undefined => {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  if (bytes.length < HEAD_BYTES || bytes.length > SIZE_LIMIT) return undefined;
  const [stream, number] = [bytes.readUIntBE(1, 6), bytes.readUIntBE(7, 6)];
  if (bytes[0] === kinds.ack && bytes.length === 23) {
    return { kind: 'ack', stream, instance: number, highest: bytes.readUIntBE(13, 6), seen: bytes.readUInt32BE(19) };
  }
  if (bytes[0] !== kinds.batch) return undefined;
  const parts: MirrorRecord[] = [];
  for (let at = HEAD_BYTES; at < bytes.length; ) {
    const read = recordAt(bytes, at);
    if (read === undefined) return undefined;
    parts.push(read.part);
    at = read.end;
  }
  return { kind: 'batch', stream, number, parts };
};

const recordAt = (bytes: Buffer, start: number): { readonly part: MirrorRecord; readonly end: number } | undefined => {
  const kind = recordKinds[bytes[start] ?? -1];
  const width = bytes[start + 1];
  if (kind === undefined || (width !== 4 && width !== 16)) return undefined;
  const at = start + 2 + width;
  if (at >= bytes.length) return undefined;
  const eip = addressIn(bytes, start + 2, width);
  if (kind === 'whole') {
    return at + 6 > bytes.length ? undefined : { part: { kind, eip, since: bytes.readUIntBE(at, 6) }, end: at + 6 };
  }
  const keyBytes = 5 + 2 * width;
  const size = keyBytes + (kind === 'open' ? 6 : 0);
  const count = bytes[at] ?? 0;
  const first = at + 1;
  const end = first + count * size;
  if (end > bytes.length) return undefined;
  const connections: Carried[] = [];
  for (let place = first; place < end; place += size) {
    const key = keyIn(bytes.subarray(place, place + keyBytes));
    if (key === undefined) return undefined;
    const rest = place + keyBytes;
    const isOpen = kind === 'open';
    connections.push({
      key,
      port: isOpen ? bytes.readUInt16BE(rest) : 0,
      mark: isOpen ? bytes.readUInt32BE(rest + 2) : 0,
    });
  }
  if (kind === 'open') return { part: { kind, eip, connections }, end };
  return { part: { kind, eip, keys: connections.map(({ key }) => key) }, end };
};
