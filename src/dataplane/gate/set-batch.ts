/**
 * A change of nftables sets as one transaction in netlink messages, for where starting the program nft would take too
 * long: it takes ten milliseconds, and the kernel a tenth of one. Only what the gate needs: sets are emptied and filled.
 */
import { TABLE } from '../nft/stored.ts';

/** What a set is to hold, in place of what it holds. */
export interface SetContent {
  readonly family: keyof typeof families;
  readonly set: string;
  /** True: what it holds is kept, and the elements come on top. */
  readonly isKept?: true;
  readonly elements: readonly SetElement[];
}

export interface SetElement {
  readonly key: Uint8Array;
  /** The kernel takes the element out by itself after this long; absent: never. */
  readonly timeoutMs?: number;
  /** What `nft list` shows beside it. */
  readonly comment?: string;
}

// From linux/netlink.h, nfnetlink.h, nf_tables.h and netfilter.h; alike on x86_64 and arm64.
const families = { inet: 1, arp: 3, ip6: 10 } as const;
const NFNL_SUBSYS_NFTABLES = 10;
const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
const NFT_MSG_NEWSETELEM = (NFNL_SUBSYS_NFTABLES << 8) | 12;
const NFT_MSG_DELSETELEM = (NFNL_SUBSYS_NFTABLES << 8) | 14;
const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLM_F_CREATE = 0x400;
const NLMSG_ERROR = 2;
const NLA_F_NESTED = 0x8000;
const NFTA_SET_ELEM_LIST_TABLE = 1;
const NFTA_SET_ELEM_LIST_SET = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
const NFTA_LIST_ELEM = 1;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_SET_ELEM_TIMEOUT = 4;
const NFTA_SET_ELEM_USERDATA = 6;
const NFTA_DATA_VALUE = 1;
// From libnftnl/udata.h: the first kind of what user space keeps with an element.
const UDATA_COMMENT = 0;

const HEADER_BYTES = 16;
const ATTRIBUTES_AT = HEADER_BYTES + 4;
/** An attribute says its length in 16 bits, and an element takes up to 80 bytes. */
const ELEMENTS_PER_MESSAGE = 500;

/** The transaction: all of it holds, or none of it. The kernel answers each of its messages. */
export const batchOf = (contents: readonly SetContent[]): Buffer => {
  const messages = [message(NFNL_MSG_BATCH_BEGIN, 0, 0, [], NFNL_SUBSYS_NFTABLES)];
  for (const { family, set, isKept, elements } of contents) {
    const place = [text(NFTA_SET_ELEM_LIST_TABLE, TABLE), text(NFTA_SET_ELEM_LIST_SET, set)];
    // Without elements it empties the set.
    if (isKept !== true) messages.push(message(NFT_MSG_DELSETELEM, NLM_F_ACK, families[family], place));
    for (let start = 0; start < elements.length; start += ELEMENTS_PER_MESSAGE) {
      const list = nested(
        NFTA_SET_ELEM_LIST_ELEMENTS,
        elements.slice(start, start + ELEMENTS_PER_MESSAGE).map(element),
      );
      messages.push(message(NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_ACK, families[family], [...place, list]));
    }
  }
  messages.push(message(NFNL_MSG_BATCH_END, 0, 0, [], NFNL_SUBSYS_NFTABLES));
  return Buffer.concat(messages);
};

/** The number of the first error in the answers of the kernel; 0 when there is none. */
export const errorIn = (answers: readonly Buffer[]): number => {
  for (const answer of answers) {
    for (let at = 0; at + HEADER_BYTES + 4 <= answer.length; ) {
      const length = answer.readUInt32LE(at);
      if (length < HEADER_BYTES) break;
      const error = answer.readUInt16LE(at + 4) === NLMSG_ERROR ? -answer.readInt32LE(at + HEADER_BYTES) : 0;
      if (error !== 0) return error;
      at += aligned(length);
    }
  }
  return 0;
};

const element = ({ key, timeoutMs, comment }: SetElement): Buffer => {
  const parts = [nested(NFTA_SET_ELEM_KEY, [attribute(NFTA_DATA_VALUE, key)])];
  if (timeoutMs !== undefined) {
    const value = Buffer.alloc(8);
    value.writeBigUInt64BE(BigInt(Math.round(timeoutMs)));
    parts.push(attribute(NFTA_SET_ELEM_TIMEOUT, value));
  }
  if (comment !== undefined) {
    const bytes = Buffer.from(`${comment}\0`);
    parts.push(attribute(NFTA_SET_ELEM_USERDATA, Buffer.concat([Buffer.from([UDATA_COMMENT, bytes.length]), bytes])));
  }
  return nested(NFTA_LIST_ELEM, parts);
};

const message = (type: number, flags: number, family: number, attributes: readonly Buffer[], resource = 0): Buffer => {
  const head = Buffer.alloc(ATTRIBUTES_AT);
  const length = ATTRIBUTES_AT + attributes.reduce((sum, { length }) => sum + length, 0);
  head.writeUInt32LE(length, 0);
  head.writeUInt16LE(type, 4);
  head.writeUInt16LE(NLM_F_REQUEST | flags, 6);
  head.writeUInt8(family, HEADER_BYTES);
  head.writeUInt16BE(resource, HEADER_BYTES + 2);
  return Buffer.concat([head, ...attributes]);
};

const attribute = (type: number, value: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(aligned(4 + value.length));
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(value, 4);
  return bytes;
};

const nested = (type: number, parts: readonly Buffer[]): Buffer => attribute(type | NLA_F_NESTED, Buffer.concat(parts));

const text = (type: number, value: string): Buffer => attribute(type, Buffer.from(`${value}\0`));

const aligned = (length: number): number => (length + 3) & ~3;
