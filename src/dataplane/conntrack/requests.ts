/** Requests to the connection table: list, get, create, delete. */
import { aligned, flags, HEADER_BYTES, NESTED, NETFILTER_BYTES } from '../netlink/message.ts';
import { type Connection, type ConnectionKey, protocolOf, protocols, widthOf } from './connection.ts';
import { attributes, messages, status, tcpStates, tuple, WORTHY } from './ctnetlink.ts';

const LIST = flags.request | flags.dump;
const CREATE_ONLY = flags.request | flags.create | flags.exclusive;
const AF_INET = 2;
const AF_INET6 = 10;

/** The window of sequence numbers is not looked at: it has moved on since the connection was copied. */
const BE_LIBERAL = 0x08;

/** More than any one request takes. */
export const REQUEST_BYTES = 512;

/** Writes requests, one behind the other. */
export class Requests {
  readonly #bytes: Buffer;
  #size = 0;

  constructor(roomBytes: number) {
    this.#bytes = Buffer.alloc(roomBytes);
  }

  get size(): number {
    return this.#size;
  }

  /** What was written; good until the next `clear`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  clear(): void {
    this.#size = 0;
  }

  /** Asks for every connection with these bits of the mark that is worth carrying on. */
  list(sequence: number, { mark, mask }: { readonly mark: number; readonly mask: number }): void {
    this.#message(messages.get, LIST, sequence, 0, () => {
      this.#number32(attributes.mark, mark);
      this.#number32(attributes.markMask, mask);
      // Kernels before 6.0 do not know it and tell more, which is left out when it is read.
      this.#number32(attributes.status, WORTHY);
      this.#number32(attributes.statusMask, WORTHY);
    });
  }

  /** Asks for every connection with these bits of the mark. */
  listAll(sequence: number, { mark, mask }: { readonly mark: number; readonly mask: number }): void {
    this.#message(messages.get, LIST, sequence, 0, () => {
      this.#number32(attributes.mark, mark);
      this.#number32(attributes.markMask, mask);
    });
  }

  /** Asks for one connection. */
  get(sequence: number, key: ConnectionKey): void {
    this.#message(messages.get, flags.request, sequence, familyOf(key), () =>
      this.#tuple(attributes.original, key, false),
    );
  }

  delete(sequence: number, key: ConnectionKey): void {
    this.#message(messages.delete, flags.request, sequence, familyOf(key), () =>
      this.#tuple(attributes.original, key, false),
    );
  }

  /** Deletes the connection, whatever its name, whose replies would be those of this one. */
  deleteByReplies(sequence: number, { key, eip, eipPort }: Connection): void {
    const [width, port] = [widthOf(key), String.fromCharCode(eipPort >>> 8, eipPort & 0xff)];
    // As if the EIP were the pod: the replies of such a connection are the ones that are meant.
    const outward = (key.slice(0, 1) + port + key.slice(3, 5) + eip + key.slice(5 + width)) as ConnectionKey;
    this.#message(messages.delete, flags.request, sequence, familyOf(key), () =>
      this.#tuple(attributes.reply, outward, true),
    );
  }

  /** Deletes a connection by its original direction, as the kernel had written it. */
  deleteRaw(sequence: number, family: number, original: Buffer): void {
    this.#message(messages.delete, flags.request, sequence, family, () => this.#raw(original));
  }

  /** Gives a connection another mark. */
  markRaw(sequence: number, family: number, original: Buffer, mark: number): void {
    this.#message(messages.new, flags.request, sequence, family, () => {
      this.#raw(original);
      this.#number32(attributes.mark, mark);
    });
  }

  #raw(attribute: Buffer): void {
    this.#bytes.fill(0, this.#size, this.#size + aligned(attribute.length));
    attribute.copy(this.#bytes, this.#size);
    this.#size += aligned(attribute.length);
  }

  /** Makes a connection as if its packets had come through here; refused if there is one of that name. */
  create(sequence: number, { key, eip, eipPort, mark }: Connection, timeoutSeconds: number): void {
    this.#create(sequence, key, mark, timeoutSeconds, () =>
      this.#nested(attributes.sourceTranslation, () => {
        const [least, most] = eip.length === 4 ? [1, 2] : [4, 5];
        this.#text(least, eip);
        this.#text(most, eip);
        this.#nested(3, () => {
          this.#number16(1, eipPort);
          this.#number16(2, eipPort);
        });
      }),
    );
  }

  /** Makes a connection that keeps its source, as those that another node translates; refused if there is one of that name. */
  createKept(sequence: number, { key, mark }: Pick<Connection, 'key' | 'mark'>, timeoutSeconds: number): void {
    this.#create(sequence, key, mark, timeoutSeconds, () => {});
  }

  #create(sequence: number, key: ConnectionKey, mark: number, timeoutSeconds: number, translation: () => void): void {
    this.#message(messages.new, CREATE_ONLY, sequence, familyOf(key), () => {
      this.#tuple(attributes.original, key, false);
      // Replies as they would come without translation: the kernel turns them round itself and notes that it translates.
      this.#tuple(attributes.reply, key, true);
      translation();
      this.#number32(attributes.status, status.confirmed | status.assured | status.seenReply);
      this.#number32(attributes.timeout, timeoutSeconds);
      this.#number32(attributes.mark, mark);
      if (protocolOf(key) === protocols.tcp) this.#tcp();
    });
  }

  /** Makes a TCP connection open again that is there, without a look at its sequence numbers: it has gone on elsewhere. */
  reopen(sequence: number, key: ConnectionKey, timeoutSeconds: number): void {
    this.#message(messages.new, flags.request, sequence, familyOf(key), () => {
      this.#tuple(attributes.original, key, false);
      this.#number32(attributes.timeout, timeoutSeconds);
      this.#tcp();
    });
  }

  #tcp(): void {
    this.#nested(attributes.protocolInfo, () =>
      this.#nested(1, () => {
        this.#text(1, String.fromCharCode(tcpStates.established));
        for (const direction of [4, 5]) this.#text(direction, String.fromCharCode(BE_LIBERAL, BE_LIBERAL));
      }),
    );
  }

  #tuple(at: number, key: ConnectionKey, isReply: boolean): void {
    const width = widthOf(key);
    const [source, destination] = width === 4 ? [1, 2] : [3, 4];
    const [first, second] = [key.slice(5, 5 + width), key.slice(5 + width)];
    this.#nested(at, () => {
      this.#nested(tuple.addresses, () => {
        this.#text(source, isReply ? second : first);
        this.#text(destination, isReply ? first : second);
      });
      this.#nested(tuple.protocol, () => {
        this.#text(1, key.slice(0, 1));
        this.#text(2, isReply ? key.slice(3, 5) : key.slice(1, 3));
        this.#text(3, isReply ? key.slice(1, 3) : key.slice(3, 5));
      });
    });
  }

  #message(kind: number, wanted: number, sequence: number, family: number, body: () => void): void {
    const start = this.#size;
    this.#bytes.fill(0, start, start + NETFILTER_BYTES);
    this.#bytes.writeUInt16LE(kind, start + 4);
    this.#bytes.writeUInt16LE(wanted, start + 6);
    this.#bytes.writeUInt32LE(sequence, start + 8);
    this.#bytes[start + HEADER_BYTES] = family;
    this.#size += NETFILTER_BYTES;
    body();
    this.#bytes.writeUInt32LE(this.#size - start, start);
  }

  #nested(kind: number, body: () => void): void {
    const start = this.#size;
    this.#size += 4;
    body();
    this.#head(start, NESTED | kind, this.#size - start);
  }

  #text(kind: number, value: string): void {
    const start = this.#size;
    this.#bytes.fill(0, start + 4, start + 4 + aligned(value.length));
    this.#bytes.write(value, start + 4, 'latin1');
    this.#size += aligned(4 + value.length);
    this.#head(start, kind, 4 + value.length);
  }

  #number16(kind: number, value: number): void {
    this.#text(kind, String.fromCharCode(value >>> 8, value & 0xff));
  }

  #number32(kind: number, value: number): void {
    this.#bytes.writeUInt32BE(value >>> 0, this.#size + 4);
    this.#head(this.#size, kind, 8);
    this.#size += 8;
  }

  #head(start: number, kind: number, length: number): void {
    this.#bytes.writeUInt16LE(length, start);
    this.#bytes.writeUInt16LE(kind, start + 2);
  }
}

const familyOf = (key: ConnectionKey): number => (widthOf(key) === 4 ? AF_INET : AF_INET6);
