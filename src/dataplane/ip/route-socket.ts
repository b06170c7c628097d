/**
 * Batches of `ip` and `bridge` without starting a program: the messages that they would send go out on a socket of this
 * process. Starting a program takes 6 ms (2026-11), the change itself a fraction of one. So does the one list that is asked for
 * all the time.
 *
 * Its failures are never told: when the kernel refuses any message, the program runs the whole batch and says why. Every line
 * of ours may be said twice.
 */
import { ipOfBytes } from '../../core/ip/index.ts';
import { indexOfInterface, nameOfInterface, setGroOfInterface } from '../interface.ts';
import { type Libc, loadLibc, SOCK_CLOEXEC, SOCK_RAW } from '../libc.ts';
import { AF_NETLINK } from '../netfilter-socket.ts';
import { aligned, answerIn, eachAttribute, eachMessage, flags, HEADER_BYTES, message } from '../netlink/message.ts';
import type { Ended, Programs } from '../program.ts';
import { type Tool, tools } from './change.ts';
import { proxyListing } from './listing.ts';
import {
  AF_INET6,
  type IndexOf,
  type Message,
  messageOf,
  NDA_DST,
  NDA_PROTOCOL,
  NTF_PROXY,
  RTM_NEWNEIGH,
} from './messages.ts';

/** An open socket. */
export interface RouteSocket {
  readonly indexOf: IndexOf;
  /** Sends messages in order, before it returns. True: the kernel took every one of them. */
  send(messages: readonly Message[]): boolean;
  /** The IPv6 proxy entries as `ip` lists them in JSON; undefined when the kernel does not tell. */
  proxies(): readonly ProxyFields[] | undefined;
  /** Has a device join packets that arrive on it, or not. True: it is so now. */
  setGro(device: string, isOn: boolean): boolean;
  /** May be called twice. */
  close(): void;
}

/** One of them. */
export interface ProxyFields {
  readonly dst: string;
  readonly dev: string;
  readonly protocol?: string;
}

/** Opens a socket in the network namespace of the caller; undefined when the kernel does not let us. */
export type OpenRouteSocket = () => RouteSocket | undefined;

/** Programs of which batches, the one call of ethtool and the list of proxy entries are done by the socket where they can be. */
export const withRouteSocket = (programs: Programs, socket: RouteSocket | undefined): Programs => {
  if (socket === undefined) return programs;
  return {
    ...programs,
    run: async (argv, options) => doneBy(socket, argv, options?.input ?? '') ?? programs.run(argv, options),
  };
};

/** What the program would have answered; undefined when it has to be asked. */
const doneBy = (socket: RouteSocket, argv: readonly string[], input: string): Ended | undefined => {
  const command = argv.join(' ');
  if (command === proxyListing.command && input === proxyListing.input) {
    const proxies = socket.proxies();
    return proxies && well(JSON.stringify(proxies));
  }
  const [, device, state] = /^ethtool -K (\S+) gro (on|off)$/.exec(command) ?? [];
  if (device !== undefined) return socket.setGro(device, state === 'on') ? well() : undefined;
  const messages = messagesOf(command, input, socket.indexOf);
  return messages !== undefined && socket.send(messages) ? well() : undefined;
};

const well = (stdout = ''): Ended => ({ code: 0, stdout, stderr: '' });

const batchEnd = ' -force -batch -';

/** The messages of a whole batch; undefined when it is something else, or when it has a line for the program. */
const messagesOf = (command: string, input: string, indexOf: IndexOf): readonly Message[] | undefined => {
  const tool = command.slice(0, -batchEnd.length);
  if (!command.endsWith(batchEnd) || !isTool(tool)) return undefined;
  const messages: Message[] = [];
  for (const line of input.trimEnd().split('\n')) {
    const message = messageOf(tool, line, indexOf);
    if (message === undefined) return undefined;
    messages.push(message);
  }
  return messages;
};

const isTool = (name: string): name is Tool => Object.hasOwn(tools, name);

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

  send(messages: readonly Message[]): boolean {
    if (this.#descriptor < 0) return false;
    for (let at = 0; at < messages.length; at += MESSAGES_AT_ONCE) {
      if (!this.#sendSome(messages.slice(at, at + MESSAGES_AT_ONCE))) return false;
    }
    return true;
  }

  proxies(): readonly ProxyFields[] | undefined {
    if (this.#descriptor < 0) return undefined;
    const head = Buffer.alloc(NEIGHBOUR_BYTES);
    head.writeUInt8(AF_INET6, 0);
    head.writeUInt8(NTF_PROXY, 10);
    const request = message(RTM_GETNEIGH, flags.request | flags.dump, [head]);
    this.#sequence += 1;
    request.writeUInt32LE(this.#sequence, 8);
    if (this.#libc.send(this.#descriptor, request, request.length, 0) !== request.length) return undefined;
    const found: ProxyFields[] = [];
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

  #proxyIn(piece: Buffer, start: number, end: number, names: Map<number, string | undefined>): ProxyFields | undefined {
    const head = start + HEADER_BYTES;
    if (piece.readUInt8(head) !== AF_INET6 || (piece.readUInt8(head + 10) & NTF_PROXY) === 0) return undefined;
    const index = piece.readInt32LE(head + 4);
    if (!names.has(index)) names.set(index, nameOfInterface(this.#libc, this.#descriptor, index));
    const dev = names.get(index);
    let dst: string | undefined;
    let protocol: string | undefined;
    eachAttribute(piece, head + NEIGHBOUR_BYTES, end, (type, value, valueEnd) => {
      if (type === NDA_DST) dst = ipOfBytes(piece.subarray(value, valueEnd));
      if (type === NDA_PROTOCOL) protocol = String(piece.readUInt8(value));
    });
    return dst === undefined || dev === undefined ? undefined : { dst, dev, ...(protocol && { protocol }) };
  }

  close(): void {
    if (this.#descriptor >= 0) this.#libc.close(this.#descriptor);
    // The number may soon belong to another file of the process; -1 never does.
    this.#descriptor = -1;
  }

  #sendSome(messages: readonly Message[]): boolean {
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

const padded = (message: Message): Buffer =>
  Buffer.concat([message, Buffer.alloc(aligned(message.length) - message.length)]);
