/** Samples beside what is promised. */
import { loadavg } from 'node:os';

/** A promise: what is measured, and the longest that it may take. */
export interface Bar {
  readonly what: string;
  readonly limitMs: number;
  /** Figures of the implementation that the project started from, measured in the same kind of lab. */
  readonly baseline?: string;
}

/** Prints samples with their 50th and 95th percentile; true when the latter keeps the promise. */
export function judge({ what, limitMs, baseline }: Bar, samplesMs: readonly number[]): boolean {
  const [p50, p95] = [quantile(samplesMs, 0.5), quantile(samplesMs, 0.95)];
  const isKept = p95 <= limitMs;
  console.log(`${what}, ${samplesMs.length} rounds, load ${loadavg()[0]?.toFixed(1)}`);
  console.log(`  ours      p50 ${p50} ms, p95 ${p95} ms, all: ${samplesMs.toSorted((a, b) => a - b).join(' ')}`);
  if (baseline !== undefined) console.log(`  baseline  ${baseline} (not in this run)`);
  console.log(`  limit     p95 ${limitMs} ms: ${isKept ? 'kept' : 'NOT KEPT'}`);
  return isKept;
}

/** The smallest sample that is not below the given share of all samples. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
