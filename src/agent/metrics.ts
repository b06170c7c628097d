/**
 * The metrics of an agent. What the kernel counts is read from it at a scrape, not before; policies and EIPs without a
 * packet have no series, so that a worker of a large cluster exports what it carries and not what exists.
 */
import type { Ip } from '../core/ip/index.ts';
import type { PolicyKey } from '../core/view.ts';
import type { Count, TableCounters } from '../dataplane/nft/counters.ts';
import type { LoopHooks } from '../runtime/control/loop.ts';
import { observeLoop } from '../runtime/control/loop-metrics.ts';
import { messageOf } from '../runtime/process/bug.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { MetricDefinition } from '../runtime/process/metric-definitions.ts';
import type { Collect, Instruments } from '../runtime/process/metrics.ts';
import type { ApplierHooks } from './applier.ts';
import type { Outcome } from './keeper.ts';
import type { Kernel } from './kernel.ts';

const define = {
  passSeconds: {
    name: 'sallyport_node_pass_seconds',
    help: 'Duration of one pass: gather, decide, apply.',
    labels: ['result'],
  },
  passAge: {
    name: 'sallyport_node_pass_input_age_seconds',
    help: 'Time from the first change that asked for a pass to its end, when the kernel reflects it.',
    labels: [],
  },
  changes: {
    name: 'sallyport_node_changes_total',
    help: 'Changes made to the kernel because something was to be changed, by part.',
    labels: ['part'],
  },
  repairs: {
    name: 'sallyport_node_drift_repairs_total',
    help: 'Changes of somebody else to our part of the kernel that were put back, by part.',
    labels: ['part'],
  },
  problems: {
    name: 'sallyport_node_problems',
    help: 'What the agent could not do, by reason.',
    labels: ['reason'],
  },
  eips: {
    name: 'sallyport_node_eips',
    help: 'EIPs that the node holds (state held), and those that it is to hold and may not claim (state unclaimed).',
    labels: ['state'],
  },
  conflicts: {
    name: 'sallyport_eip_conflicts_total',
    help: 'Answers of other machines for an EIP that the node is to hold or holds.',
    labels: ['eip'],
  },
  policyPackets: {
    name: 'sallyport_policy_packets_total',
    help: 'Packets that pods of this node have sent under a policy.',
    labels: ['policy'],
  },
  policyBytes: {
    name: 'sallyport_policy_bytes_total',
    help: 'Bytes that pods of this node have sent under a policy.',
    labels: ['policy'],
  },
  eipPackets: {
    name: 'sallyport_eip_packets_total',
    help: 'Packets that left this node with an EIP (sent) or came back to it (received).',
    labels: ['eip', 'direction'],
  },
  eipBytes: {
    name: 'sallyport_eip_bytes_total',
    help: 'Bytes that left this node with an EIP (sent) or came back to it (received).',
    labels: ['eip', 'direction'],
  },
  drops: {
    name: 'sallyport_dropped_packets_total',
    help: 'Packets that were dropped because they could not leave with their EIP, by reason.',
    labels: ['reason'],
  },
  conntrackEntries: {
    name: 'sallyport_conntrack_entries',
    help: 'Connections in the connection table of the node.',
    labels: [],
  },
  conntrackLimit: {
    name: 'sallyport_conntrack_limit',
    help: 'Connections that fit into the connection table of the node.',
    labels: [],
  },
  conntrackFailures: {
    name: 'sallyport_conntrack_failures_total',
    help: 'New connections of the node that were lost: no source port was free (insert_failed) or no room (dropped).',
    labels: ['kind'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** What the metrics are made from. */
export interface AgentMetricsDeps {
  readonly instruments: Instruments;
  readonly kernel: Pick<Kernel, 'nftables' | 'conntrack'>;
  readonly clock: Clock;
  readonly log: Log;
  /** slot -> the policy that has it */
  readonly policyBySlot: () => ReadonlyMap<number, PolicyKey>;
  readonly outcome: () => Outcome | undefined;
}

/** Where the parts of the agent tell what they did. */
export interface AgentMetrics {
  readonly loop: LoopHooks;
  readonly applier: Pick<ApplierHooks, 'changed' | 'repaired'>;
  conflict(ip: Ip): void;
}

/** A scrape asks for several metrics that come from one reading. */
const readingMs = 1_000;

/** Makes the metrics; they read the kernel only when they are asked. */
export const createAgentMetrics = (deps: AgentMetricsDeps): AgentMetrics => {
  const { instruments, kernel, clock, log, policyBySlot, outcome } = deps;
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
  return hooksOf(instruments);
};

const hooksOf = ({ counter, histogram }: Instruments): AgentMetrics => {
  const changes = counter(define.changes);
  const repairs = counter(define.repairs);
  const conflicts = counter(define.conflicts);
  return {
    loop: observeLoop({ histogram }, define),
    applier: {
      changed: (part, count) => changes.inc({ part }, count),
      repaired: (part, count) => repairs.inc({ part }, count),
    },
    conflict: (eip) => conflicts.inc({ eip }),
  };
};

type SetValue = Parameters<Collect>[0];

/** The same answer to everybody who asks within a short time. */
const cached = <T>(clock: Clock, ask: () => Promise<T>): (() => Promise<T>) => {
  let last: { readonly atMs: number; readonly answer: Promise<T> } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs - last.atMs > readingMs) last = { atMs: nowMs, answer: ask() };
    return last.answer;
  };
};
