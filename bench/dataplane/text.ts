/** Figures of a run as text for people. */
import { type Bar, best, type Judged, median, type Samples, throughputColumn, type Verdict } from './bars.ts';

/** A row per way, a column per kind of traffic: median (best). */
export const table = (samples: Samples): string => {
  const columnNames = [...new Set([...samples.values()].flatMap((ofWay) => [...ofWay.keys()]))];
  const cell = (column: string, values: readonly number[] | undefined): string => {
    if (values === undefined) return '-';
    const digits = column === throughputColumn ? 1 : 0;
    return `${median(values).toFixed(digits)} (${best(column, values).toFixed(digits)})`;
  };
  return aligned([
    ['', ...columnNames],
    ...[...samples].map(([way, ofWay]) => [way, ...columnNames.map((column) => cell(column, ofWay.get(column)))]),
  ]);
};

/** A line per bar: the limit, the ratios of each way, the verdict. */
export const barLines = (judged: readonly { readonly bar: Bar; readonly ways: readonly Judged[] }[]): string =>
  aligned(
    judged.map(({ bar, ways }) => [
      bar.title,
      `${bar.is === 'most' ? '<=' : '>='} ${bar.limit}`,
      ways.map(({ way, ofMedians, ofBest }) => `${way}: ${ofMedians.toFixed(2)} (${ofBest.toFixed(2)})`).join('  '),
      worst(ways),
    ]),
  );

const worst = (ways: readonly Judged[]): Verdict =>
  (['missed', 'noisy'] as const).find((verdict) => ways.some((judged) => judged.verdict === verdict)) ?? 'met';

/** Columns under each other; the first is text, the others stand right. */
const aligned = (rows: readonly (readonly string[])[]): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(pad).join('  ').trimEnd()).join('\n');
};
