/**
 * Bars: what the project promises about forwarding, as ratios within one run, and whether measurements keep them.
 * A ratio is made twice, from medians and from the best measurements. Medians carry the noise of a busy machine, the
 * best ones can be luck; a bar is met when both say so, missed when neither does, and else the run was too noisy.
 */

/** Measurements by way and column. */
export type Samples = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>;

export interface Bar {
  readonly title: string;
  /** Ways to judge, each by the column against the baseline's. */
  readonly ways: readonly string[];
  readonly column: string;
  readonly baseline: { readonly way: string; readonly column: string };
  readonly limit: number;
  /** `most`: the ratio may be at most the limit. */
  readonly is: 'most' | 'least';
}

export type Verdict = 'met' | 'missed' | 'noisy';

export interface Judged {
  readonly way: string;
  readonly ofMedians: number;
  readonly ofBest: number;
  readonly verdict: Verdict;
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
};

/** The least disturbed measurement: the lowest cost, or the highest throughput. */
export const best = (column: string, values: readonly number[]): number =>
  column === throughputColumn ? Math.max(...values) : Math.min(...values);

export const throughputColumn = 'iperf3';

/** Judges each way of a bar. A way or column without measurements is missed: nothing was shown. */
export const judge = (samples: Samples, bar: Bar): Judged[] => {
  const valuesOf = (way: string, column: string) => samples.get(way)?.get(column) ?? [];
  const base = valuesOf(bar.baseline.way, bar.baseline.column);
  return bar.ways.map((way) => {
    const values = valuesOf(way, bar.column);
    const ofMedians = median(values) / median(base);
    const ofBest = best(bar.column, values) / best(bar.baseline.column, base);
    const holds = [ofMedians, ofBest].map((ratio) => (bar.is === 'most' ? ratio <= bar.limit : ratio >= bar.limit));
    const isShown = values.length > 0 && base.length > 0;
    const verdict = isShown && holds.every(Boolean) ? 'met' : isShown && holds.some(Boolean) ? 'noisy' : 'missed';
    return { way, ofMedians, ofBest, verdict };
  });
};
