/**
 * How long new connections fail when a gateway node is lost, and how many open ones survive: power off, link down, uplink lost
 * and tunnel cut in turn, the second half of them without an API server. `failover.ts [LOSSES [FILE]]`: what was seen is added to the
 * file, line by line, and all of its lines are judged, so that a hundred losses can be had in pieces.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { losses } from '../lab/faults/losses.ts';
import { FailoverWorld, type Trial, watched } from '../test/e2e/failover-world.ts';
import { quantile } from './egress/bars.ts';

const count = Number(process.argv[2] ?? 100);
const file = process.argv[3];
const limits = { p50Ms: 200, p99Ms: 500, keptShare: 0.99, mixedMs: 1_000 };

const world = await FailoverWorld.start('bench-failover');
try {
  const before = file === undefined ? [] : readSeen(file);
  if (!judge([...before, ...(await lose())])) process.exitCode = 1;
} finally {
  await world.stop();
}

/** One loss, and how busy the machine was. */
interface Seen {
  readonly kind: string;
  readonly load: number;
  readonly trial: Trial;
}

/** What earlier runs have seen; none where there is no file yet. */
function readSeen(path: string): Seen[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  // Written below.
  return lines.map((line) => JSON.parse(line) as Seen);
}

/** All losses, one after the other; each is undone before the next, and nobody gives back what he took over. */
async function lose(): Promise<Seen[]> {
  const trials: Seen[] = [];
  for (let index = 0; index < count; index += 1) {
    if (index === Math.floor(count / 2)) await world.stopApi();
    const loss = losses[index % losses.length] ?? losses[0];
    if (loss === undefined) throw new Error('there is no loss');
    const lost = await world.owner();
    const trial = await world.during(
      () => loss.strike(world.lab, lost),
      (sinceMs) => world.hasLeft(lost, sinceMs),
      { without: loss.leavesPods ? undefined : lost },
    );
    await loss.heal(world.lab, lost);
    await world.untilBack(lost);
    const seen = { kind: loss.name, load: loadavg()[0] ?? 0, trial };
    trials.push(seen);
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(seen)}\n`);
    const outages = trial.suffered.map(({ way, outageMs }) => `${way} ${outageMs}`).join(', ');
    const cut = trial.flows.filter(({ isKept }) => !isKept).map(({ kind, why }) => `${kind} (${why})`);
    console.log(
      `${index + 1} ${lost} ${loss.name}: ${outages} ms${cut.length > 0 ? `; cut off: ${cut.join(', ')}` : ''}`,
    );
  }
  return trials;
}

/** Prints what was seen beside what is promised; true when every promise is kept. */
function judge(trials: readonly Seen[]): boolean {
  const loads = trials.map(({ load }) => load);
  const [least, most] = [Math.min(...loads).toFixed(1), Math.max(...loads).toFixed(1)];
  console.log(`\n${trials.length} losses of a gateway node, load ${least} to ${most}`);
  const outages = trials.flatMap(({ trial }) => trial.suffered.map(({ way, outageMs }) => ({ way, outageMs })));
  const row = (name: string, samplesMs: readonly number[]) => {
    const [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1].map((share) => quantile(samplesMs, share));
    console.log(`  ${name.padEnd(12)} p50 ${p50} ms, p90 ${p90} ms, p99 ${p99} ms, most ${most} ms`);
  };
  for (const way of ['tcp4', 'tcp6', 'udp4', 'udp6']) {
    row(
      way,
      outages.filter((outage) => outage.way.startsWith(way)).map(({ outageMs }) => outageMs),
    );
  }
  for (const { name } of losses) {
    const own = trials.filter(({ kind }) => kind === name).flatMap(({ trial }) => trial.suffered);
    if (own.length > 0) {
      row(
        name,
        own.map(({ outageMs }) => outageMs),
      );
    }
  }
  const all = outages.map(({ outageMs }) => outageMs);
  const flows = trials.flatMap(({ trial }) => trial.flows);
  for (const [kind, own] of [...Map.groupBy(flows, (flow) => flow.kind)].toSorted()) {
    const kept = own.filter(({ isKept }) => isKept).length;
    const gaps = own.filter(({ isKept }) => isKept).map(({ gapMs }) => gapMs);
    console.log(`  ${kind.padEnd(12)} ${kept} of ${own.length} kept, longest silence p50 ${quantile(gaps, 0.5)} ms`);
  }
  const mixed = Math.max(0, ...trials.flatMap(({ trial }) => trial.handOvers.map(({ mixedMs }) => mixedMs)));
  const moves = trials.flatMap(({ trial }) => trial.handOvers).length;
  const keptShare = flows.filter(({ isKept }) => isKept).length / flows.length;
  const bars = [
    ['outage, p50', quantile(all, 0.5) <= limits.p50Ms, `${quantile(all, 0.5)} ms, limit ${limits.p50Ms} ms`],
    ['outage, p99', quantile(all, 0.99) <= limits.p99Ms, `${quantile(all, 0.99)} ms, limit ${limits.p99Ms} ms`],
    [
      'flows kept',
      keptShare >= limits.keptShare,
      `${(100 * keptShare).toFixed(1)} %, limit ${100 * limits.keptShare} %`,
    ],
    ['two owners seen', mixed <= limits.mixedMs, `for ${mixed.toFixed(0)} ms at most, limit ${limits.mixedMs} ms`],
    [
      'hand-overs',
      moves === 2 * trials.length,
      `${moves} of the two EIPs of ${watched.ipv4}, in ${trials.length} losses`,
    ],
  ] as const;
  for (const [what, isKept, seen] of bars) console.log(`  ${what.padEnd(16)} ${seen}: ${isKept ? 'kept' : 'NOT KEPT'}`);
  return bars.every(([, isKept]) => isKept);
}
