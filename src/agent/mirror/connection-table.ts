/**
 * ConnectionTable is what the owner of EIPs knows about their connections: as the kernel told it, by EIP. It has a limit, because the number of
 * connections is up to pods and the memory of a node is not.
 */
import type { AddressBytes, Connection, ConnectionKey } from '../../dataplane/conntrack/connection.ts';
import type { Carried } from './message.ts';

/** What happened to a connection: the book did not know it, knew it otherwise, or knows it no longer. */
export type ConnectionChange = 'new' | 'other' | 'gone';

/** Port and mark as one number, because a number in a map is small: port x 2^32 + mark. */
type Packed = number;

const SHIFT = 2 ** 32;
const pack = (port: number, mark: number): Packed => port * SHIFT + mark;
const unpack = (key: ConnectionKey, packed: Packed): Carried => ({
  key,
  port: Math.floor(packed / SHIFT),
  mark: packed % SHIFT,
});

export class ConnectionTable {
  readonly #limit: number;
  readonly #pages = new Map<AddressBytes, Map<ConnectionKey, Packed>>();
  #size = 0;
  /** Connections that found no room. */
  #dropped = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#size;
  }

  get dropped(): number {
    return this.#dropped;
  }

  get eips(): Iterable<AddressBytes> {
    return this.#pages.keys();
  }

  /** The EIPs that there are pages for, and no others. */
  setEips(eips: ReadonlySet<AddressBytes>): void {
    for (const [eip, page] of this.#pages) {
      if (eips.has(eip)) continue;
      this.#size -= page.size;
      this.#pages.delete(eip);
    }
    for (const eip of eips) if (!this.#pages.has(eip)) this.#pages.set(eip, new Map());
  }

  has(eip: AddressBytes): boolean {
    return this.#pages.has(eip);
  }

  /** Notes an open connection; undefined if that is no news. */
  open({ key, eip, eipPort, mark }: Connection): ConnectionChange | undefined {
    const page = this.#pages.get(eip);
    if (page === undefined) return undefined;
    const packed = pack(eipPort, mark);
    const known = page.get(key);
    if (known === packed) return undefined;
    if (known === undefined) {
      if (this.#size >= this.#limit) {
        this.#dropped += 1;
        return undefined;
      }
      this.#size += 1;
    }
    page.set(key, packed);
    return known === undefined ? 'new' : 'other';
  }

  /** Notes that a connection is over; undefined if that is no news. */
  close(eip: AddressBytes, key: ConnectionKey): ConnectionChange | undefined {
    if (this.#pages.get(eip)?.delete(key) !== true) return undefined;
    this.#size -= 1;
    return 'gone';
  }

  /** A connection as it stands; undefined when it is over. */
  get(eip: AddressBytes, key: ConnectionKey): Carried | undefined {
    const packed = this.#pages.get(eip)?.get(key);
    return packed === undefined ? undefined : unpack(key, packed);
  }

  /** The names of the connections of an EIP. */
  keys(eip: AddressBytes): Iterable<ConnectionKey> {
    return this.#pages.get(eip)?.keys() ?? [];
  }
}
