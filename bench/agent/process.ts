/** The agent as its own process, and what it costs by /proc. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../lab/host/wait.ts';
import { bundle } from '../../tools/bundle.ts';

export interface AgentProcess {
  /** From the start of the process until it says that the kernel holds what it should. */
  readonly readyMs: number;
  cpuSeconds(): number;
  rssMb(): number;
  peakRssMb(): number;
  /** Resident memory by what it is, in MB; for whoever looks for it. */
  memoryMap(): string;
  stop(): Promise<void>;
}

const ticksPerSecond = 100;
const port = 17_790;

/** Starts it as the image has it in this network namespace, and returns when it is ready. */
export async function startAgent(node: string, kubeconfig: object, nodeOptions: string): Promise<AgentProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const access = join(folder, 'kubeconfig');
  writeFileSync(access, JSON.stringify(kubeconfig));
  const config = join(folder, 'config.yaml');
  writeFileSync(config, 'feature:\n  enableIPv6: true\n  tunnelDetectMethod: interface=eth0\n');
  const { main } = await bundle(join(folder, 'image'));
  const flags = ['--node-name', node, '--config', config, '--kubeconfig', access, '--state-folder', folder];
  const more = ['--health-address', `127.0.0.1:${port}`, '--log-level', 'warn'];
  const startMs = performance.now();
  const child = spawn(process.execPath, [main, 'agent', ...flags, ...more], {
    stdio: ['ignore', 'inherit', 'inherit'],
    // As in a pod: without the certificates that this machine would have Node read, whose memory is the machine's matter.
    env: { ...process.env, NODE_EXTRA_CA_CERTS: undefined, NODE_OPTIONS: nodeOptions },
  });
  const wait = { what: 'the agent to be ready', limitMs: 60_000, everyMs: 10 };
  await until(wait, async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
  const readyMs = performance.now() - startMs;
  const status = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1000;
  return {
    readyMs,
    cpuSeconds: () => {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
      // With the programs that it started and that have ended.
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 15)
        .map(Number);
      return fields.reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond;
    },
    rssMb: () => status('VmRSS'),
    peakRssMb: () => status('VmHWM'),
    memoryMap: () => mapOf(readFileSync(`/proc/${child.pid}/smaps`, 'utf8')),
    stop: async () => {
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      rmSync(folder, { recursive: true });
    },
  };
}

function mapOf(smaps: string): string {
  const byName = new Map<string, number>();
  let name = '';
  for (const line of smaps.split('\n')) {
    const head = /^[0-9a-f]+-[0-9a-f]+ (....) \S+ \S+ \d+\s*(.*)$/.exec(line);
    if (head !== null) name = `${head[2] || 'anonymous'} ${head[1]}`;
    const rss = /^Rss:\s+(\d+)/.exec(line);
    if (rss !== null) byName.set(name, (byName.get(name) ?? 0) + Number(rss[1]) / 1000);
  }
  const sorted = [...byName].filter(([, mb]) => mb >= 0.5).toSorted(([, a], [, b]) => b - a);
  return sorted.map(([what, mb]) => `  ${mb.toFixed(1).padStart(6)}  ${what}`).join('\n');
}
