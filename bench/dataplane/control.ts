/**
 * Benchmark: what a change costs until it is in the kernel of a worker. Planner, difference and nft are the agent's own
 * code. An empty call of nft stands beside it, because much of a small change is starting a program.
 *
 *   node bench/dataplane/control.ts [--strict]
 *
 * The limits are for the wall clock, which on a busy machine tells more about the others: the load average is printed,
 * and the processor time of this process with the programs it started. With --strict the exit code is 1 unless every
 * limit is kept.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { interruptible } from '../../lab/host/interrupt.ts';
import { progressOn } from '../../lab/host/progress.ts';
import { createNodePlanner } from '../../src/core/node/desired-for.ts';
import type { NodeInput } from '../../src/core/node/input.ts';
import { projectPod, projectPolicy } from '../../src/core/project/index.ts';
import { putPolicy, step } from '../../src/core/testing/objects.ts';
import { memoryStateFile } from '../../src/dataplane/state-file.ts';
import { type Cluster, clusterOf, inputFor, type Known, podObject, policyFor } from './cluster.ts';
import { openNode } from './node.ts';
import { makeSite, removeLeftSites, type Site } from './site.ts';
import { Stopwatch } from './stopwatch.ts';
import { workloadOf } from './workload.ts';

const parent = { kind: 'interface', name: 'eth0' } as const;
const extraPod = { ipv4: '10.244.254.1', ipv6: 'fd44::254:1' };

const { values: options } = parseArgs({ options: { strict: { type: 'boolean', default: false } } });
const progress = progressOn(process.stderr);
const sites: Site[] = [];
let isMet = true;
const cleanUp = async () => {
  for (const site of sites) await site.remove();
};
await interruptible(
  () => run().finally(cleanUp),
  cleanUp,
  () => progress.line('interrupted: removing the namespaces'),
);
console.log(isMet ? '\nAll limits are kept.' : '\nNot all limits are kept.');
if (!isMet && options.strict) process.exitCode = 1;

async function run(): Promise<void> {
  await removeLeftSites();
  console.log(`milliseconds; load average ${(loadavg()[0] ?? 0).toFixed(1)}`);
  await measureFirstSync(1_000, 5);
  const cluster = clusterOf(5_000);
  const some = { ...cluster.known, pods: cluster.known.pods.filter((_, index) => index % 10 === 0).slice(0, 100) };
  await measureChanges(cluster, some, { rounds: 20, limitMs: 30 });
  await measureChanges(cluster, cluster.known, { rounds: 5 });
  console.log(`\nload average at the end ${(loadavg()[0] ?? 0).toFixed(1)}`);
}

/** From nothing, as at the first start of an agent on a node. */
async function measureFirstSync(size: number, rounds: number): Promise<void> {
  const { known } = clusterOf(size);
  console.log(`\nfirst sync of ${size} policies and ${known.pods.length} pods on this worker`);
  const site = await newSite('first');
  const plan = new Stopwatch();
  const apply = new Stopwatch();
  const both = new Stopwatch();
  for (let round = 0; round < rounds; round += 1) {
    const node = openNode(site.namespaceOf('worker'));
    const input = inputFor('worker', known, await node.network.readHost(parent));
    await both.time(async () => {
      const desired = await plan.time(() => createNodePlanner()(input));
      await apply.time(() => node.apply(desired));
    });
    await node.table.remove();
    await node.network.remove();
  }
  report('plan', plan);
  report('apply', apply);
  report('together', both, { share: 0.5, limitMs: 500 });
}

/** Single changes beside many policies, and a restart that changes nothing. */
async function measureChanges(
  cluster: Cluster,
  known: Known,
  { rounds, limitMs }: { readonly rounds: number; readonly limitMs?: number },
): Promise<void> {
  console.log(`\n${known.policies.length} policies, ${known.pods.length} pods on this worker`);
  const site = await newSite(`changes-${known.pods.length}`);
  const file = memoryStateFile();
  const node = openNode(site.namespaceOf('worker'), file);
  const plan = createNodePlanner();
  const input = inputFor('worker', known, await node.network.readHost(parent));
  await node.apply(plan(input));

  const applyNext = async (next: NodeInput): Promise<void> => {
    const { changed } = await node.table.apply(plan(next).table);
    if (changed === 0) throw new Error('a change has changed nothing');
  };
  const pod = projectPod(podObject('extra', 'policy-7', extraPod));
  const policies = [...input.policies, extraPolicy(cluster)];
  const onePod = new Stopwatch();
  const onePolicy = new Stopwatch();
  const empty = new Stopwatch();
  for (let round = 0; round < rounds; round += 1) {
    await onePod.time(() => applyNext({ ...input, pods: [...input.pods, pod] }));
    await onePod.time(() => applyNext(input));
    await onePolicy.time(() => applyNext({ ...input, policies }));
    await onePolicy.time(() => applyNext(input));
    await empty.time(() => site.run('worker', ['nft', '-f', '-'], ''));
  }
  report('one pod comes or goes', onePod, limitMs === undefined ? undefined : { share: 0.95, limitMs });
  report('one policy comes or goes', onePolicy);
  report('nft that does nothing', empty);

  const restart = new Stopwatch();
  await restart.time(async () => {
    const again = openNode(site.namespaceOf('worker'), file);
    const { changed, wasReplaced } = await again.table.apply(createNodePlanner()(input).table);
    if (changed > 0 || wasReplaced) throw new Error(`a restart has changed ${changed} elements of the table`);
  });
  report('restart: plan, read, compare', restart);
}

/** One policy more, with an EIP and a slot from the controller's plan. The world has it from now on. */
function extraPolicy({ world }: Cluster) {
  const [model] = workloadOf(2);
  if (model === undefined) throw new Error('a workload of two policies has none');
  const object = policyFor({ ...model, name: 'extra' });
  putPolicy(world, object);
  step(world);
  return projectPolicy(world.policies.get(`${object.metadata.namespace}/extra`) ?? object);
}

async function newSite(name: string): Promise<Site> {
  const site = await makeSite(`control-${name}`);
  sites.push(site);
  return site;
}

function report(what: string, watch: Stopwatch, bar?: { readonly share: number; readonly limitMs: number }): void {
  const text = `p50 ${watch.wallMs(0.5).toFixed(1)}  p95 ${watch.wallMs(0.95).toFixed(1)}  cpu ${watch.cpuMs().toFixed(1)}`;
  line(what, text, watch.wallMs(bar?.share ?? 0.5), bar?.limitMs);
}

function line(what: string, text: string, value: number, limit: number | undefined): void {
  const holds = limit === undefined || value <= limit;
  isMet &&= holds;
  const verdict = limit === undefined ? '' : `   limit ${limit}${holds ? '' : '   NOT KEPT'}`;
  console.log(`  ${what.padEnd(32)}${text.padEnd(40)}${verdict}`.trimEnd());
}
