/**
 * Instruments are counters, gauges and histograms made from definitions. Only this file and src/runtime/metrics know
 * prom-client; components see plain interfaces.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { durationBuckets, type MetricDefinition } from './metric-definitions.ts';

/** Sets one value during a scrape. */
export type SetValue = (labels: Readonly<Record<string, string>>, value: number) => void;

/** Gives all values of a metric at a scrape; what it does not set is gone. */
export type Collect = (set: SetValue) => void | Promise<void>;

/** The kinds of instrument, made from a definition. */
export interface Instruments {
  counter(definition: MetricDefinition): Counter;
  histogram(definition: MetricDefinition): Histogram;
  /** With `collect` the values are asked for at every scrape. */
  gauge(definition: MetricDefinition, collect?: Collect): Gauge;
  /** A counter that somebody else counts, such as the kernel: its values are asked for at every scrape. */
  foreignCounter(definition: MetricDefinition, collect: Collect): void;
}

/** Makes the instruments of a registry. */
export function instruments(registry: Registry): Instruments {
  const base = ({ name, help, labels }: MetricDefinition) => ({
    name,
    help,
    labelNames: [...labels],
    registers: [registry],
  });
  return {
    counter: (definition) => new Counter(base(definition)),
    histogram: (definition) => new Histogram({ ...base(definition), buckets: [...durationBuckets] }),
    gauge(definition, collect) {
      if (collect === undefined) return new Gauge(base(definition));
      const gauge: Gauge = new Gauge({
        ...base(definition),
        async collect() {
          gauge.reset();
          await collect((labels, value) => gauge.set(labels, value));
        },
      });
      return gauge;
    },
    foreignCounter(definition, collect) {
      const counter: Counter = new Counter({
        ...base(definition),
        async collect() {
          counter.reset();
          await collect((labels, value) => counter.inc(labels, value));
        },
      });
    },
  };
}
