/**
 * The metrics of an agent. What the kernel counts is read from it at a scrape, not before; policies and EIPs without a
 * packet have no series, so that a worker of a large cluster exports what it carries and not what exists.
 */

import type { EipConflict, PolicyKey } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { UplinkLoss } from '../../core/node/uplink.ts';
import type { Count, TableCounters } from '../../dataplane/nft/counters.ts';
import type { LoopHooks } from '../../runtime/control/loop.ts';
import { observeLoop } from '../../runtime/control/loop-metrics.ts';
import { messageOf } from '../../runtime/process/bug.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Instruments, SetValue } from '../../runtime/process/instruments.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { MetricDefinition } from '../../runtime/process/metric-definitions.ts';
import type { OwnershipEvent } from '../failover/failover-client.ts';
import type { Kernel } from '../kernel/kernel.ts';
import type { MirrorStats } from '../mirror/port.ts';
import type { ApplierHooks } from '../reconcile/applier.ts';
import type { Outcome } from '../reconcile/node-reconciler.ts';
import { agentMetricDefinitions as define } from './metric-definitions.ts';

/** What the metrics are made from. */
export interface AgentMetricsDeps {
  readonly instruments: Instruments;
  readonly kernel: Pick<Kernel, 'nftables' | 'conntrack'>;
  readonly clock: Clock;
  readonly log: Log;
  /** slot -> the policy that has it */
  readonly policyBySlot: () => ReadonlyMap<number, PolicyKey>;
  readonly outcome: () => Outcome | undefined;
  /** EIPs of this node that another machine claims. */
  readonly conflicts: () => readonly EipConflict[];
  /** The longest silence that this node grants to another one; undefined while nodes do not watch each other. */
  readonly silenceMs: () => number | undefined;
  readonly uplinkLosses: () => readonly UplinkLoss[];
  /** How the mirror stands; undefined on a node without one. */
  readonly mirror: () => MirrorStats | undefined;
}

/** Where the parts of the agent tell what they did. */
export interface AgentMetrics {
  readonly loop: LoopHooks;
  readonly applier: Pick<ApplierHooks, 'changed' | 'repaired' | 'cut'>;
  conflict(ip: Ip): void;
  /** An EIP has come here or has been let go. */
  ownership(happening: OwnershipEvent): void;
  /** A longer silence is granted than before. */
  widened(): void;
  /** Packets go to a new owner. */
  switched(durationMs: number): void;
}

/** A scrape asks for several metrics that come from one reading. */
const readingMs = 1_000;

/** Makes the metrics; they read the kernel only when they are asked. */
export const createAgentMetrics = (deps: AgentMetricsDeps): AgentMetrics => {
  const { instruments, kernel, clock, log, policyBySlot, outcome, conflicts, uplinkLosses, silenceMs, mirror } = deps;
  const read = <T>(what: string, reading: () => Promise<T>): (() => Promise<T | undefined>) =>
    cached(clock, () =>
      reading().catch((error: unknown) => {
        // No table yet, or a program that is missing: the report says so, and a scrape goes on without the values.
        log.debug({ component: 'metrics' }, `${what} cannot be read: ${messageOf(error)}`);
        return undefined;
      }),
    );
  const counters = read('counters', () => kernel.nftables.counters());
  const usage = read('the connection table', () => kernel.conntrack.readUsage());
  const fromTable = (definition: MetricDefinition, give: (counted: TableCounters, set: SetValue) => void): void =>
    instruments.foreignCounter(definition, async (set) => {
      const counted = await counters();
      if (counted !== undefined) give(counted, set);
    });
  const byPolicy = (pick: (count: Count) => number) => (counted: TableCounters, set: SetValue) => {
    const policies = policyBySlot();
    for (const [slot, count] of counted.slots) {
      const policy = policies.get(slot);
      if (policy !== undefined && count.packets > 0) set({ policy }, pick(count));
    }
  };
  const byEip = (pick: (count: Count) => number) => (counted: TableCounters, set: SetValue) => {
    for (const [eip, { sent, received }] of counted.eips) {
      if (sent.packets > 0) set({ eip, direction: 'sent' }, pick(sent));
      if (received.packets > 0) set({ eip, direction: 'received' }, pick(received));
    }
  };
  fromTable(
    define.policyPackets,
    byPolicy(({ packets }) => packets),
  );
  fromTable(
    define.policyBytes,
    byPolicy(({ bytes }) => bytes),
  );
  fromTable(
    define.eipPackets,
    byEip(({ packets }) => packets),
  );
  fromTable(
    define.eipBytes,
    byEip(({ bytes }) => bytes),
  );
  fromTable(define.drops, ({ drops }, set) => {
    for (const [reason, { packets }] of Object.entries(drops)) set({ reason }, packets);
  });
  instruments.gauge(define.conntrackEntries, async (set) => {
    const used = await usage();
    if (used !== undefined) set({}, used.entries);
  });
  instruments.gauge(define.conntrackLimit, async (set) => {
    const used = await usage();
    if (used !== undefined) set({}, used.limit);
  });
  instruments.foreignCounter(define.conntrackFailures, async (set) => {
    const used = await usage();
    if (used === undefined) return;
    set({ kind: 'insert_failed' }, used.insertFailed);
    set({ kind: 'dropped' }, used.dropped);
  });
  instruments.gauge(define.problems, (set) => {
    const byReason = Map.groupBy(outcome()?.problems ?? [], ({ finding }) => finding.reason);
    for (const [reason, found] of byReason) set({ reason }, found.length);
  });
  instruments.gauge(define.eips, (set) => {
    const desired = outcome()?.desired;
    set({ state: 'held' }, desired?.claims.length ?? 0);
    set({ state: 'unclaimed' }, desired?.unclaimed.length ?? 0);
  });
  instruments.gauge(define.silence, (set) => {
    const grantedMs = silenceMs();
    if (grantedMs !== undefined) set({}, grantedMs / 1_000);
  });
  instruments.gauge(define.inUse, (set) => {
    for (const { ip, mac } of conflicts()) set({ eip: ip, mac }, 1);
  });
  instruments.gauge(define.uplinkLost, (set) => {
    for (const { interface: name, family } of uplinkLosses()) set({ interface: name, family: `ipv${family}` }, 1);
  });
  instruments.gauge(define.mirrored, (set) => {
    const stats = mirror();
    if (stats === undefined) return;
    set({ side: 'owner' }, stats.mirrored);
    set({ side: 'successor' }, stats.held);
  });
  instruments.gauge(define.mirrorLag, (set) => {
    const stats = mirror();
    if (stats !== undefined) set({}, stats.lagSeconds);
  });
  instruments.gauge(define.mirrorBehind, (set) => {
    const stats = mirror();
    if (stats !== undefined) set({}, stats.behind);
  });
  instruments.foreignCounter(define.mirrorEvents, (set) => {
    const stats = mirror();
    if (stats === undefined) return;
    set({ kind: 'made' }, stats.written);
    set({ kind: 'refused' }, stats.refused);
    set({ kind: 'dropped' }, stats.dropped);
    set({ kind: 'reset' }, stats.resets);
  });
  return hooksOf(instruments);
};

const hooksOf = ({ counter, histogram }: Instruments): AgentMetrics => {
  const changes = counter(define.changes);
  const repairs = counter(define.repairs);
  const cuts = counter(define.cuts);
  const conflicts = counter(define.conflicts);
  const [takeovers, yields] = [counter(define.takeovers), counter(define.yields)];
  const [detection, claim] = [histogram(define.detection), histogram(define.claim)];
  const switching = histogram(define.switch);
  const widenings = counter(define.widenings);
  return {
    loop: observeLoop({ histogram }, define),
    applier: {
      changed: (part, count) => changes.inc({ part }, count),
      repaired: (part, count) => repairs.inc({ part }, count),
      cut: (connections) => cuts.inc({}, connections),
    },
    conflict: (eip) => conflicts.inc({ eip }),
    ownership: ({ reason, cause, took }) => {
      (reason === 'EipTakenOver' ? takeovers : yields).inc({ cause });
      if (took === undefined || cause !== 'silence') return;
      detection.observe({}, took.detectionMs / 1_000);
      claim.observe({}, took.claimMs / 1_000);
    },
    widened: () => widenings.inc({}),
    switched: (durationMs) => switching.observe({}, durationMs / 1_000),
  };
};

/** The same answer to everybody who asks within a short time. */
const cached = <T>(clock: Clock, ask: () => Promise<T>): (() => Promise<T>) => {
  let last: { readonly atMs: number; readonly answer: Promise<T> } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs - last.atMs > readingMs) last = { atMs: nowMs, answer: ask() };
    return last.answer;
  };
};
