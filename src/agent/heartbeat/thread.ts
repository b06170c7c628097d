/**
 * The thread of heartbeats: its own event loop, so that neither a garbage collection of the agent nor a long pass can make
 * a healthy node look dead, or keep an EIP that is to be let go. heartbeat.ts starts it. It wires the driver to a UDP
 * socket and to the gate of the kernel, and does nothing else.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Ip } from '../../core/ip/index.ts';
import type { UplinkLoss, UplinkPlace } from '../../core/node/uplink.ts';
import type { EipHold, Input } from '../../core/ownership/port.ts';
import { type TimingSettings, timingOf } from '../../core/ownership/timing.ts';
import { createAnnouncer } from '../../dataplane/announce/announcer.ts';
import { createConflictListener } from '../../dataplane/announce/conflict-listener.ts';
import { createNeighbours } from '../../dataplane/announce/neighbours.ts';
import { loadPacketSockets } from '../../dataplane/announce/packet-socket.ts';
import { openGateSets } from '../../dataplane/gate/gate.ts';
import { hasCarrier, isOwnMac } from '../../dataplane/interface.ts';
import { loadLibc } from '../../dataplane/libc.ts';
import { wait } from '../../runtime/process/clock.ts';
import { MirrorClient } from '../mirror/mirror-client.ts';
import { createMachineClock } from '../thread/machine-clock.ts';
import { Bulletin } from './bulletin.ts';
import { type Conflict, ConflictWatch } from './conflicts.ts';
import { GateController, type GateControllerDeps, type Hops, type ReadyEips } from './gate-controller.ts';
import { probeKernel } from './kernel-probe.ts';
import { type ProtocolOutput, ProtocolRunner } from './protocol-runner.ts';
import { HeartbeatSeal } from './seal.ts';
import { Uplink } from './uplink.ts';

/** What the thread is started with. */
export interface ThreadData {
  readonly node: string;
  /** The own tunnel address, and the port of all nodes. */
  readonly address: string;
  readonly port: number;
  readonly keys: readonly [Uint8Array, ...Uint8Array[]];
  readonly timing: TimingSettings;
  /** What the kernel holds, and until when by the clock of the machine. */
  readonly held: readonly EipHold[];
  readonly heldUntilMs: number;
  /** Until when, by the same clock, others may rely on what earlier runs have promised as voters. */
  readonly promisedUntilMs: number;
  /** The first of the numbers that its changes of the main table are signed with; undefined: it has no kernel to change. */
  readonly firstSignature: number | undefined;
}

/** What the thread is told. */
export type ToThread =
  | { readonly kind: 'input'; readonly input: Input }
  | {
      readonly kind: 'addresses';
      readonly addresses: ReadonlyMap<string, string>;
      readonly hops: Hops;
      /** By which nodes of the cluster announce EIPs. */
      readonly macs: ReadonlySet<string>;
    }
  /** Which EIPs lie ready, and about which the network is being asked. */
  | { readonly kind: 'ready'; readonly ready: ReadyEips; readonly awaited: ReadyEips }
  /** Who knows the connections of other nodes' EIPs. */
  | { readonly kind: 'mirror'; readonly port: MessagePort }
  /** Somebody has replaced what the kernel held. */
  | { readonly kind: 'renew' }
  /** Where the outside is; undefined: it is not watched. */
  | { readonly kind: 'uplink'; readonly place: UplinkPlace | undefined };

/** What the thread tells: that its socket is open, then what has come of each turn of its event loop. */
export type FromThread =
  | { readonly kind: 'listening' }
  | { readonly kind: 'told'; readonly tidings: readonly ThreadEvent[] };

/** What the protocol says, and what became of it. */
export type ThreadEvent =
  | Exclude<ProtocolOutput, { readonly kind: 'announce' | 'renew' }>
  /** The kernel would not hold what it should. */
  | { readonly kind: 'refused'; readonly why: string }
  /** Until when the kernel holds what it holds, by the clock of the machine; infinite when that is nothing. */
  | { readonly kind: 'lease'; readonly untilMs: number }
  /** All addresses that this node answers for, and has announced. */
  | { readonly kind: 'opened'; readonly ips: readonly Ip[] }
  /** All EIPs owned here that a foreign machine claims, whenever they are others. */
  | { readonly kind: 'conflicts'; readonly conflicts: readonly Conflict[] }
  /** All families that are lost on interfaces which EIPs need, whenever they are others. */
  | { readonly kind: 'uplink'; readonly losses: readonly UplinkLoss[] };

// Both ends of the channel are in this folder; the types are those of heartbeat.ts.
const data = workerData as ThreadData;
const parent = parentPort;
if (parent === null) throw new Error('thread.ts is started by heartbeat.ts');

/** How many numbers there are for it; each is in use for seconds only. */
const SIGNATURES = 0x4000;
/** How long a take-over waits for connections: there are few, or it takes too long and those that come first begin anew. */
const BRING_MS = 150;
/**
 * How long a move by plan waits until all of them were told, and then until they are made: nobody is without an owner meanwhile, and a
 * connection that is not here in time may be cut off. On a starved machine both take long.
 */
const BRING_PLANNED_MS = 2_000;
const MAKE_PLANNED_MS = 1_000;

const libc = await loadLibc();
const clock = createMachineClock(libc);

const { node, address, port, keys, held, heldUntilMs, promisedUntilMs, firstSignature } = data;
const timing = timingOf(data.timing);
const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reuseAddr: true });
const post = (message: FromThread): void => parent.postMessage(message);
const bulletin = new Bulletin<ThreadEvent>((tidings) => post({ kind: 'told', tidings }), setImmediate);
const tell = (told: ThreadEvent): void => bulletin.tell(told);

const nowhere: GateControllerDeps['gateSets'] = { hold: () => undefined, prolong: () => undefined, doubt: () => {} };
let signed = 0;
const sign = (first: number): number => {
  signed = (signed + 1) % SIGNATURES;
  return first + signed;
};
const gateSets = firstSignature === undefined ? nowhere : openGateSets(libc, () => sign(firstSignature));
const open = await loadPacketSockets();
const announcer = createAnnouncer({ open, clock, isOwn: isOwnMac });
const conflicts = new ConflictWatch({
  clock,
  listener: createConflictListener(open),
  isOwn: isOwnMac,
  onChange: (found) => tell({ kind: 'conflicts', conflicts: found }),
  onOurNodes: (ips) => runner.take({ kind: 'conflict', eips: [...new Set(ips.map((ip) => gateController.eipOf(ip)))] }),
});
let mirrorClient: MirrorClient | undefined;
const gateController = new GateController(
  {
    gateSets,
    announcer: {
      apply: (claims) => {
        conflicts.watch(claims);
        return announcer.apply(claims);
      },
      repeat: (claims) => announcer.repeat(claims),
    },
    clock,
    leaseMs: timing.leaseMs,
    handBackMs: timing.handBackMs,
    bring: (ips, isPlanned) => {
      if (mirrorClient === undefined) return undefined;
      const [waitMs, limitMs] = isPlanned ? [BRING_PLANNED_MS, BRING_PLANNED_MS + MAKE_PLANNED_MS] : [0, BRING_MS];
      return Promise.race([mirrorClient.takeOver(ips, waitMs), wait(clock, limitMs)]);
    },
    onLease: (untilMs) => tell({ kind: 'lease', untilMs }),
    onOpened: (ips) => tell({ kind: 'opened', ips }),
    // Not inside the step that asked for it.
    onPrepared: (eips) => queueMicrotask(() => runner.take({ kind: 'prepared', eips })),
    onRefused: (why) => tell({ kind: 'refused', why }),
  },
  { held, untilMs: heldUntilMs },
);
const runner = new ProtocolRunner({
  node,
  timing,
  held: held.filter(({ mode }) => mode === 'owned'),
  promisedUntilMs,
  clock,
  heldUntilMs: () => gateController.heldUntilMs,
  createSeal: () => new HeartbeatSeal({ node, keys, randomNumber: () => randomInt(2 ** 48 - 1) }),
  // A way that is down loses packets; the protocol is made for that.
  send: (to, packet) => socket.send(packet, port, to, () => {}),
  askKernel: (to, onAnswer) => probeKernel(clock, { address: to, port, limitMs: timing.widestMs / 2 }, onAnswer),
  tell: (told) => {
    if (told.kind === 'announce') return gateController.announce(told.eip);
    if (told.kind === 'renew') return gateController.renew();
    if (told.kind === 'hold') gateController.hold(told.held);
    tell(told);
  },
});
const uplink = new Uplink({
  clock,
  hasCarrier: (interfaceName) => hasCarrier(libc, interfaceName),
  createNeighbours: () => createNeighbours(open),
  onChange: (unreached, losses) => {
    tell({ kind: 'uplink', losses });
    runner.take({ kind: 'uplink', unreached });
  },
});
parent.on('message', (message: ToThread) => {
  runner.look();
  switch (message.kind) {
    case 'input':
      return runner.take(message.input);
    case 'addresses':
      gateController.setHops(message.hops);
      conflicts.setOurMacs(message.macs);
      return runner.setAddresses(message.addresses);
    case 'ready':
      return gateController.setReady(message.ready, message.awaited);
    case 'mirror':
      mirrorClient?.close();
      mirrorClient = new MirrorClient(message.port);
      return;
    case 'renew':
      return gateController.repeat();
    case 'uplink':
      return uplink.watch(message.place);
    default:
      message satisfies never;
  }
});
socket.on('message', (packet, from) => runner.packet(packet, from.address));
socket.bind({ address, port }, () => post({ kind: 'listening' }));
