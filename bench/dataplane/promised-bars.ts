/** What the project promises about the cost of a packet, as ratios to the baselines of the same run. */
import { type Bar, throughputColumn } from './bars.ts';
import { masquerade, smallestGateway, type Way } from './baselines.ts';
import { type ColumnName, columns } from './measure.ts';
import { ours } from './ours.ts';
import { seedRules } from './seed-rules.ts';

/** The seed's rules are compared at this size; with more policies a measurement would take minutes. */
export const seedPolicies = 1_000;

const everyColumn = ['established', 'established6', 'flow', 'flow6', 'connect', 'bystander'] as const;

/** The bars for ours with these numbers of policies. */
export function promisedBars(sizes: readonly number[]): Bar[] {
  const nameOf = (column: ColumnName) => columns[column].name;
  const all = sizes.map((size) => ours(size).name);
  const against = (way: Way, limit: number, column: ColumnName): Bar => ({
    title: `${nameOf(column)} / ${way.name}`,
    ways: all,
    column: nameOf(column),
    baseline: { way: way.name, column: nameOf(column) },
    limit,
    is: 'most',
  });
  const [smallest, largest] = [Math.min(...sizes), Math.max(...sizes)].map((size) => ours(size).name);
  const grown = (column: ColumnName): Bar => ({
    title: `${nameOf(column)} / ${smallest}`,
    ways: [largest ?? ''],
    column: nameOf(column),
    baseline: { way: smallest ?? '', column: nameOf(column) },
    limit: 1.15,
    is: 'most',
  });
  const seed = seedRules(seedPolicies).name;
  // Turned around, so that the figure says how many times cheaper ours is.
  const cheaperThanSeed = (column: ColumnName): Bar => ({
    title: `${nameOf(column)}: ${seed} / ours`,
    ways: [seed],
    column: nameOf(column),
    baseline: { way: ours(seedPolicies).name, column: nameOf(column) },
    limit: 10,
    is: 'least',
  });
  return [
    against(smallestGateway, 1.4, 'established'),
    against(smallestGateway, 1.4, 'established6'),
    against(smallestGateway, 1.5, 'flow'),
    against(smallestGateway, 1.5, 'flow6'),
    against(smallestGateway, 1.5, 'connect'),
    against(masquerade, 1.3, 'bystander'),
    ...(sizes.length > 1 ? everyColumn.map(grown) : []),
    ...(sizes.includes(seedPolicies)
      ? (['established', 'flow', 'connect', 'bystander'] as const).map(cheaperThanSeed)
      : []),
    {
      title: `${throughputColumn} / ${smallestGateway.name}`,
      ways: all,
      column: throughputColumn,
      baseline: { way: smallestGateway.name, column: throughputColumn },
      limit: 0.9,
      is: 'least',
    },
  ];
}
