/**
 * What many EIPs at once cost, in the lab, with four nodes: policies with an EIP of each family of their own, created together. How long
 * until every one of them is in force, whether an EIP changed hands meanwhile, and how much work the whole cluster did for it.
 * Twice as many may take no more than twice the time. `many-eips.ts [COUNT...]`: a round for each count, 500 1000 500 1000 when absent.
 */
import { instanceOf } from '../lab/host/instance.ts';
import { silent } from '../lab/host/progress.ts';
import { install } from '../lab/install.ts';
import { startLab } from '../lab/lab.ts';
import { type Burst, Crowd, restSeconds } from './many-eips/crowd.ts';

const counts = process.argv.slice(2).map(Number);
const [fewer, more] = [500, 1_000];
const rounds = counts.length > 0 ? counts : [fewer, more, fewer, more];
const agentLimits = { restPercent: 8, linesPerEip: 1 };

const lab = await startLab({ name: 'bench-many-eips', gateways: 2, workers: 2 });
try {
  const set = ['config.feature.enableIPv6=true'];
  await install({ instance: instanceOf(lab.name), programs: lab.programs, set, progress: silent });
  const bursts: Burst[] = [];
  await using crowd = await Crowd.open(lab);
  for (const count of rounds) {
    const burst = await crowd.burst(count);
    print(burst);
    bursts.push(burst);
  }
  if (!judge(bursts)) process.exitCode = 1;
} finally {
  await lab.down();
}

function print(burst: Burst): void {
  const { count, load, createdMs, doneMs, moved, exact, work, agents } = burst;
  console.log(`${count} EIPs at once, load ${load.toFixed(1)}`);
  console.log(`  in force after ${seconds(doneMs)}; the calls took ${seconds(createdMs)}`);
  console.log(`  moved ${moved}; exact in the kernels ${exact}`);
  for (const [what, number] of Object.entries(work)) console.log(`  ${what} ${number}`);
  for (const { node, cpuSeconds, restPercent, rssMb } of agents) {
    const cost = `${cpuSeconds.toFixed(1)} s of processor time, then ${restPercent.toFixed(1)} % of a core`;
    console.log(`  agent of ${node}: ${cost}, ${rssMb.toFixed(0)} MB ${restSeconds} s later`);
  }
}

/** Prints what was seen beside what is promised; true when every promise is kept. */
function judge(bursts: readonly Burst[]): boolean {
  const timeOf = (wanted: number): number =>
    Math.min(...bursts.filter(({ count }) => count === wanted).map(({ doneMs }) => doneMs));
  const ratio = timeOf(more) / (2 * timeOf(fewer));
  const restPercent = Math.max(...bursts.flatMap(({ agents }) => agents.map((agent) => agent.restPercent)));
  const lines = Math.max(...bursts.map(({ count, work }) => work['lines of agents'] / count));
  const twice = [`${more} / 2 x ${fewer}`, ratio <= 1, `${ratio.toFixed(2)}, best ones; limit 1`] as const;
  const bars = [
    ['EIPs that moved', bursts.every(({ moved }) => moved === 0), bursts.map(({ moved }) => moved).join(', ')],
    ['not as decided', bursts.every(({ count, exact }) => exact === count), 'all of them in the kernels'],
    ...(Number.isFinite(ratio) ? [twice] : []),
    ['agents at rest', restPercent <= agentLimits.restPercent, `${restPercent.toFixed(1)} %, limit 8 % of a core`],
    ['lines per EIP', lines <= agentLimits.linesPerEip, `${lines.toFixed(2)} of all agents, limit 1`],
  ] as const;
  for (const [what, isKept, seen] of bars) console.log(`  ${what.padEnd(16)} ${seen}: ${isKept ? 'kept' : 'NOT KEPT'}`);
  return bars.every(([, isKept]) => isKept);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
