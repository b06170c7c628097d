/**
 * Benchmark: the controller beside a real API server, with objects without processes.
 *
 *   node bench/controller.ts [policies ...] [--brief] [--pods N] [--profile FOLDER]
 *   1,000 and 5,000 policies beside 10,000 pods when no number is given
 *
 * With --brief it ends after the single policies beside the others; with --profile the controller writes where its time
 * went into the folder when it ends.
 *
 * 50 nodes, 10,000 pods, 10 gateways. First 40 single policies on the empty cluster, one after the other. Then policies
 * are created as fast as the API server takes them; measured until the last status is there. Then the agents, which the
 * benchmark plays, report that their kernels are in step. Then 40 more single policies; then everything is deleted and
 * must be free again. The baseline for lost watches are a process that only reads (controller/reader.ts) and kubectl; for
 * the rest there is none that can run here, and the limits are those of the project.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { startBareControlPlane } from '../lab/bare-control-plane.ts';
import { installCrds } from '../lab/crds.ts';
import { until } from '../lab/host/wait.ts';
import { compareRevisions } from '../src/core/status/revision.ts';
import type { KubeClient } from '../src/runtime/kube/client.ts';
import { createKubeClient } from '../src/runtime/kube/http-client.ts';
import { Informer } from '../src/runtime/kube/informer.ts';
import { loadAccess } from '../src/runtime/kube/load-access.ts';
import type { KubeObject, Resource } from '../src/runtime/kube/resource.ts';
import { systemClock } from '../src/runtime/process/clock.ts';
import { closedWatches, startForeignReader } from './controller/closed-watches.ts';
import {
  gateway,
  gateways,
  inParallel,
  makeNamespace,
  makeNodes,
  makePods,
  namespace,
  type Played,
  policies,
  policy,
  reportTunnels,
  slices,
} from './controller/cluster.ts';
import { type ControllerProcess, startController } from './controller/process.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    brief: { type: 'boolean', default: false },
    pods: { type: 'string', default: '10000' },
    profile: { type: 'string' },
  },
});
const sizes = positionals.length > 0 ? positionals.map(Number) : [1_000, 5_000];
if ([...sizes, Number(flags.pods)].some((size) => !Number.isInteger(size) || size < 1)) {
  console.error(
    'usage: node bench/controller.ts [policies ...] [--brief] [--pods N] [--profile FOLDER]   numbers from 1 on',
  );
  process.exit(2);
}
const nodeCount = 50;
const podCount = Number(flags.pods);
const gatewayCount = 10;
const singleCount = 40;
/** Until a single new policy has its status, at p95. */
const statusLimitMs = 200;
const apps = 1_000;
/** Enough to keep the API server busy: more at a time only makes its queues longer. */
const createWidth = 16;

interface Policy extends KubeObject {
  readonly status?: {
    readonly eip?: { readonly ipv4?: string };
    readonly node?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
/** What is kept of a policy that is served. */
interface Served {
  readonly isProgrammed: boolean;
  readonly revision: string;
  readonly eip: string;
  readonly node: string;
}
interface Gateway extends KubeObject {
  readonly status?: { readonly ipUsage?: { readonly ipv4Total?: number; readonly ipv4Free?: number } };
}

let isMet = true;
for (const size of sizes) await measure(size);
console.log(isMet ? '\nAll limits are met.' : '\nNot all limits are met.');
process.exitCode = isMet ? 0 : 1;

async function measure(size: number): Promise<void> {
  const plane = await startBareControlPlane();
  const access = await loadAccess({ path: plane.kubeconfig });
  const rateLimit = { perSecond: 100_000, burst: 100_000 };
  const client = createKubeClient({ access, userAgent: 'bench', clock: systemClock, random: Math.random, rateLimit });
  let controller: ControllerProcess | undefined;
  let reader: ChildProcess | undefined;
  let foreign: ReturnType<typeof startForeignReader> | undefined;
  const stop = new AbortController();
  try {
    await installCrds(client);
    await makeNamespace(client, namespace);
    await makeNodes(client, nodeCount);
    await makePods(client, podCount, apps);
    controller = await startController(plane.kubeconfig, namespace, flags.profile);
    await until(
      { what: 'a tunnel per node', limitMs: 60_000 },
      async () => (await reportTunnels(client)) === nodeCount,
    );
    await inParallel(gatewayCount, 4, (index) => client.create(gateways, gateway(index)));
    const served = new Informer<Served>({
      client,
      resource: policies,
      project: servedOf,
      clock: systemClock,
      random: Math.random,
    });
    const following = served.run(stop.signal);
    await served.synced;
    reader = await startReader(plane.kubeconfig);
    const { metric, cpuSeconds, rssMb, peakRssMb, ended: signal } = controller;
    // Without those that go on for ever: the lease is renewed whatever happens.
    const writes = () =>
      metric('sallyport_api_requests_total', { verb: /^(?!get|list|watch)/, resource: /^(?!leases)/ });
    const lostWatches = () => metric('sallyport_informer_reconnects', { informer: /^policies$/ });
    const relists = () => metric('sallyport_informer_relists');

    console.log(`\n${size} policies, ${podCount} pods, ${nodeCount} nodes, ${gatewayCount} gateways`);
    checkP95('one policy on an empty cluster', await singles(client, served, 'first'), statusLimitMs);
    await settled(writes);

    const before = { lost: await lostWatches(), relists: await relists(), writes: await writes(), cpu: cpuSeconds() };
    const closedBefore = await closedWatches(plane);
    foreign = startForeignReader(plane);
    const startMs = performance.now();
    await inParallel(size, createWidth, (index) =>
      client.create(policies, policy(`policy-${index}`, `app-${index % apps}`, index % gatewayCount)),
    );
    const createdMs = performance.now();
    const isThere = () => served.store.size === size + singleCount;
    await until({ what: 'the last status', limitMs: 600_000, everyMs: 20, signal }, isThere);
    const servedMs = performance.now();
    // Slices and gateway views follow the statuses: the writes are counted when nothing is written any more.
    const written = await settled(writes);
    report('create calls', `${((createdMs - startMs) / 1000).toFixed(1)} s`);
    report('last status after the first call', `${((servedMs - startMs) / 1000).toFixed(1)} s`);
    report('last status after the last call', `${((servedMs - createdMs) / 1000).toFixed(2)} s`);
    check('API writes per policy', (written - before.writes) / size, 3);
    report('controller CPU', `${(cpuSeconds() - before.cpu).toFixed(1)} s`);
    check('controller RSS (MB)', rssMb(), 250);
    report('controller peak RSS', `${peakRssMb().toFixed(0)} MB`);
    check('policies read anew from the start', (await relists()) - before.relists, 0);
    // A watch that the API server closes for everybody says nothing about us.
    const [byReader, byKubectl] = [Number(await endReader(reader)), foreign.end()];
    check('watches lost', (await lostWatches()) - before.lost, Math.max(byReader, byKubectl));
    report('watches lost by a mere reader, by kubectl', `${byReader}, ${byKubectl}`);
    report('watches closed by the API server in all', String((await closedWatches(plane)) - closedBefore));

    await reportTunnels(client, playedOf(served));
    const isProgrammed = () => [...served.store.values()].every((one) => one.isProgrammed);
    await until({ what: 'Programmed', limitMs: 600_000, everyMs: 100, signal }, isProgrammed);
    const programmed = await settled(writes);
    check('API writes per policy for Programmed', (programmed - written) / (size + singleCount), 1);
    await reportTunnels(client, playedOf(served));
    check('API writes after the next reports', (await settled(writes)) - programmed, 0);

    checkP95(`one policy beside ${size}`, await singles(client, served, 'last'), statusLimitMs);
    if (flags.brief) return;

    const deleteMs = performance.now();
    const names = [...served.store.keys()].map((key) => key.slice(namespace.length + 1));
    await inParallel(names.length, createWidth, (index) =>
      client.delete(policies, { name: names[index] ?? '', namespace }),
    );
    await until(
      { what: 'everything to be free again', limitMs: 300_000, everyMs: 200, signal },
      async () => (await usedAddresses(client)) === 0,
    );
    report('delete all until all is free', `${((performance.now() - deleteMs) / 1000).toFixed(1)} s`);
    check('policies left', await count(client, policies), 0);
    // Slices go with their owners by the garbage collector, which is not part of a bare control plane.
    report('slices for the garbage collector', String(await count(client, slices)));
    stop.abort();
    await following;
  } finally {
    stop.abort();
    reader?.kill();
    foreign?.end();
    await controller?.stop();
    await client.close();
    await plane.stop();
  }
}

/** How long things took in milliseconds, the shortest first. */
interface Singles {
  readonly untilServed: readonly number[];
  /** The create calls alone: what the API server takes of it before anybody can act. */
  readonly calls: readonly number[];
}

/** Creates single policies, each when the one before is served. */
async function singles(client: KubeClient, served: Informer<Served>, prefix: string): Promise<Singles> {
  const untilServed: number[] = [];
  const calls: number[] = [];
  for (let index = 0; index < singleCount; index += 1) {
    const name = `${prefix}-${index}`;
    const there = Promise.withResolvers<void>();
    const unsubscribe = served.subscribe(({ key }) => (key === `${namespace}/${name}` ? there.resolve() : undefined));
    const startMs = performance.now();
    await client.create(policies, policy(name, `app-${index}`, index % gatewayCount));
    calls.push(performance.now() - startMs);
    await there.promise;
    untilServed.push(performance.now() - startMs);
    unsubscribe();
  }
  const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b);
  if (flags.brief) report('  in order (ms)', untilServed.map((ms) => ms.toFixed(0)).join(' '));
  return { untilServed: sorted(untilServed), calls: sorted(calls) };
}

async function startReader(kubeconfig: string): Promise<ChildProcess> {
  const file = join(import.meta.dirname, 'controller', 'reader.ts');
  const reader = spawn(process.execPath, [file, kubeconfig], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(reader.stdout, 'data');
  return reader;
}

/** What the reader says at its end: the number of watches that it lost. */
async function endReader({ stdin, stdout }: ChildProcess): Promise<string> {
  stdin?.end();
  let text = '';
  for await (const chunk of stdout ?? []) text += chunk;
  return text.trim();
}

/** Only what has an address and a node counts as served. */
function servedOf(object: KubeObject): Served | undefined {
  // The schema has checked it: the status of a policy is a PolicyStatus.
  const { status, metadata } = object as Policy;
  if (status?.eip?.ipv4 === undefined || status.node === undefined) return undefined;
  const isProgrammed = status.conditions?.some((one) => one.type === 'Programmed' && one.status === 'True') ?? false;
  return { isProgrammed, revision: metadata.resourceVersion ?? '', eip: status.eip.ipv4, node: status.node };
}

/** What agents would say that have applied all policies and hold the EIPs of them. */
function playedOf(served: Informer<Served>): Played {
  const all = [...served.store.values()];
  const eips = new Map<string, Set<string>>();
  for (const { node, eip } of all) eips.set(node, (eips.get(node) ?? new Set()).add(eip));
  const revisions = all.map(({ revision }) => revision);
  return { appliedRevision: revisions.reduce((a, b) => (compareRevisions(a, b) < 0 ? b : a), '0'), eips };
}

async function count(client: KubeClient, resource: Resource): Promise<number> {
  let total = 0;
  for await (const page of client.list(resource)) total += page.items.length;
  return total;
}

async function usedAddresses(client: KubeClient): Promise<number> {
  let used = 0;
  for await (const page of client.list<Gateway>(gateways)) {
    for (const { status } of page.items)
      used += (status?.ipUsage?.ipv4Total ?? Number.NaN) - (status?.ipUsage?.ipv4Free ?? 0);
  }
  return used;
}

/** The value once it has stayed the same for three looks. */
async function settled(read: () => Promise<number>): Promise<number> {
  let last = await read();
  let same = 0;
  return until({ what: 'writes to end', limitMs: 120_000, everyMs: 500 }, async () => {
    const now = await read();
    same = now === last ? same + 1 : 0;
    last = now;
    return same >= 3 ? { value: now } : undefined;
  }).then(({ value }) => value);
}

function report(what: string, value: string): void {
  console.log(`  ${what.padEnd(42)}${value}`);
}

function checkP95(what: string, { untilServed, calls }: Singles, limit: number): void {
  const at = (values: readonly number[], part: number) => values[Math.floor(values.length * part)] ?? Number.NaN;
  report(`${what}, p50`, `${at(untilServed, 0.5).toFixed(0)} ms (fastest ${at(untilServed, 0).toFixed(0)} ms)`);
  check(`${what}, p95 (ms)`, at(untilServed, 0.95), limit);
  report('  of that the create call', `p50 ${at(calls, 0.5).toFixed(0)} ms, p95 ${at(calls, 0.95).toFixed(0)} ms`);
}

function check(what: string, value: number, limit: number): void {
  const holds = value <= limit;
  isMet &&= holds;
  report(what, `${Number.isInteger(value) ? value : value.toFixed(2)}   limit ${limit}${holds ? '' : '   NOT MET'}`);
}
