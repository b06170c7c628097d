/**
 * Connections of pods of this node whose slot leaves through another node than when they began. A connection never gets another
 * translation: one that keeps its source cannot leave here, and one that has an EIP cannot leave elsewhere. Forgotten, their
 * next packet makes a new one. Others of the same slot are right and stay, such as those that were carried on; so each
 * is forgotten by its own name, of whatever protocol it is.
 */
import { EgressError } from '../../api/error.ts';
import { SLOT_KIND, SLOT_MASK } from '../../core/node/numbers.ts';
import { errorText, type Libc } from '../libc.ts';
import { type NetfilterSocket, openNetfilterSocket } from '../netfilter-socket.ts';
import {
  ATTRIBUTE_BYTES,
  answerIn,
  eachAttribute,
  eachMessage,
  HEADER_BYTES,
  type Message,
  NETFILTER_BYTES,
} from '../netlink/message.ts';
import { attributes, messages } from './ctnetlink.ts';
import { REQUEST_BYTES, Requests } from './requests.ts';

/** Slots that leave from this node now, and slots that did and leave elsewhere. */
export interface Turned {
  readonly here: ReadonlySet<number>;
  readonly elsewhere: ReadonlySet<number>;
}

/** Forgets them; returns how many there were. Throws CONNTRACK_FAILED; then some may be left. */
export type ForgetStrays = (turned: Turned) => number;

// All bits of a connection mark that are the same for every slot.
const SLOT_CONNECTION_MASK = 0xffffc000;
const AF_INET = 2;
const BUFFER_BYTES = 4 * 1024 * 1024;
const AT_ONCE = 64;

/** For the table of the network namespace of whoever calls. */
export const createForgetStrays =
  (libc: Libc): ForgetStrays =>
  (turned) => {
    const socket = openNetfilterSocket(libc, { groups: [], bufferBytes: BUFFER_BYTES });
    if (typeof socket === 'number') throw failed(errorText(socket));
    try {
      const names = list(socket, turned);
      for (let start = 0; start < names.length; start += AT_ONCE) remove(socket, names.slice(start, start + AT_ONCE));
      return names.length;
    } finally {
      socket.close();
    }
  };

/** What a connection is called: its original direction, as the kernel writes it. */
interface RawName {
  readonly family: number;
  readonly bytes: Buffer;
}

const list = (socket: NetfilterSocket, turned: Turned): RawName[] => {
  const names: RawName[] = [];
  const requests = new Requests(REQUEST_BYTES);
  requests.listAll(1, { mark: SLOT_KIND, mask: SLOT_CONNECTION_MASK });
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
      const name = error === undefined ? strayIn(piece, message, turned) : undefined;
      if (name !== undefined) names.push(name);
    });
  }
  return names;
};

const remove = (socket: NetfilterSocket, names: readonly RawName[]): void => {
  const requests = new Requests(names.length * REQUEST_BYTES);
  for (const { family, bytes } of names) requests.deleteRaw(0, family, bytes);
  const refused = socket.send(requests.bytes);
  if (refused !== 0) throw failed(errorText(refused));
  // Those that ended meanwhile are answered as not found, which is what was wanted.
  while (socket.receive() instanceof Buffer);
};

/** The name of a connection that has to go; undefined for any other. */
const strayIn = (bytes: Buffer, { type, start, end }: Message, turned: Turned): RawName | undefined => {
  if (type !== messages.new) return undefined;
  const family = bytes[start + HEADER_BYTES] ?? 0;
  const width = family === AF_INET ? 4 : 16;
  let name: Buffer | undefined;
  let [source, sender, mark] = ['', '', 0];
  const isWhole = eachAttribute(bytes, start + NETFILTER_BYTES, end, (kind, at, valueEnd) => {
    // In a direction come, behind two headers of attributes, its source, one more, and its destination.
    if (kind === attributes.original) {
      name = Buffer.from(bytes.subarray(at - ATTRIBUTE_BYTES, valueEnd));
      source = bytes.toString('latin1', at + 8, at + 8 + width);
    } else if (kind === attributes.reply) {
      sender = bytes.toString('latin1', at + 12 + width, at + 12 + 2 * width);
    } else if (kind === attributes.mark) {
      mark = bytes.readUInt32BE(at);
    }
  });
  if (!isWhole) return undefined;
  const keepsSource = source === sender;
  const isStray = (keepsSource ? turned.here : turned.elsewhere).has(mark & SLOT_MASK);
  return isStray && name !== undefined ? { family, bytes: name } : undefined;
};

const failed = (why: string): EgressError =>
  new EgressError('CONNTRACK_FAILED', `cannot forget the connections of slots and EIPs: ${why}`);
