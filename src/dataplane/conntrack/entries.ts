/**
 * Entries of the connection table as the kernel writes them, of whatever protocol: looked at one by one, and forgotten or marked by
 * their own names. One listing, and one request for each.
 */
import { EgressError } from '../../api/error.ts';
import { type Ip, ipOfBytes } from '../../core/ip/index.ts';
import { errorText, type Libc } from '../libc.ts';
import { type NetfilterSocket, openNetfilterSocket } from '../netfilter-socket.ts';
import {
  ATTRIBUTE_BYTES,
  answerIn,
  eachAttribute,
  eachMessage,
  HEADER_BYTES,
  NETFILTER_BYTES,
  type NetlinkMessage,
} from '../netlink/message.ts';
import { type AddressBytes, addressIn, type Connection, protocolOf, protocols } from './connection.ts';
import { attributes, messages, status } from './ctnetlink.ts';
import { connectionEventIn } from './heard.ts';
import { REQUEST_BYTES, Requests } from './requests.ts';
import { readTimeouts } from './timeouts.ts';

/** An entry: who asked whom, who answers whom, and the connection mark. */
export interface RawEntry {
  /** Whoever opened it, before any translation. */
  readonly source: AddressBytes;
  /** Who answers: the destination after its translation, as that of a Service. */
  readonly answerer: AddressBytes;
  /** Where answers go: the source after its translation. */
  readonly answered: AddressBytes;
  /** A TCP connection of which both sides have been heard. */
  readonly isOpenTcp: boolean;
  readonly mark: number;
}

/**
 * What becomes of an entry: it is forgotten, gets another connection mark, or (undefined) stays as it is. `keepSource`: it is translated
 * no more, because another node does that from now on; one that could not be carried on there is forgotten or stays.
 */
export type Fate = 'forget' | { readonly mark: number } | { readonly keepSource: 'or forget' | 'or stay' } | undefined;
export type FateOf = (entry: RawEntry) => Fate;

/** The address that bytes are; undefined for what is none. */
export const ipOf = (bytes: AddressBytes): Ip | undefined => ipOfBytes(Buffer.from(bytes, 'latin1'));

const AF_INET = 2;
const BUFFER_BYTES = 4 * 1024 * 1024;
const AT_ONCE = 64;

/**
 * Forgets or marks entries, of those whose mark has these bits; returns how many. Entries of other zones are not what our table
 * sees, and stay. Throws CONNTRACK_FAILED; then some may be left.
 */
export const changeEntries = (
  libc: Libc,
  marked: { readonly mark: number; readonly mask: number },
  fateOf: FateOf,
): number => {
  const socket = openNetfilterSocket(libc, { groups: [], bufferBytes: BUFFER_BYTES });
  if (typeof socket === 'number') throw failed(errorText(socket));
  try {
    const found = list(socket, marked, fateOf);
    for (let start = 0; start < found.length; start += AT_ONCE) change(socket, found.slice(start, start + AT_ONCE));
    return found.length;
  } finally {
    socket.close();
  }
};

/** What an entry is called, its original direction and its number as the kernel writes them; and what becomes of it. */
interface MatchedEntry {
  readonly family: number;
  readonly name: Buffer;
  /** Forgotten, and made anew with its own source; or just forgotten; or marked. */
  readonly become: 'forgotten' | { readonly mark: number } | { readonly kept: Connection };
}

const list = (
  socket: NetfilterSocket,
  marked: { readonly mark: number; readonly mask: number },
  fateOf: FateOf,
): MatchedEntry[] => {
  const all: MatchedEntry[] = [];
  const requests = new Requests(REQUEST_BYTES);
  requests.listAll(1, marked);
  const refused = socket.send(requests.bytes);
  if (refused !== 0) throw failed(errorText(refused));
  for (let isDone = false; !isDone; ) {
    const piece = socket.receive();
    // A listing goes on while it is read, so something always waits until it is done.
    if (piece === undefined || piece === 'lost') throw failed('the kernel breaks off');
    eachMessage(piece, (message) => {
      const error = answerIn(piece, message);
      if (error !== undefined && error !== 0) throw failed(errorText(error));
      isDone ||= error === 0;
      const found = error === undefined ? matchedIn(piece, message, fateOf) : undefined;
      if (found !== undefined) all.push(found);
    });
  }
  return all;
};

const change = (socket: NetfilterSocket, some: readonly MatchedEntry[]): void => {
  const requests = new Requests(some.length * 2 * REQUEST_BYTES);
  const timeouts = readTimeouts();
  for (const { family, name, become } of some) {
    if (become !== 'forgotten' && 'mark' in become) {
      requests.markRaw(0, family, name, become.mark);
      continue;
    }
    requests.deleteRaw(0, family, name);
    if (become === 'forgotten') continue;
    // In one call. A packet that comes in between makes the very same connection, and the next request is refused.
    const isTcp = protocolOf(become.kept.key) === protocols.tcp;
    requests.createKept(0, become.kept, isTcp ? timeouts.tcp : timeouts.udp);
  }
  const refused = socket.send(requests.bytes);
  if (refused !== 0) throw failed(errorText(refused));
  // Those that ended meanwhile are answered as not found, which is what was wanted.
  while (socket.receive() instanceof Buffer);
};

/** An entry that something becomes of; undefined for any other. */
const matchedIn = (bytes: Buffer, message: NetlinkMessage, fateOf: FateOf): MatchedEntry | undefined => {
  const { type, start, end } = message;
  if (type !== messages.new) return undefined;
  const family = bytes[start + HEADER_BYTES] ?? 0;
  const width = family === AF_INET ? 4 : 16;
  // Places in the piece: each direction begins, behind two headers of attributes, with its source, one more, and its destination.
  let [original, originalEnd, reply, number, bits, mark, zone] = [0, 0, 0, 0, 0, 0, 0];
  const isWhole = eachAttribute(bytes, start + NETFILTER_BYTES, end, (kind, at, valueEnd) => {
    if (kind === attributes.original) [original, originalEnd] = [at, valueEnd];
    else if (kind === attributes.reply) reply = at;
    else if (kind === attributes.id) number = at;
    else if (kind === attributes.status) bits = bytes.readUInt32BE(at);
    else if (kind === attributes.mark) mark = bytes.readUInt32BE(at);
    else if (kind === attributes.zone) zone = bytes.readUInt16BE(at);
  });
  if (!isWhole || zone !== 0 || original === 0 || reply === 0) return undefined;
  // Behind both addresses: a header of the protocol's attributes, one of its number, and the number.
  const protocol = bytes[original + 4 + 2 * (4 + width) + 8];
  const fate = fateOf({
    source: addressIn(bytes, original + 8, width),
    answerer: addressIn(bytes, reply + 8, width),
    answered: addressIn(bytes, reply + 12 + width, width),
    isOpenTcp: protocol === protocols.tcp && (bits & status.seenReply) !== 0,
    mark,
  });
  const become = fate && becomeOf(bytes, message, fate);
  if (become === undefined) return undefined;
  // The number says that it is this very entry, and not one of the same name that has come since.
  const parts = [bytes.subarray(original - ATTRIBUTE_BYTES, originalEnd)];
  if (number !== 0) parts.push(bytes.subarray(number - ATTRIBUTE_BYTES, number + 4));
  return { family, name: Buffer.concat(parts), become };
};

const becomeOf = (
  bytes: Buffer,
  message: NetlinkMessage,
  fate: Exclude<Fate, undefined>,
): MatchedEntry['become'] | undefined => {
  if (fate === 'forget') return 'forgotten';
  if ('mark' in fate) return fate;
  const heard = connectionEventIn(bytes, message);
  if (heard?.kind === 'open') return { kept: heard.connection };
  return fate.keepSource === 'or forget' ? 'forgotten' : undefined;
};

const failed = (why: string): EgressError =>
  new EgressError('CONNTRACK_FAILED', `cannot change the connection table: ${why}`);
