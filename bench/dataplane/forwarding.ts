/**
 * Benchmark: what a packet costs on its way out, with 10, 1,000 and 5,000 policies of ten pods each, beside no gateway,
 * the smallest working gateway and the iptables rules that the project started from.
 *
 *   node bench/dataplane/forwarding.ts [--rounds 7] [--policies 10,1000,5000] [--strict]
 *
 * All ways stand at the same time and take turns. Figures are CPU time of the sending thread, which on veth pairs carries
 * each packet through every kernel up to the receiving socket. Only ratios within one run mean something. With --strict
 * the exit code is 1 unless every bar is met.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { interruptible } from '../../lab/host/interrupt.ts';
import { progressOn } from '../../lab/host/progress.ts';
import { installPackages } from '../../lab/setup/debian.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { judge, throughputColumn, type Verdict } from './bars.ts';
import { direct, masquerade, smallestGateway, type Way } from './baselines.ts';
import { columns, measure, serve, throughput, verify } from './measure.ts';
import { ours } from './ours.ts';
import { promisedBars, seedPolicies } from './promised-bars.ts';
import { seedRules } from './seed-rules.ts';
import { makeSite, removeLeftSites, type Site } from './site.ts';
import { barLines, table } from './text.ts';

const usage = 'usage: node bench/dataplane/forwarding.ts [--rounds N] [--policies N,N,...] [--strict]';
const iperfSeconds = 1;
/** Where a packet costs a hundred times as much, so many of them are exact enough. */
const slowShare = 0.05;

interface Standing {
  readonly way: Way;
  readonly site: Site;
}

interface Options {
  readonly rounds: number;
  readonly sizes: readonly number[];
  readonly isStrict: boolean;
}

const options = readOptions();
const progress = progressOn(process.stderr);
const stop = new AbortController();
const sites: Site[] = [];
const cleanUp = async () => {
  stop.abort();
  for (const site of sites) await site.remove();
};
await interruptible(
  () => run(options).finally(cleanUp),
  cleanUp,
  () => progress.line('interrupted: removing the namespaces'),
);

async function run({ rounds, sizes, isStrict }: Options): Promise<void> {
  await installPackages(progress, ['conntrack', 'ipset', 'iperf3', 'iptables', 'nftables']);
  await removeLeftSites();
  const { loadgen } = await programs();
  const baselines = [direct, masquerade, smallestGateway, seedRules(10), seedRules(seedPolicies)];
  const standing: Standing[] = [];
  for (const way of [...baselines, ...sizes.map(ours)]) standing.push(await stand(way, loadgen));
  const { samples, loads } = await takeTurns(standing, loadgen, rounds);
  const load = `load average ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`;
  console.log(`${rounds} rounds, ${load}; ns of CPU time, median (best); iperf3 in Gbit/s\n`);
  console.log(table(samples));
  const judged = promisedBars(sizes).map((bar) => ({ bar, ways: judge(samples, bar) }));
  console.log(`\nratios of medians (of the best)\n\n${barLines(judged)}`);
  const verdicts: Verdict[] = judged.flatMap((each) => each.ways.map(({ verdict }) => verdict));
  const count = (wanted: Verdict) => verdicts.filter((verdict) => verdict === wanted).length;
  console.log(`\n${count('met')} met, ${count('noisy')} noisy, ${count('missed')} missed`);
  if (isStrict && verdicts.some((verdict) => verdict !== 'met')) process.exitCode = 1;
}

/** Makes a way on a site of its own. It stands when the outside sees the addresses that it promises. */
function stand(way: Way, loadgen: string): Promise<Standing> {
  return progress.step(`build ${way.name}`, async () => {
    const site = await makeSite(way.name.replaceAll(' ', '-'));
    sites.push(site);
    const seen = await way.build(site);
    await serve(site, loadgen, stop.signal);
    await verify(site, loadgen, seen);
    return { way, site };
  });
}

/** Measures everything in each round, with the ways side by side: what disturbs the machine for a while hits them all. */
async function takeTurns(standing: readonly Standing[], loadgen: string, rounds: number) {
  const samples = new Map(standing.map(({ way }) => [way.name, new Map<string, number[]>()]));
  const loads = [loadavg()[0] ?? 0];
  const note = ({ name }: Way, column: string, values: readonly number[]) => {
    const ofWay = samples.get(name);
    ofWay?.set(column, [...(ofWay.get(column) ?? []), ...values]);
  };
  for (let round = 1; round <= rounds; round += 1) {
    await progress.step(`round ${round} of ${rounds}`, async () => {
      for (const column of Object.values(columns)) {
        for (const { way, site } of standing) {
          note(way, column.name, await measure(site, loadgen, column, way.isSlow ? slowShare : 1));
        }
      }
      for (const { way, site } of standing) note(way, throughputColumn, [await throughput(site, iperfSeconds)]);
    });
    loads.push(loadavg()[0] ?? 0);
  }
  return { samples, loads };
}

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: 'string', default: '7' },
        policies: { type: 'string', default: '10,1000,5000' },
        strict: { type: 'boolean', default: false },
      },
    });
    const sizes = values.policies.split(',').map(Number);
    const rounds = Number(values.rounds);
    // Slots have 14 bits, and the pods of more policies would not fit into the pod network.
    const isSize = (size: number) => Number.isInteger(size) && size >= 1 && size <= 6_000;
    if (!sizes.every(isSize)) throw new RangeError('--policies takes whole numbers from 1 to 6000');
    if (!Number.isInteger(rounds) || rounds < 1) throw new RangeError('--rounds takes a whole number from 1 on');
    return { rounds, sizes, isStrict: values.strict };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exit(2);
  }
}
