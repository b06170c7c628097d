/**
 * Changes without starting a program: the messages that `ip` and `bridge` would send go out on a socket of this process.
 * Starting a program takes 6 ms (2026-11), the change itself a fraction of one. So does the one list that is asked for all
 * the time. Its failures are never told: the program makes the change again and says why. Every change may be made twice.
 */
import { type Ip, ipOfBytes } from '../../core/ip/index.ts';
import { indexOfInterface, nameOfInterface, setGroOfInterface } from '../interface.ts';
import { type Libc, loadLibc, SOCK_CLOEXEC, SOCK_RAW } from '../libc.ts';
import { AF_NETLINK } from '../netfilter-socket.ts';
import { aligned, answerIn, eachAttribute, eachMessage, flags, HEADER_BYTES, message } from '../netlink/message.ts';
import type { OpenRouteSocket, RouteSocket } from './access.ts';
import type { ProxyListed } from './listing.ts';
import {
  AF_INET6,
  type IndexOf,
  NDA_DST,
  NDA_PROTOCOL,
  NTF_PROXY,
  type RequestMessage,
  RTM_NEWNEIGH,
} from './messages.ts';

// From netlink(7) and the headers of Linux; alike on x86_64 and arm64.
const NETLINK_ROUTE = 0;
const RTM_GETNEIGH = 30;
// struct ndmsg: family, three bytes of nothing, index of the device, state, flags, type.
const NEIGHBOUR_BYTES = 12;
const MSG_DONTWAIT = 0x40;
const ROOM_BYTES = 64 * 1024;
// Their answers have to fit into the socket until they are read.
const MESSAGES_AT_ONCE = 64;

/** Loads what opening takes: a native addon. */
export const loadRouteSocket = async (): Promise<OpenRouteSocket> => {
  const libc = await loadLibc();
  return () => {
    const descriptor = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    return descriptor < 0 ? undefined : new KernelSocket(libc, descriptor);
  };
};

class KernelSocket implements RouteSocket {
  readonly #libc: Libc;
  readonly #room = Buffer.alloc(ROOM_BYTES);
  #descriptor: number;
  #sequence = 0;

  constructor(libc: Libc, descriptor: number) {
    this.#libc = libc;
    this.#descriptor = descriptor;
  }

  readonly indexOf: IndexOf = (device) => indexOfInterface(this.#libc, this.#descriptor, device);

  setGro(device: string, isOn: boolean): boolean {
    return setGroOfInterface(this.#libc, this.#descriptor, device, isOn);
  }

  send(messages: readonly RequestMessage[]): boolean {
    if (this.#descriptor < 0) return false;
    for (let at = 0; at < messages.length; at += MESSAGES_AT_ONCE) {
      if (!this.#sendSome(messages.slice(at, at + MESSAGES_AT_ONCE))) return false;
    }
    return true;
  }

  proxies(): readonly ProxyListed[] | undefined {
    if (this.#descriptor < 0) return undefined;
    const head = Buffer.alloc(NEIGHBOUR_BYTES);
    head.writeUInt8(AF_INET6, 0);
    head.writeUInt8(NTF_PROXY, 10);
    const request = message(RTM_GETNEIGH, flags.request | flags.dump, [head]);
    this.#sequence += 1;
    request.writeUInt32LE(this.#sequence, 8);
    if (this.#libc.send(this.#descriptor, request, request.length, 0) !== request.length) return undefined;
    const found: ProxyListed[] = [];
    const names = new Map<number, string | undefined>();
    for (let isDone = false; !isDone; ) {
      // A listing goes on while it is read, so something always waits until it is done.
      const length = this.#libc.recv(this.#descriptor, this.#room, ROOM_BYTES, MSG_DONTWAIT);
      if (length < 0) return undefined;
      const piece = this.#room.subarray(0, length);
      let isRefused = false;
      eachMessage(piece, (answer) => {
        if (answer.sequence !== this.#sequence) return;
        const error = answerIn(piece, answer);
        if (error !== undefined) {
          isDone = true;
          isRefused ||= error !== 0;
        } else if (answer.type === RTM_NEWNEIGH) {
          const entry = this.#proxyIn(piece, answer.start, answer.end, names);
          if (entry !== undefined) found.push(entry);
        }
      });
      if (isRefused) return undefined;
    }
    return found;
  }

  #proxyIn(piece: Buffer, start: number, end: number, names: Map<number, string | undefined>): ProxyListed | undefined {
    const head = start + HEADER_BYTES;
    if (piece.readUInt8(head) !== AF_INET6 || (piece.readUInt8(head + 10) & NTF_PROXY) === 0) return undefined;
    const index = piece.readInt32LE(head + 4);
    if (!names.has(index)) names.set(index, nameOfInterface(this.#libc, this.#descriptor, index));
    const device = names.get(index);
    let ip: Ip | undefined;
    let protocol: number | undefined;
    eachAttribute(piece, head + NEIGHBOUR_BYTES, end, (type, value, valueEnd) => {
      if (type === NDA_DST) ip = ipOfBytes(piece.subarray(value, valueEnd));
      if (type === NDA_PROTOCOL) protocol = piece.readUInt8(value);
    });
    return ip === undefined || device === undefined ? undefined : { device, ip, protocol };
  }

  close(): void {
    if (this.#descriptor >= 0) this.#libc.close(this.#descriptor);
    // The number may soon belong to another file of the process; -1 never does.
    this.#descriptor = -1;
  }

  #sendSome(messages: readonly RequestMessage[]): boolean {
    const first = this.#sequence + 1;
    const bytes = Buffer.concat(messages.map(padded));
    let at = 0;
    for (const { length } of messages) {
      this.#sequence += 1;
      bytes.writeUInt32LE(this.#sequence, at + 8);
      at += aligned(length);
    }
    const isSent = this.#libc.send(this.#descriptor, bytes, bytes.length, 0) === bytes.length;
    return isSent && this.#countTaken(first) === messages.length;
  }

  /** How many of the messages from a number on the kernel says that it took. The answers are there when they are sent. */
  #countTaken(from: number): number {
    let taken = 0;
    for (;;) {
      const length = this.#libc.recv(this.#descriptor, this.#room, ROOM_BYTES, MSG_DONTWAIT);
      if (length < 0) return taken;
      const answers = this.#room.subarray(0, length);
      eachMessage(answers, (answer) => {
        if (answer.sequence >= from && answerIn(answers, answer) === 0) taken += 1;
      });
    }
  }
}

const padded = (message: RequestMessage): Buffer =>
  Buffer.concat([message, Buffer.alloc(aligned(message.length) - message.length)]);
