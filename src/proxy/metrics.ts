/** The metrics of a replica: what its report says, at every scrape, and how the passes go. */
import type { ProxyReport, RuleReport } from '../api/proxy-report.ts';
import type { LoopHooks } from '../runtime/control/loop.ts';
import { observeLoop } from '../runtime/control/loop-metrics.ts';
import type { Instruments } from '../runtime/process/instruments.ts';
import type { MetricDefinition } from '../runtime/process/metric-definitions.ts';

const define = {
  passSeconds: {
    name: 'sallyport_proxy_pass_seconds',
    help: 'Duration of one pass: plan, apply, verify.',
    labels: ['result'],
  },
  passAge: {
    name: 'sallyport_proxy_pass_input_age_seconds',
    help: 'Time from the first change that asked for a pass to its end, when the engine serves it.',
    labels: [],
  },
  rules: {
    name: 'sallyport_proxy_rules',
    help: 'Rules by state; those in error by reason.',
    labels: ['state', 'reason'],
  },
  actives: {
    name: 'sallyport_proxy_rule_actives',
    help: 'Open connections of a rule.',
    labels: ['rule'],
  },
  connections: {
    name: 'sallyport_proxy_rule_connections_total',
    help: 'Connections and requests that a rule let through since the engine started.',
    labels: ['rule'],
  },
  bytes: {
    name: 'sallyport_proxy_rule_bytes_total',
    help: 'Bytes of a rule since the engine started, towards the outside (sent) and from it (received).',
    labels: ['rule', 'direction'],
  },
  refused: {
    name: 'sallyport_proxy_refused_total',
    help: 'Requests, connections and names that no rule allows or that may not be reached, by a word for why.',
    labels: ['word'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** Makes the metrics and returns the hooks of the loop. Rules that nobody used have no series but in `rules`. */
export const createProxyMetrics = (
  { gauge, foreignCounter, histogram }: Instruments,
  report: () => ProxyReport | undefined,
): LoopHooks => {
  const used = (): readonly RuleReport[] => (report()?.rules ?? []).filter(({ connections }) => connections > 0);
  gauge(define.rules, (set) => {
    const groups = Map.groupBy(report()?.rules ?? [], ({ state, reason = '' }) => `${state} ${reason}`);
    for (const [group, rules] of groups) {
      const [state = '', reason = ''] = group.split(' ');
      set({ state, reason }, rules.length);
    }
  });
  gauge(define.actives, (set) => {
    for (const { id, actives } of used()) set({ rule: id }, actives);
  });
  foreignCounter(define.connections, (set) => {
    for (const { id, connections } of used()) set({ rule: id }, connections);
  });
  foreignCounter(define.bytes, (set) => {
    for (const { id, bytesSent, bytesReceived } of used()) {
      set({ rule: id, direction: 'sent' }, bytesSent);
      set({ rule: id, direction: 'received' }, bytesReceived);
    }
  });
  foreignCounter(define.refused, (set) => {
    for (const [word, count] of Object.entries(report()?.refused ?? {})) set({ word }, count);
  });
  return observeLoop({ histogram }, define);
};
