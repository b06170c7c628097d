/**
 * A change of nftables sets as one transaction in netlink messages, for where starting the program nft would take too
 * long: it takes ten milliseconds, and the kernel a tenth of one. Only what the gate needs: sets are emptied and filled.
 */
import { answerIn, attribute, eachMessage, flags, message, nested, netfilterHead, text } from '../netlink/message.ts';
import { TABLE } from '../nft/stored.ts';

/** What a set is to hold, in place of what it holds. */
export interface SetContent {
  readonly family: TableFamily;
  /** Absent: the one that has our name. */
  readonly table?: string;
  readonly set: string;
  /** True: what it holds is kept, but for `removed`, and the elements come on top. */
  readonly isKept?: true;
  /** What it holds and is to hold no longer; one that is missing makes the kernel refuse all of it. */
  readonly removed?: readonly SetElement[];
  readonly elements: readonly SetElement[];
}

export interface SetElement {
  readonly key: Uint8Array;
  /** What a map has for the key. */
  readonly value?: Uint8Array;
  /** The kernel takes the element out by itself after this long; absent: never. */
  readonly timeoutMs?: number;
  /** What `nft list` shows beside it. */
  readonly comment?: string;
}

/** A table whose chains the kernel is to call, or not. */
export interface TableState {
  readonly family: TableFamily;
  readonly table: string;
  readonly isDormant: boolean;
}

export type TableFamily = keyof typeof families;

// From linux/netfilter/nfnetlink.h, nf_tables.h and netfilter.h; alike on x86_64 and arm64.
const families = { inet: 1, ip: 2, arp: 3, ip6: 10 } as const;
const NFNL_SUBSYS_NFTABLES = 10;
const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
const NFT_MSG_NEWTABLE = NFNL_SUBSYS_NFTABLES << 8;
const NFT_MSG_NEWSETELEM = (NFNL_SUBSYS_NFTABLES << 8) | 12;
const NFT_MSG_DELSETELEM = (NFNL_SUBSYS_NFTABLES << 8) | 14;
const NFTA_SET_ELEM_LIST_TABLE = 1;
const NFTA_SET_ELEM_LIST_SET = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
const NFTA_LIST_ELEM = 1;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_SET_ELEM_DATA = 2;
const NFTA_SET_ELEM_TIMEOUT = 4;
const NFTA_SET_ELEM_USERDATA = 6;
const NFTA_DATA_VALUE = 1;
const NFTA_TABLE_NAME = 1;
const NFTA_TABLE_FLAGS = 2;
const NFT_TABLE_F_DORMANT = 1;
// From libnftnl/udata.h: the first kind of what user space keeps with an element.
const UDATA_COMMENT = 0;

/**
 * An attribute says its length in 16 bits, and an element takes up to 80 bytes. The answer to a message that is refused repeats
 * it, and has to fit into what is read at once.
 */
const ELEMENTS_PER_MESSAGE = 500;

/** The transaction: all of it holds, or none of it. The kernel answers each of its messages. */
export const batchOf = (contents: readonly SetContent[], tables: readonly TableState[] = []): Buffer => {
  const border = netfilterHead(0, NFNL_SUBSYS_NFTABLES);
  const messages = [message(NFNL_MSG_BATCH_BEGIN, flags.request, [border])];
  for (const { family, table = TABLE, set, isKept, removed = [], elements } of contents) {
    const place = [
      netfilterHead(families[family]),
      text(NFTA_SET_ELEM_LIST_TABLE, table),
      text(NFTA_SET_ELEM_LIST_SET, set),
    ];
    // Without elements it empties the set.
    if (isKept !== true) messages.push(message(NFT_MSG_DELSETELEM, flags.request | flags.ack, place));
    const push = (type: number, wanted: number, some: readonly SetElement[]): void => {
      for (let start = 0; start < some.length; start += ELEMENTS_PER_MESSAGE) {
        const list = nested(NFTA_SET_ELEM_LIST_ELEMENTS, some.slice(start, start + ELEMENTS_PER_MESSAGE).map(element));
        messages.push(message(type, wanted, [...place, list]));
      }
    };
    push(NFT_MSG_DELSETELEM, flags.request | flags.ack, removed);
    push(NFT_MSG_NEWSETELEM, flags.request | flags.create | flags.ack, elements);
  }
  for (const { family, table, isDormant } of tables) {
    const state = Buffer.alloc(4);
    state.writeUInt32BE(isDormant ? NFT_TABLE_F_DORMANT : 0);
    const parts = [netfilterHead(families[family]), text(NFTA_TABLE_NAME, table), attribute(NFTA_TABLE_FLAGS, state)];
    // It would make a table that is not there; but what its sets are to hold comes first, and fails then.
    messages.push(message(NFT_MSG_NEWTABLE, flags.request | flags.ack, parts));
  }
  messages.push(message(NFNL_MSG_BATCH_END, flags.request, [border]));
  return Buffer.concat(messages);
};

/** The number of the first error in the answers of the kernel; 0 when there is none. */
export const errorIn = (answers: readonly Buffer[]): number => {
  let first = 0;
  for (const piece of answers) {
    eachMessage(piece, (answer) => {
      first ||= answerIn(piece, answer) ?? 0;
    });
  }
  return first;
};

const element = ({ key, value, timeoutMs, comment }: SetElement): Buffer => {
  const parts = [nested(NFTA_SET_ELEM_KEY, [attribute(NFTA_DATA_VALUE, key)])];
  if (value !== undefined) parts.push(nested(NFTA_SET_ELEM_DATA, [attribute(NFTA_DATA_VALUE, value)]));
  if (timeoutMs !== undefined) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(Math.max(1, Math.round(timeoutMs))));
    parts.push(attribute(NFTA_SET_ELEM_TIMEOUT, bytes));
  }
  if (comment !== undefined) {
    const bytes = Buffer.from(`${comment}\0`);
    parts.push(attribute(NFTA_SET_ELEM_USERDATA, Buffer.concat([Buffer.from([UDATA_COMMENT, bytes.length]), bytes])));
  }
  return nested(NFTA_LIST_ELEM, parts);
};
