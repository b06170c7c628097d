/**
 * Benchmark: our informer beside the one of @kubernetes/client-node, for 5,000 and 20,000 pods.
 *
 *   node bench/informer.ts [rounds]
 *
 * The in-memory API server runs in a child process, and so does every measured client; clients take turns, and the
 * median of the rounds is printed. Both run from source on the same Node with the same flags. The baseline caches
 * whole pods, because it has no projection; ours keeps namespace, name, labels, node, host network, phase and
 * addresses, which is what the controller uses, and an index by node. Both hold every pod at the end.
 *
 * Ends with code 1 when ours is slower or needs more than 60 % of the baseline's memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const sizes = [5_000, 20_000];
const memoryLimit = 0.6;
const timeLimit = 1;
const clients = ['client-node', 'ours'] as const;
type Client = (typeof clients)[number];

const serverLine = z.object({ url: z.string(), averageBytes: z.number() });
const clientLine = z.object({ objects: z.number(), syncMs: z.number(), rssMb: z.number(), peakMb: z.number() });
/** One run of one client. */
export type Measurement = z.infer<typeof clientLine>;

const rounds = Number(process.argv[2] ?? 5);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: node bench/informer.ts [rounds]   rounds is a whole number from 1 on');
  process.exit(2);
}

let isMet = true;
console.log(`Node ${process.version}, median of ${rounds} rounds; baseline: @kubernetes/client-node\n`);
console.log('| pods | measured | baseline | ours | ours / baseline | limit |');
console.log('|---|---|---|---|---|---|');
for (const size of sizes) isMet = (await measureSize(size)) && isMet;
console.log(isMet ? '\nThe requirement is met.' : '\nThe requirement is NOT met.');
process.exitCode = isMet ? 0 : 1;

async function measureSize(size: number): Promise<boolean> {
  const server = startChild('server', [String(size)]);
  try {
    const { url, averageBytes } = serverLine.parse(await firstLine(server));
    const measured: Record<Client, Measurement[]> = { 'client-node': [], ours: [] };
    for (let round = 0; round < rounds; round += 1) {
      for (const client of clients) measured[client].push(await measureClient(client, url, size));
    }
    const label = `${size.toLocaleString('en')} of ${(averageBytes / 1024).toFixed(1)} KB`;
    const isFast = printRow(label, 'time to sync (ms)', measured, ({ syncMs }) => syncMs, timeLimit);
    const isSmall = printRow(label, 'RSS after GC (MB)', measured, ({ rssMb }) => rssMb, memoryLimit);
    printRow(label, 'peak RSS (MB)', measured, ({ peakMb }) => peakMb, undefined);
    return isFast && isSmall;
  } finally {
    server.kill();
  }
}

async function measureClient(client: Client, url: string, size: number): Promise<Measurement> {
  const child = startChild(client, [url]);
  const ended = once(child, 'exit');
  const measurement = clientLine.parse(await firstLine(child));
  await ended;
  if (measurement.objects !== size) throw new Error(`${client} holds ${measurement.objects} of ${size} pods`);
  return measurement;
}

function printRow(
  label: string,
  what: string,
  measured: Readonly<Record<Client, readonly Measurement[]>>,
  pick: (measurement: Measurement) => number,
  limit: number | undefined,
): boolean {
  const baseline = median(measured['client-node'].map(pick));
  const ours = median(measured.ours.map(pick));
  const ratio = ours / baseline;
  const limitText = limit === undefined ? '' : `${limit.toFixed(2)}`;
  console.log(
    `| ${label} | ${what} | ${baseline.toFixed(0)} | ${ours.toFixed(0)} | ${ratio.toFixed(2)} | ${limitText} |`,
  );
  return limit === undefined || ratio <= limit;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

function startChild(name: string, args: readonly string[]): ChildProcess {
  const script = fileURLToPath(new URL(`informer/${name}.ts`, import.meta.url));
  return spawn(process.execPath, ['--expose-gc', script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Returns the first line of a child's output as JSON; rejects when it ends without one. */
async function firstLine(child: ChildProcess): Promise<unknown> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += chunk;
    if (text.includes('\n')) return JSON.parse(text);
  }
  throw new Error(`a child ended without an answer (code ${child.exitCode})`);
}
