/**
 * The thread of heartbeats: its own event loop, so that neither a garbage collection of the agent nor a long pass can make
 * a healthy node look dead. heartbeat.ts starts it. It wires the driver to a UDP socket and does nothing else.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import type { Holding } from '../../core/ownership/message.ts';
import type { Input } from '../../core/ownership/port.ts';
import { type TimingSettings, timingOf } from '../../core/ownership/timing.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { Driver, type Told } from './driver.ts';
import { knock } from './knock.ts';
import { Seal } from './seal.ts';

/** What the thread is started with. */
export interface ThreadData {
  readonly node: string;
  /** The own tunnel address, and the port of all nodes. */
  readonly address: string;
  readonly port: number;
  readonly keys: readonly [Uint8Array, ...Uint8Array[]];
  readonly timing: TimingSettings;
  readonly held: readonly Holding[];
}

/** What the thread is told. */
export type ToThread =
  | { readonly kind: 'input'; readonly input: Input }
  | { readonly kind: 'addresses'; readonly addresses: ReadonlyMap<string, string> };

/** What the thread tells: that its socket is open, then what the protocol says. */
export type FromThread = { readonly kind: 'listening' } | Told;

// Both ends of the channel are in this folder; the types are those of heartbeat.ts.
const data = workerData as ThreadData;
const parent = parentPort;
if (parent === null) throw new Error('thread.ts is started by heartbeat.ts');

const { node, address, port, keys, held } = data;
const timing = timingOf(data.timing);
const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reuseAddr: true });
const tell = (told: FromThread): void => parent.postMessage(told);
const driver = new Driver({
  node,
  timing,
  held,
  clock: systemClock,
  seal: new Seal({ node, keys, randomNumber: () => randomInt(2 ** 48 - 1) }),
  // A way that is down loses packets; the protocol is made for that.
  send: (to, packet) => socket.send(packet, port, to, () => {}),
  askKernel: (to, onAnswer) => knock(systemClock, { address: to, port, limitMs: timing.silenceMs }, onAnswer),
  tell,
});
parent.on('message', (message: ToThread) => {
  if (message.kind === 'input') driver.take(message.input);
  else driver.setAddresses(message.addresses);
});
socket.on('message', (packet, from) => driver.packet(packet, from.address));
socket.bind({ address, port }, () => tell({ kind: 'listening' }));
