/**
 * Batches of `ip` and `bridge` without starting a program: the messages that they would send go out on a socket of this
 * process. Starting a program takes 6 ms (2026-11), the change itself a fraction of one.
 *
 * Its failures are never told: when the kernel refuses any message, the program runs the whole batch and says why. Every line
 * of ours may be said twice.
 */
import { type Libc, loadLibc, SOCK_CLOEXEC, SOCK_RAW } from '../libc.ts';
import type { Programs } from '../program.ts';
import { type Tool, tools } from './change.ts';
import { type IndexOf, type Message, messageOf } from './messages.ts';

/** An open socket. */
export interface RouteSocket {
  readonly indexOf: IndexOf;
  /** Sends messages in order, before it returns. True: the kernel took every one of them. */
  send(messages: readonly Message[]): boolean;
  /** May be called twice. */
  close(): void;
}

/** Opens a socket in the network namespace of the caller; undefined when the kernel does not let us. */
export type OpenRouteSocket = () => RouteSocket | undefined;

/** Programs of which batches are done by the socket where they can be. */
export const withRouteSocket = (programs: Programs, socket: RouteSocket | undefined): Programs => {
  if (socket === undefined) return programs;
  return {
    ...programs,
    run: async (argv, options) => {
      const messages = messagesOf(argv, options?.input ?? '', socket.indexOf);
      const isDone = messages !== undefined && socket.send(messages);
      return isDone ? { code: 0, stdout: '', stderr: '' } : programs.run(argv, options);
    },
  };
};

const batchEnd = ' -force -batch -';

/** The messages of a whole batch; undefined when it is something else, or when it has a line for the program. */
const messagesOf = (argv: readonly string[], input: string, indexOf: IndexOf): readonly Message[] | undefined => {
  const command = argv.join(' ');
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

// From netlink(7), netdevice(7) and the headers of Linux; alike on x86_64 and arm64.
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
const MSG_DONTWAIT = 0x40;
const NLMSG_ERROR = 2;
const SIOCGIFINDEX = 0x8933;
const NAME_BYTES = 16;
// The kernel's struct ifreq: the name, then what was asked for.
const REQUEST_BYTES = 40;
const HEADER_BYTES = 16;
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

  readonly indexOf: IndexOf = (device) => {
    const request = Buffer.alloc(REQUEST_BYTES);
    if (this.#descriptor < 0 || request.write(device) >= NAME_BYTES) return undefined;
    return this.#libc.ioctl(this.#descriptor, SIOCGIFINDEX, request) < 0 ? undefined : request.readInt32LE(NAME_BYTES);
  };

  send(messages: readonly Message[]): boolean {
    if (this.#descriptor < 0) return false;
    for (let at = 0; at < messages.length; at += MESSAGES_AT_ONCE) {
      if (!this.#sendSome(messages.slice(at, at + MESSAGES_AT_ONCE))) return false;
    }
    return true;
  }

  close(): void {
    if (this.#descriptor >= 0) this.#libc.close(this.#descriptor);
    // The number may soon belong to another file of the process; -1 never does.
    this.#descriptor = -1;
  }

  #sendSome(messages: readonly Message[]): boolean {
    const first = this.#sequence + 1;
    const bytes = Buffer.concat(messages.map(aligned));
    let at = 0;
    for (const { length } of messages) {
      this.#sequence += 1;
      bytes.writeUInt32LE(this.#sequence, at + 8);
      at += multipleOfFour(length);
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
      const answers = answersIn(this.#room.subarray(0, length));
      taken += answers.filter(({ number, code }) => number >= from && code === 0).length;
    }
  }
}

/** What the kernel says to each message: its number, and 0 or a negative error. */
const answersIn = (bytes: Buffer): readonly { readonly number: number; readonly code: number }[] => {
  const answers: { number: number; code: number }[] = [];
  for (let at = 0; at + HEADER_BYTES + 4 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < HEADER_BYTES) break;
    if (bytes.readUInt16LE(at + 4) === NLMSG_ERROR) {
      answers.push({ number: bytes.readUInt32LE(at + 8), code: bytes.readInt32LE(at + HEADER_BYTES) });
    }
    at += multipleOfFour(length);
  }
  return answers;
};

const multipleOfFour = (length: number): number => (length + 3) & ~3;
const aligned = (message: Message): Buffer =>
  Buffer.concat([message, Buffer.alloc(multipleOfFour(message.length) - message.length)]);
