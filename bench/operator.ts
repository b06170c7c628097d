/**
 * Benchmark of the operator: 1,000 rules, as the proxies of a large cluster would have them.
 *
 *   node bench/operator.ts [--egresses 50] [--rules 20] [--changes 10]
 *
 * A real API server, the operator as a process, and two replicas that plan as proxies do and tell at once that everything is
 * live: so what is measured is the operator and the API server. From the first create until all are Synced, API writes,
 * processor time and memory; then one object after the other beside them. There is no baseline and no bar: figures to watch. Needs
 * root.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { BCSEgressStatus } from '../src/api/bcs-egress.ts';
import { resourceOf } from '../src/api/kinds.ts';
import type { KubeObject } from '../src/runtime/kube/resource.ts';
import { eventually } from '../src/runtime/testing/eventually.ts';
import { OperatorWorld } from '../test/e2e/operator-world.ts';
import { median } from './dataplane/bars.ts';
import { usageOf } from './proxy/load.ts';

const { values: flags } = parseArgs({
  options: {
    egresses: { type: 'string', default: '50' },
    rules: { type: 'string', default: '20' },
    changes: { type: 'string', default: '10' },
  },
});
const [egresses, rules, changes] = [Number(flags.egresses), Number(flags.rules), Number(flags.changes)];
const limitMs = 300_000;
type Egress = KubeObject & { readonly status?: BCSEgressStatus };

/** Of ten rules seven are TCP rules, which get a Service and an EndpointSlice each, and three are hosts. */
const specOf = (index: number, count: number): object => {
  const all = Array.from({ length: count }, (_, rule) => ({ rule, id: index * count + rule }));
  return {
    tcp: all
      .filter(({ rule }) => rule % 10 < 7)
      .map(({ rule, id }) => ({
        name: `db-${rule}`,
        sourceport: 10_000 + id,
        destport: 5432,
        ips: '198.51.100.1,198.51.100.2',
      })),
    http: all
      .filter(({ rule }) => rule % 10 >= 7)
      .map(({ rule, id }) => ({ name: `web-${rule}`, host: `host-${id}.example.com`, tls: rule % 2 === 0 })),
  };
};

// The heap that Node gives itself in a container with the memory limit of the chart.
process.env.NODE_OPTIONS = '--max-old-space-size=128';
const world = await OperatorWorld.start();
try {
  const operator = await world.operator();
  const pid = operator.process.pid ?? 0;
  /** Resource and verb -> how often; without what is only read, and without the lease, which is renewed whatever happens. */
  const writes = async (): Promise<Map<string, number>> => {
    const text = await operator.page('/metrics');
    const found = text.matchAll(/^sallyport_api_requests_total\{verb="(\w+)",resource="([^"]+)".*\} (\d+)$/gm);
    const counts = new Map<string, number>();
    for (const [, verb = '', resource = '', count] of found) {
      if (['get', 'list', 'watch'].includes(verb) || resource.startsWith('leases')) continue;
      const name = `${verb} ${resource}`;
      counts.set(name, (counts.get(name) ?? 0) + Number(count));
    }
    return counts;
  };
  const sinceText = async (before: ReadonlyMap<string, number>, per: number): Promise<string> => {
    const grown = [...(await writes())]
      .map(([name, count]) => [name, (count - (before.get(name) ?? 0)) / per] as const)
      .filter(([, count]) => count > 0);
    const total = grown.reduce((sum, [, count]) => sum + count, 0);
    return `${total.toFixed(2)} API writes (${grown.map(([name, count]) => `${name} ${count.toFixed(2)}`).join(', ')})`;
  };
  const rssMb = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  const untilAllSynced = (count: number) =>
    eventually(
      `${count} objects are Synced`,
      async () => {
        const states = (await world.list<Egress>(resourceOf('BCSEgress'))).map(({ status }) => status?.state);
        return states.length === count && states.every((state) => state === 'Synced');
      },
      limitMs,
    );

  await world.egress('shop/first', specOf(1_000, 1));
  for (const ip of ['10.61.2.1', '10.61.2.2']) await world.replica(ip);
  await untilAllSynced(1);
  const before = { writes: await writes(), cpuMs: usageOf(pid).cpuMs, rssMb: rssMb() };
  const beganMs = performance.now();
  await Promise.all(
    Array.from({ length: egresses }, (_, index) => world.egress(`shop/egress-${index}`, specOf(index, rules))),
  );
  const createdMs = performance.now() - beganMs;
  await untilAllSynced(egresses + 1);
  const syncedMs = performance.now() - beganMs;
  const total = egresses * rules;
  const cpuMs = usageOf(pid).cpuMs - before.cpuMs;
  console.log(
    `operator: ${total} rules in ${egresses} objects: created in ${createdMs.toFixed(0)} ms, all Synced after ` +
      `${syncedMs.toFixed(0)} ms; per rule ${await sinceText(before.writes, total)}; processor time ` +
      `${cpuMs} ms, memory ${rssMb().toFixed(0)} MB (${before.rssMb.toFixed(0)} MB before)`,
  );

  const [writesBefore, cpuBefore] = [await writes(), usageOf(pid).cpuMs];
  const times: number[] = [];
  for (let change = 0; change < changes; change += 1) {
    const startMs = performance.now();
    await world.egress(`shop/more-${change}`, specOf(40_000 + change, 1));
    await world.until(`shop/more-${change}`, 'Synced', limitMs);
    times.push(performance.now() - startMs);
  }
  const sorted = times.toSorted((a, b) => a - b);
  console.log(
    `operator: one object of one TCP rule beside them: to Synced p50 ${median(times).toFixed(0)} ms, most ` +
      `${sorted.at(-1)?.toFixed(0)} ms; each ${await sinceText(writesBefore, changes)}, ` +
      `${((usageOf(pid).cpuMs - cpuBefore) / changes).toFixed(0)} ms of processor time`,
  );
} finally {
  await world.stop();
}
