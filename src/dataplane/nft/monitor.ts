/**
 * Who changed our table. The kernel tells each transaction of nftables, of every program, as messages for what changed
 * and one that ends it. Most concern the tables of others, such as the one of kube-proxy: for those only a few bytes of
 * each message are looked at.
 */
import { eachAttribute, eachMessage, HEADER_BYTES, NETFILTER_BYTES } from '../netlink/message.ts';
import type { Timers } from '../timers.ts';
import type { OpenChangeFeed } from './change-feed.ts';
import { SEAL, SIGNATURES, TABLE } from './stored.ts';

/** A change of our table by others. */
export interface ForeignChange {
  /** The program that made it, or why that is not known. */
  readonly who: string;
  /** True if it changed more than elements. */
  readonly concernsChains: boolean;
}

// A repair must be done within a second. Ten reads of an empty socket take well under a millisecond.
const READ_EVERY_MS = 100;

/** Calls back for changes of our table that do not carry one of our signatures. Resolves when the signal is aborted. */
export const watchTable = async (deps: {
  readonly openChangeFeed: OpenChangeFeed;
  readonly clock: Timers;
  readonly isOwn: (signature: number) => boolean;
  readonly onForeign: (change: ForeignChange) => void;
  readonly signal: AbortSignal;
}): Promise<void> => {
  const { clock, onForeign, signal } = deps;
  if (signal.aborted) return;
  const feed = deps.openChangeFeed();
  const reader = new TransactionReader(deps.isOwn);
  await new Promise<void>((resolve) => {
    const read = (): void => {
      const messages = feed.receive();
      const change = messages === 'lost' ? reader.restart() : reader.read(messages);
      cancel = clock.after(READ_EVERY_MS, read);
      if (change !== undefined) onForeign(change);
    };
    let cancel = clock.after(READ_EVERY_MS, read);
    const stop = (): void => {
      cancel();
      feed.close();
      resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
  });
};

// From linux/netfilter/nfnetlink.h and nf_tables.h.
const NFNL_SUBSYS_NFTABLES = 10;
const NFPROTO_INET = 1;
const NFT_MSG_NEWSETELEM = 12;
const NFT_MSG_DELSETELEM = 14;
const NFT_MSG_NEWGEN = 15;
const NFTA_TABLE = 1;
const NFTA_SET_ELEM_LIST_SET = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
const NFTA_LIST_ELEM = 1;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_DATA_VALUE = 1;
const NFTA_GEN_PROC_PID = 2;
const NFTA_GEN_PROC_NAME = 3;

/** Cuts messages into transactions and finds those of others that concern our table. */
export class TransactionReader {
  readonly #isOwn: (signature: number) => boolean;
  /** What the transaction that is being read has done so far; undefined while it is about other tables. */
  #change: { isSigned: boolean; concernsChains: boolean } | undefined;

  constructor(isOwn: (signature: number) => boolean) {
    this.#isOwn = isOwn;
  }

  /** The changes by others in these messages, as one; undefined when there was none. */
  read(packets: readonly Buffer[]): ForeignChange | undefined {
    let found: ForeignChange | undefined;
    for (const packet of packets) {
      eachMessage(packet, ({ start, end }) => {
        if (end - start < NETFILTER_BYTES) return;
        const change = this.#readMessage(packet.subarray(start, end));
        if (change === undefined) return;
        found = { who: change.who, concernsChains: change.concernsChains || found?.concernsChains === true };
      });
    }
    return found;
  }

  /** Begins anew after messages were lost. */
  restart(): ForeignChange {
    this.#change = undefined;
    return { who: 'unknown, because the kernel could not tell all changes', concernsChains: false };
  }

  #readMessage(message: Buffer): ForeignChange | undefined {
    const type = message.readUInt16LE(4);
    if (type >>> 8 !== NFNL_SUBSYS_NFTABLES) return undefined;
    const kind = type & 0xff;
    if (kind === NFT_MSG_NEWGEN) {
      const change = this.#change;
      this.#change = undefined;
      if (change === undefined || change.isSigned) return undefined;
      return { who: writerOf(message), concernsChains: change.concernsChains };
    }
    if (message[HEADER_BYTES] !== NFPROTO_INET || !isOurs(message)) return undefined;
    this.#change ??= { isSigned: false, concernsChains: false };
    if (kind === NFT_MSG_NEWSETELEM) this.#change.isSigned ||= signaturesIn(message).some(this.#isOwn);
    else if (kind !== NFT_MSG_DELSETELEM) this.#change.concernsChains = true;
    return undefined;
  }
}

/** Every message about nftables names its table in its first attribute. */
const isOurs = (message: Buffer): boolean => isAbout(message, TABLE) || isAbout(message, SEAL);

const isAbout = (message: Buffer, table: string): boolean => {
  const at = NETFILTER_BYTES + 4;
  const end = at + table.length;
  return (
    message.length > end &&
    message[end] === 0 &&
    message.readUInt16LE(NETFILTER_BYTES + 2) === NFTA_TABLE &&
    message.toString('latin1', at, end) === table
  );
};

const signaturesIn = (message: Buffer): readonly number[] => {
  const attributes = attributesIn(message.subarray(NETFILTER_BYTES));
  if (textOf(attributes.get(NFTA_SET_ELEM_LIST_SET)?.[0]) !== SIGNATURES) return [];
  const elements = within(attributes.get(NFTA_SET_ELEM_LIST_ELEMENTS), NFTA_LIST_ELEM);
  const values = within(within(elements, NFTA_SET_ELEM_KEY), NFTA_DATA_VALUE);
  return values.flatMap((value) => (value.length === 4 ? [value.readUInt32LE()] : []));
};

/** Process ids are those of the host; in a container nobody has them, so the name of the program comes first. */
const writerOf = (message: Buffer): string => {
  const attributes = attributesIn(message.subarray(NETFILTER_BYTES));
  const name = textOf(attributes.get(NFTA_GEN_PROC_NAME)?.[0]) ?? 'unknown';
  const pid = attributes.get(NFTA_GEN_PROC_PID)?.[0];
  return pid?.length === 4 ? `${name}, process ${pid.readUInt32BE()}` : name;
};

/** Values by type. A list repeats a type, so each has several. */
const attributesIn = (bytes: Buffer): ReadonlyMap<number, readonly Buffer[]> => {
  const found = new Map<number, Buffer[]>();
  eachAttribute(bytes, 0, bytes.length, (type, start, end) => {
    const values = found.get(type) ?? [];
    values.push(bytes.subarray(start, end));
    found.set(type, values);
  });
  return found;
};

/** The values of one type inside nested attributes. */
const within = (nested: readonly Buffer[] | undefined, type: number): readonly Buffer[] =>
  (nested ?? []).flatMap((bytes) => attributesIn(bytes).get(type) ?? []);

/** A text that ends with a zero byte. */
const textOf = (bytes: Buffer | undefined): string | undefined => bytes?.toString('latin1').replace(/\0.*$/s, '');
