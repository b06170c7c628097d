/** Measuring one way on its site: what a packet, a flow or a connection costs, and that it arrived. */
import { z } from 'zod';
import { until } from '../../lab/host/wait.ts';
import { machinePrograms } from '../../src/dataplane/program.ts';
import type { Seen } from './baselines.ts';
import { addresses, enter, type Site } from './site.ts';

const { outside, pod } = addresses;
const families = ['ipv4', 'ipv6'] as const;
/** The sender comes before other work of the machine, which would come in between and fill the caches. */
const sender = ['nice', '-n', '-10'] as const;

/** One kind of traffic and how much of it makes one measurement. */
export interface Column {
  readonly name: string;
  readonly from: 'pod' | 'bystander';
  readonly count: number;
  /** Arguments of loadgen. */
  readonly traffic: (count: number) => readonly string[];
  /** How many packets reach the outside for each operation. */
  readonly packets: number;
}

const established = (name: string, from: 'pod' | 'bystander', host: string): Column => ({
  name,
  from,
  count: 20_000,
  traffic: (count) => ['established', host, String(count)],
  packets: 1,
});

/** Each packet is a flow of its own; the ports begin below the ephemeral ones, or there were not enough. */
const flows = (name: string, source: string, host: string): Column => ({
  name,
  from: 'pod',
  count: 15_000,
  traffic: (count) => ['flows', source, host, String(count), '1024'],
  packets: 1,
});

export const columns = {
  established: established('established', 'pod', outside.ipv4),
  established6: established('established IPv6', 'pod', outside.ipv6),
  flow: flows('new flow', pod.ipv4, outside.ipv4),
  flow6: flows('new flow IPv6', pod.ipv6, outside.ipv6),
  connect: {
    name: 'TCP connect',
    from: 'pod',
    count: 1_500,
    traffic: (count) => ['connect', outside.ipv4, String(count)],
    // Two packets of the handshake are the client's, the reset is the third.
    packets: 3,
  },
  bystander: established('bystander', 'bystander', outside.ipv4),
} as const satisfies Record<string, Column>;
export type ColumnName = keyof typeof columns;

/** Starts the servers of the outside; they run until the signal is aborted. */
export async function serve(site: Site, loadgen: string, signal: AbortSignal): Promise<void> {
  const programs = machinePrograms(enter(site.namespaceOf('outside')));
  let isReady = false;
  const serving = programs.follow(
    [loadgen, 'serve'],
    () => {
      isReady = true;
    },
    signal,
  );
  let failure = '';
  serving.then(({ stderr }) => {
    failure = stderr;
  });
  await until(
    { what: `the outside of ${site.name}`, limitMs: 10_000, everyMs: 10, explain: () => failure },
    () => isReady,
  );
  // It serves in turn whoever comes, and prints nothing that says when it is ready: the client tries again.
  programs.follow(['iperf3', '--server'], () => {}, signal);
}

/** Makes sure that the outside sees the addresses that a way promises; throws with what it saw instead. */
export async function verify(site: Site, loadgen: string, seen: Seen): Promise<void> {
  for (const from of ['pod', 'bystander'] as const) {
    for (const family of families) {
      const ask = () => site.run(from, [loadgen, 'ask', outside[family]]);
      // The first packets of a fresh site wait for neighbour discovery and may be lost.
      const answer = await until({ what: `${site.name}: an answer to the ${from}`, limitMs: 8_000 }, ask);
      if (answer.trim() !== seen[from][family]) {
        throw new Error(`${site.name}: the outside sees the ${from} as ${answer.trim()}, not as ${seen[from][family]}`);
      }
    }
  }
}

const costSchema = z.object({ count: z.int(), failed: z.int(), batches: z.array(z.number()) });

/**
 * CPU time of one operation in ns, batch by batch. Throws if one failed or a packet did not reach the outside: a way that
 * drops is cheap.
 */
export async function measure(site: Site, loadgen: string, column: Column, share: number): Promise<readonly number[]> {
  const before = await received(site);
  const printed = await site.run(column.from, [...sender, loadgen, ...column.traffic(Math.ceil(column.count * share))]);
  await forgetConnections(site);
  const { count, failed, batches } = costSchema.parse(JSON.parse(printed));
  const [sent, arrived] = [count * column.packets, (await received(site)) - before];
  if (failed > 0 || arrived < sent) {
    throw new Error(
      `${site.name}, ${column.name}: ${failed} of ${count} failed, ${arrived} of ${sent} packets arrived`,
    );
  }
  return batches;
}

const iperfSchema = z.object({ end: z.object({ sum_received: z.object({ bits_per_second: z.number() }) }) });

/** Throughput of one TCP stream from the pod in Gbit/s, by the wall clock. */
export async function throughput(site: Site, seconds: number): Promise<number> {
  const argv = [...sender, 'iperf3', '--client', outside.ipv4, '--json', '--time', String(seconds)];
  const printed = await until({ what: `iperf3 on ${site.name}`, limitMs: 30_000 }, () => site.run('pod', argv));
  await forgetConnections(site);
  return iperfSchema.parse(JSON.parse(printed)).end.sum_received.bits_per_second / 1e9;
}

/** All namespaces share one table of connections: no measurement may pay for the flows of another. */
async function forgetConnections(site: Site): Promise<void> {
  for (const member of ['worker', 'gateway'] as const) await site.run(member, ['conntrack', '--flush']);
}

const linkSchema = z.tuple([z.object({ stats64: z.object({ rx: z.object({ packets: z.int() }) }) })]);

const received = async (site: Site): Promise<number> =>
  linkSchema.parse(JSON.parse(await site.run('outside', ['ip', '-s', '-j', 'link', 'show', 'dev', 'eth0'])))[0].stats64
    .rx.packets;
