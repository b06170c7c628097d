/** The metrics of the operator: how its passes go, and how many objects are in which state. */
import type { LoopHooks } from '../runtime/control/loop.ts';
import { observeLoop } from '../runtime/control/loop-metrics.ts';
import type { Instruments } from '../runtime/process/instruments.ts';
import type { MetricDefinition } from '../runtime/process/metric-definitions.ts';
import type { OperatorCaches } from './inputs/caches.ts';

const define = {
  passSeconds: {
    name: 'sallyport_operator_pass_seconds',
    help: 'Duration of one pass: plan, compare, write.',
    labels: ['result'],
  },
  passAge: {
    name: 'sallyport_operator_pass_input_age_seconds',
    help: 'Time from the first change that asked for a pass to its end.',
    labels: [],
  },
  egresses: {
    name: 'sallyport_operator_egresses',
    help: 'BCSEgress objects by state.',
    labels: ['state'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** Makes the metrics and returns the hooks of the loop. */
export const createOperatorMetrics = ({ gauge, histogram }: Instruments, { egresses }: OperatorCaches): LoopHooks => {
  gauge(define.egresses, (set) => {
    const groups = Map.groupBy(egresses.store.values(), ({ status }) => status?.state ?? 'Pending');
    for (const [state, members] of groups) set({ state }, members.length);
  });
  return observeLoop({ histogram }, define);
};
