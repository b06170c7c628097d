/**
 * Bystander is what a node without a part in ownership needs of the protocol: it hears who owns, and says that it has heard. It runs
 * where the agent does, without a thread, which would take 8 to 10 MB on every node of a cluster: a thread would make it hear
 * sooner, but what follows from it, the next hop of packets, is changed by the agent anyhow.
 */
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Input } from '../../core/ownership/port.ts';
import { timingOf } from '../../core/ownership/timing.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { Driver } from './driver.ts';
import type { Heartbeat, HeartbeatHooks } from './heartbeat.ts';
import { Seal } from './seal.ts';
import type { ThreadData } from './thread.ts';

export class Bystander implements Pick<Heartbeat, keyof Heartbeat> {
  readonly #socket: Socket;
  readonly #driver: Driver;
  readonly #listening = Promise.withResolvers<void>();
  #isClosed = false;

  constructor({ node, address, port, keys, timing }: ThreadData, { told, failed }: HeartbeatHooks) {
    const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reuseAddr: true });
    this.#socket = socket;
    this.#driver = new Driver({
      node,
      timing: timingOf(timing),
      held: [],
      clock: systemClock,
      seal: new Seal({ node, keys, randomNumber: () => randomInt(2 ** 48 - 1) }),
      send: (to, packet) => {
        // A way that is down loses packets; the protocol is made for that.
        if (!this.#isClosed) socket.send(packet, port, to, () => {});
      },
      // Who owns nothing and votes on nothing watches nobody.
      askKernel: () => {},
      tell: told,
    });
    // Nobody has to wait for it.
    this.#listening.promise.catch(() => {});
    socket.on('error', (error) => {
      this.#listening.reject(error);
      if (this.#isClosed) return;
      void this.close();
      failed(error);
    });
    socket.on('message', (packet, from) => this.#driver.packet(packet, from.address));
    socket.bind({ address, port }, () => this.#listening.resolve());
  }

  listening(): Promise<void> {
    return this.#listening.promise;
  }

  take(input: Input): void {
    this.#driver.take(input);
  }

  setAddresses(addresses: ReadonlyMap<string, string>): void {
    this.#driver.setAddresses(addresses);
  }

  // The rest is for who owns.
  vote(): void {}
  setReady(): void {}
  setUplink(): void {}
  setMirror(): void {}
  renew(): void {}

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#driver.close();
    const closed = Promise.withResolvers<void>();
    this.#socket.close(() => closed.resolve());
    await closed.promise;
  }
}
