/**
 * Benchmark: the controller beside a real API server, with objects without processes.
 *
 *   node bench/controller.ts [policies ...]        1,000 and 5,000 when none are given
 *
 * 50 nodes, 10,000 pods, 10 gateways. Policies are created as fast as the API server takes them; measured until the
 * last status is there. Then 40 single policies, one after the other; then everything is deleted and must be free
 * again. There is no baseline that can run here beside it; the limits are those of the project.
 */
import { performance } from 'node:perf_hooks';
import { startBareControlPlane } from '../lab/bare-control-plane.ts';
import { until } from '../lab/host/wait.ts';
import type { KubeClient } from '../src/runtime/kube/client.ts';
import { createKubeClient } from '../src/runtime/kube/http-client.ts';
import { Informer } from '../src/runtime/kube/informer.ts';
import { loadAccess } from '../src/runtime/kube/load-access.ts';
import type { KubeObject, Resource } from '../src/runtime/kube/resource.ts';
import { systemClock } from '../src/runtime/process/clock.ts';
import {
  gateway,
  gateways,
  inParallel,
  installCrds,
  makeNamespace,
  makeNodes,
  makePods,
  namespace,
  policies,
  policy,
  reportTunnels,
  slices,
} from './controller/cluster.ts';
import { type ControllerProcess, startController } from './controller/process.ts';

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 5_000];
if (sizes.some((size) => !Number.isInteger(size) || size < 1)) {
  console.error('usage: node bench/controller.ts [policies ...]   each a whole number from 1 on');
  process.exit(2);
}
const nodeCount = 50;
const podCount = 10_000;
const gatewayCount = 10;
const singleCount = 40;
const apps = 1_000;

interface Policy extends KubeObject {
  readonly status?: { readonly eip?: { readonly ipv4?: string }; readonly node?: string };
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
  const stop = new AbortController();
  try {
    await installCrds(client);
    await until({ what: 'the CRDs', limitMs: 30_000 }, async () => (await count(client, policies)) === 0);
    await makeNamespace(client, namespace);
    await makeNodes(client, nodeCount);
    await makePods(client, podCount, apps);
    controller = await startController(plane.kubeconfig, namespace);
    await until(
      { what: 'a tunnel per node', limitMs: 60_000 },
      async () => (await reportTunnels(client)) === nodeCount,
    );
    await inParallel(gatewayCount, 4, (index) => client.create(gateways, gateway(index)));
    const served = new Informer<true>({
      client,
      resource: policies,
      // Only what has an address and a node counts as served.
      project: (object: KubeObject) => (isServed(object) ? true : undefined),
      clock: systemClock,
      random: Math.random,
    });
    const following = served.run(stop.signal);
    await served.synced;
    const servedCount = () => served.store.size;

    console.log(`\n${size} policies, ${podCount} pods, ${nodeCount} nodes, ${gatewayCount} gateways`);
    const writes = () =>
      controller?.metric('sallyport_api_requests_total', { verb: /^(?!get|list|watch)/ }) ?? Promise.resolve(0);
    const reconnects = () => controller?.metric('sallyport_informer_reconnects') ?? Promise.resolve(0);
    const before = {
      reconnects: await reconnects(),
      writes: await writes(),
      cpu: controller.cpuSeconds(),
      startMs: performance.now(),
    };
    await inParallel(size, 64, (index) =>
      client.create(policies, policy(`policy-${index}`, `app-${index % apps}`, index % gatewayCount)),
    );
    const createdMs = performance.now();
    await until({ what: 'the last status', limitMs: 600_000, everyMs: 20 }, () => servedCount() === size);
    const servedMs = performance.now();
    // Slices and gateway views follow the statuses: the writes are counted when nothing is written any more.
    const after = await settled(writes);
    report('create calls', `${((createdMs - before.startMs) / 1000).toFixed(1)} s`);
    report('last status after the first call', `${((servedMs - before.startMs) / 1000).toFixed(1)} s`);
    report('last status after the last call', `${((servedMs - createdMs) / 1000).toFixed(2)} s`);
    check('API writes per policy', (after - before.writes) / size, 3);
    report('controller CPU', `${(controller.cpuSeconds() - before.cpu).toFixed(1)} s`);
    check('controller RSS (MB)', controller.rssMb(), 250);
    report('controller peak RSS', `${controller.peakRssMb().toFixed(0)} MB`);
    check('watch reconnects', (await reconnects()) - before.reconnects, 0);

    const singles: number[] = [];
    for (let index = 0; index < singleCount; index += 1) {
      const startMs = performance.now();
      await client.create(policies, policy(`single-${index}`, `app-${index}`, index % gatewayCount));
      await until(
        { what: 'one status', limitMs: 30_000, everyMs: 2 },
        () => served.store.get(`${namespace}/single-${index}`) === true,
      );
      singles.push(performance.now() - startMs);
    }
    singles.sort((a, b) => a - b);
    report('one more policy, p50', `${(singles[Math.floor(singleCount * 0.5)] ?? 0).toFixed(0)} ms`);
    check('one more policy, p95 (ms)', singles[Math.floor(singleCount * 0.95)] ?? Number.NaN, 200);

    const deleteMs = performance.now();
    await inParallel(size, 64, (index) => client.delete(policies, { name: `policy-${index}`, namespace }));
    await inParallel(singleCount, 16, (index) => client.delete(policies, { name: `single-${index}`, namespace }));
    await until(
      { what: 'everything to be free again', limitMs: 300_000, everyMs: 200 },
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
    await controller?.stop();
    await client.close();
    await plane.stop();
  }
}

function isServed(object: KubeObject): boolean {
  // The schema has checked it: the status of a policy is a PolicyStatus.
  const { status } = object as Policy;
  return status?.eip?.ipv4 !== undefined && status.node !== undefined;
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
  console.log(`  ${what.padEnd(36)}${value}`);
}

function check(what: string, value: number, limit: number): void {
  const holds = value <= limit;
  isMet &&= holds;
  report(what, `${Number.isInteger(value) ? value : value.toFixed(2)}   limit ${limit}${holds ? '' : '   NOT MET'}`);
}
