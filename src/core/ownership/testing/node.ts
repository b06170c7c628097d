/** A node of a simulated network: its agent, its clock and its kernel, which holds what it was told to for as long as a lease. */
import type { Ip } from '../../ip/index.ts';
import type { Ownership } from '../ownership.ts';
import type { EipHold, Input, OwnershipPlan } from '../port.ts';
import type { Chance } from './chance.ts';

export interface Node {
  readonly name: string;
  readonly index: number;
  /** Local time is `offsetMs + rate * time`. It goes on while the machine is suspended. */
  readonly rate: number;
  offsetMs: number;
  /** Undefined while the agent does not run. */
  agent: Ownership | undefined;
  incarnation: number;
  isPowered: boolean;
  isPaused: boolean;
  pausedAtMs: number;
  /** Its process waits for a processor: what is sent to it waits too, and so do its timers. */
  isWaiting: boolean;
  /** The whole machine stands still, its kernel too. */
  isSuspended: boolean;
  /** For how long it has, by its own clock; the time-outs of its kernel do not count that. And how much of it the agent has seen. */
  suspendedMs: number;
  seenSuspendedMs: number;
  hasApi: boolean;
  /** What the kernel holds, and until when by the clock of its time-outs; and by the node's clock, as the agent knows. */
  kernel: ReadonlyMap<Ip, Omit<EipHold, 'eip'>>;
  leaseUntilMs: number;
  heldUntilMs: number;
  /** By the node's clock: until when others may rely on what runs of its agent before this one have promised. */
  promisedUntilMs: number;
  /** The node was not itself until then: its agent had been down or stopped. */
  excusedUntilMs: number;
  plan: OwnershipPlan;
  isTieWanted: boolean;
  tieRound: number;
  readonly inbox: Input[];
  /** The earliest wake on the agenda. */
  wakeAtMs: number;
}

export const createNode = (name: string, index: number, skew: number, chance: Chance): Node => ({
  name,
  index,
  rate: 1 + chance.between(-skew, skew),
  offsetMs: chance.between(0, 100_000),
  agent: undefined,
  incarnation: 0,
  isPowered: true,
  isPaused: false,
  pausedAtMs: -Infinity,
  isWaiting: false,
  promisedUntilMs: -Infinity,
  isSuspended: false,
  suspendedMs: 0,
  seenSuspendedMs: 0,
  hasApi: true,
  kernel: new Map(),
  leaseUntilMs: -Infinity,
  heldUntilMs: Infinity,
  excusedUntilMs: -Infinity,
  plan: { electorate: { generation: 0, voters: [], hasApi: false }, gateways: [], nodes: [], eips: [] },
  isTieWanted: false,
  tieRound: 0,
  inbox: [],
  wakeAtMs: Infinity,
});

/** What the clock of a node shows. */
export const localMs = (node: Node, timeMs: number): number => node.offsetMs + node.rate * timeMs;

/** The clock of the time-outs of its kernel: it stands still with the machine. */
export const kernelMs = (node: Node, timeMs: number): number => localMs(node, timeMs) - node.suspendedMs;

/** Whether the kernel has not let go by itself. */
export const isKernelHolding = (node: Node, timeMs: number): boolean =>
  node.isPowered && !node.isSuspended && kernelMs(node, timeMs) < node.leaseUntilMs;

/**
 * Whether the kernel answers who asks whether it is there. One that was told to hold EIPs and has let go, because nobody has told it
 * again, does not.
 */
export const answersEchoes = (node: Node, timeMs: number): boolean =>
  node.isPowered && !node.isSuspended && (node.kernel.size === 0 || isKernelHolding(node, timeMs));

/** Tells the kernel what to hold. The lease begins with the first of it, as in src/agent/heartbeat/gate-controller.ts. */
export const holdInKernel = (node: Node, held: readonly EipHold[], timeMs: number, leaseMs: number): void => {
  const nowMs = localMs(node, timeMs);
  if (held.length === 0) node.heldUntilMs = Infinity;
  else if (node.heldUntilMs === Infinity) node.heldUntilMs = nowMs + leaseMs;
  node.kernel = new Map(held.map(({ eip, ...rest }) => [eip, rest]));
  node.leaseUntilMs = kernelMs(node, timeMs) + node.heldUntilMs - nowMs;
};

/** The same for another lease. */
export const renewInKernel = (node: Node, timeMs: number, leaseMs: number): void => {
  if (node.kernel.size === 0) return;
  node.heldUntilMs = localMs(node, timeMs) + leaseMs;
  node.leaseUntilMs = kernelMs(node, timeMs) + leaseMs;
};
