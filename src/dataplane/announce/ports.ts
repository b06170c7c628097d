/**
 * The packet sockets that are in use, and the one timer that reads them. A socket is open only while somebody uses it,
 * and the timer runs only while a socket is open: an announcer with nothing to say costs nothing.
 */
import type { IpFamily } from '../../core/ip/index.ts';
import type { MonotonicTimers } from '../timers.ts';
import { type FrameClaim, readClaim } from './frames.ts';
import { isRefusal, type OpenPacketSocket, type PacketSocket, type SocketRefusal } from './packet-socket.ts';

/** Somebody who keeps sockets open. */
export interface PortUser {
  /** How often the sockets are to be read. */
  readonly readEveryMs: number;
}

interface Port {
  readonly interfaceName: string;
  readonly socket: PacketSocket;
  readonly users: Set<PortUser>;
}

/** Opens, shares, reads and closes packet sockets. */
export class Ports {
  readonly #open: OpenPacketSocket;
  readonly #clock: MonotonicTimers;
  readonly #onHeard: (heard: FrameClaim, interfaceName: string) => void;
  /** By interface and family. */
  readonly #ports = new Map<string, Port>();
  #timer: { readonly periodMs: number; readonly cancel: () => void } | undefined;

  constructor(deps: {
    readonly open: OpenPacketSocket;
    readonly clock: MonotonicTimers;
    readonly onHeard: (heard: FrameClaim, interfaceName: string) => void;
  }) {
    this.#open = deps.open;
    this.#clock = deps.clock;
    this.#onHeard = deps.onHeard;
  }

  /** Sends frames made for the MAC address of the interface; the socket stays open for the user until `leave`. */
  send(
    user: PortUser,
    { interfaceName, family }: { readonly interfaceName: string; readonly family: IpFamily },
    frames: (mac: string) => readonly Buffer[],
  ): SocketRefusal | undefined {
    const key = `${interfaceName} ${family}`;
    const port = this.#ports.get(key) ?? this.#openPort(key, interfaceName, family);
    if (!('socket' in port)) return port;
    port.users.add(user);
    this.#readWithin(user.readEveryMs);
    for (const frame of frames(port.socket.mac)) {
      const refusal = port.socket.send(frame);
      if (refusal === undefined) continue;
      // An interface that went away and came back is another one to the kernel; the next to send opens a new socket.
      if (refusal.kind !== 'busy') this.#closePort(key, port);
      return refusal;
    }
    return undefined;
  }

  /** Ends the use of all sockets by this user. May be called twice. */
  leave(user: PortUser): void {
    for (const [key, port] of this.#ports) {
      if (port.users.delete(user) && port.users.size === 0) this.#closePort(key, port);
    }
  }

  /** Reads all that has come in; what claims an address and is not from this machine is handed over. */
  read(): void {
    const own = new Set([...this.#ports.values()].map(({ socket }) => socket.mac));
    // The list is copied: what is heard may end a use and so close a socket.
    for (const { interfaceName, socket } of [...this.#ports.values()]) {
      for (const frame of socket.receive()) {
        const heard = readClaim(frame);
        if (heard !== undefined && !own.has(heard.mac) && !own.has(heard.sender)) this.#onHeard(heard, interfaceName);
      }
    }
  }

  /** Closes everything. */
  close(): void {
    for (const [key, port] of this.#ports) this.#closePort(key, port);
  }

  #openPort(key: string, interfaceName: string, family: IpFamily): Port | SocketRefusal {
    const socket = this.#open(interfaceName, family);
    if (isRefusal(socket)) return socket;
    const port = { interfaceName, socket, users: new Set<PortUser>() };
    this.#ports.set(key, port);
    return port;
  }

  #closePort(key: string, port: Port): void {
    this.#ports.delete(key);
    port.socket.close();
    if (this.#ports.size === 0) this.#stopReading();
  }

  /** Reads within the given time at the latest, and then as often as the most eager user wants. */
  #readWithin(periodMs: number): void {
    if (this.#timer !== undefined && this.#timer.periodMs <= periodMs) return;
    this.#stopReading();
    const cancel = this.#clock.after(periodMs, () => {
      this.#timer = undefined;
      this.read();
      const periods = [...this.#ports.values()].flatMap(({ users }) =>
        [...users].map(({ readEveryMs }) => readEveryMs),
      );
      if (periods.length > 0) this.#readWithin(Math.min(...periods));
    });
    this.#timer = { periodMs, cancel };
  }

  #stopReading(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
