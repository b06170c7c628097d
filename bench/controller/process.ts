/** The controller as its own process, and what it costs: its own metrics and /proc. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../lab/host/wait.ts';
import { bundle } from '../../tools/bundle.ts';

export interface ControllerProcess {
  /** Sum of the samples of a metric whose labels hold all the given ones. */
  metric(name: string, labels?: Readonly<Record<string, RegExp>>): Promise<number>;
  cpuSeconds(): number;
  rssMb(): number;
  peakRssMb(): number;
  /** Aborted when it ends, so that nobody waits for what it would have done: on a starved machine it loses its lease. */
  readonly ended: AbortSignal;
  stop(): Promise<void>;
}

const clockTicksPerSecond = 100;
/** The heap that Node gives itself in a container with the memory limit of the chart, and what the chart sets besides. */
const heapFlags = ['--max-old-space-size=256', '--max-semi-space-size=16'];

/**
 * Starts it as the image has it, and returns when it is ready. Heartbeats are off: the nodes have no agents. With a folder
 * it writes a profile there when it ends.
 */
export async function startController(
  kubeconfig: string,
  namespace: string,
  profile: string | undefined,
): Promise<ControllerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const config = join(folder, 'config.yaml');
  writeFileSync(config, 'feature:\n  enableIPv6: false\n  gatewayFailover:\n    enable: false\n');
  const { main } = await bundle(join(folder, 'image'));
  const port = 20_000 + (process.pid % 10_000);
  const flags = ['--kubeconfig', kubeconfig, '--config', config, '--namespace', namespace, '--log-level', 'warn'];
  const addresses = ['--health-address', `127.0.0.1:${port}`, '--webhook-address', `127.0.0.1:${port + 1}`];
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const child = spawn(process.execPath, [...heapFlags, ...profiling, main, 'controller', ...flags, ...addresses], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ending = new AbortController();
  child.once('exit', (code) => ending.abort(new Error(`the controller has ended with exit code ${code}`)));
  const get = async (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  await until({ what: 'the controller to be ready', limitMs: 60_000 }, async () => (await get('/readyz')).ok);
  const status = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;
  return {
    metric: async (name, labels = {}) => sum(await (await get('/metrics')).text(), name, labels),
    cpuSeconds: () => cpuSecondsOf(child),
    rssMb: () => status('VmRSS'),
    peakRssMb: () => status('VmHWM'),
    ended: ending.signal,
    stop: async () => {
      if (!ending.signal.aborted) {
        child.kill('SIGTERM');
        await once(child, 'close');
      }
      rmSync(folder, { recursive: true });
    },
  };
}

function cpuSecondsOf(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond;
}

function sum(text: string, name: string, labels: Readonly<Record<string, RegExp>>): number {
  let total = 0;
  for (const line of text.split('\n')) {
    const [, sample = '', value] = /^([a-z_]+)(?:\{.*\})? ([0-9.e+-]+)$/.exec(line) ?? [];
    if (sample !== name) continue;
    const fits = Object.entries(labels).every(([label, pattern]) =>
      pattern.test(new RegExp(`${label}="([^"]*)"`).exec(line)?.[1] ?? ''),
    );
    if (fits) total += Number(value);
  }
  return total;
}
