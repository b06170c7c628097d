/**
 * The thread of the mirror: its own event loop, so that a take-over does not wait for a pass of the agent, and reading changes of
 * connections holds up nobody. mirror-thread.ts starts it. It wires the mirror to a UDP socket and to the kernel.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Ip } from '../../core/ip/index.ts';
import { createConnections } from '../../dataplane/conntrack/connections.ts';
import { readTimeouts } from '../../dataplane/conntrack/timeouts.ts';
import { loadLibc } from '../../dataplane/libc.ts';
import { Envelope } from '../thread/envelope.ts';
import { createMachineClock } from '../thread/machine-clock.ts';
import { Mirror } from './mirror.ts';
import type { MirrorPlan, MirrorStats } from './port.ts';

/** What the thread is started with. */
export interface MirrorThreadData {
  readonly node: string;
  /** The own tunnel address, and the port of all nodes. */
  readonly address: string;
  readonly port: number;
  readonly keys: readonly [Uint8Array, ...Uint8Array[]];
}

/** What the thread is told. */
export type ToMirrorThread =
  | { readonly kind: 'plan'; readonly plan: MirrorPlan }
  /** Whoever has the other end may ask for connections, without the agent between. */
  | { readonly kind: 'asker'; readonly port: MessagePort };

/** To make the connections of EIPs that are taken over; answered when they are made. */
export interface TakeRequest {
  readonly kind: 'take';
  readonly id: number;
  readonly ips: readonly Ip[];
  /** How long to wait until their owner has told all of them; zero when it is gone. */
  readonly waitMs: number;
}

/** The answer: they are made. */
export interface Taken {
  readonly kind: 'taken';
  readonly id: number;
}

/** What the thread tells. */
export type FromMirrorThread =
  | { readonly kind: 'listening' }
  | { readonly kind: 'stats'; readonly stats: MirrorStats }
  | { readonly kind: 'failed'; readonly why: string };

const VERSION = 2;
const STATS_MS = 1_000;
const randomNumber = (): number => randomInt(2 ** 48 - 1);

// Both ends of the channel are in this folder; the types are those of mirror-thread.ts.
const { node, address, port, keys } = workerData as MirrorThreadData;
const parent = parentPort;
if (parent === null) throw new Error('thread.ts is started by mirror-thread.ts');
const tell = (told: FromMirrorThread): void => parent.postMessage(told);

const libc = await loadLibc();

const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reuseAddr: true });
const mirror = new Mirror({
  clock: createMachineClock(libc),
  connections: createConnections({ libc, timeouts: readTimeouts }),
  envelope: new Envelope({ node, version: VERSION, keys, randomNumber }),
  instance: randomNumber(),
  // A way that is down loses packets; the mirror is made for that.
  send: (to, packet) => socket.send(packet, port, to, () => {}),
  onFailure: ({ message }) => tell({ kind: 'failed', why: message }),
  beforeLook: () => {
    for (let next = receiveMessageOnPort(parent); next !== undefined; next = receiveMessageOnPort(parent)) {
      // The same messages as below.
      hear(next.message as ToMirrorThread);
    }
  },
});

const take = ({ id, ips, waitMs }: TakeRequest, answer: (taken: Taken) => void): void => {
  const make = (): void => {
    mirror.takeOver(ips, waitMs > 0);
    answer({ kind: 'taken', id });
  };
  if (waitMs === 0) make();
  else {
    mirror.clear(ips);
    void mirror.untilWhole(ips, waitMs).then(make);
  }
};

const hear = (message: ToMirrorThread): void => {
  switch (message.kind) {
    case 'plan':
      mirror.set(message.plan);
      break;
    case 'asker':
      message.port.on('message', (asked: TakeRequest) => take(asked, (taken) => message.port.postMessage(taken)));
      break;
    default:
      message satisfies never;
  }
};
parent.on('message', hear);

let last = '';
setInterval(() => {
  const stats = mirror.stats();
  const text = JSON.stringify(stats);
  if (text !== last) tell({ kind: 'stats', stats });
  last = text;
}, STATS_MS);

socket.on('message', (packet, from) => mirror.packet(packet, from.address));
socket.bind({ address, port }, () => tell({ kind: 'listening' }));
