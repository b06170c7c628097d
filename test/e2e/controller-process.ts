/** `bin/sallyport controller`, or another part of it, as a real process of a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../../src/runtime/testing/eventually.ts';

const root = join(import.meta.dirname, '..', '..');

/** One line of a controller's log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A controller process. */
export interface RunningController {
  readonly process: ChildProcess;
  readonly lines: readonly LogLine[];
  /** The text of a page of its health server. */
  page(path: string): Promise<string>;
  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
}

/** Starts a controller and resolves when it listens. */
export const startControllerProcess = async (
  kubeconfig: string,
  flags: readonly string[],
  part = 'controller',
): Promise<RunningController> => {
  const args = ['--kubeconfig', kubeconfig, '--health-address=127.0.0.1:0', '--webhook-address=127.0.0.1:0'];
  const child = spawn(join(root, 'bin', 'sallyport'), [part, ...args, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: LogLine[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    // Our own log: one JSON object per line.
    lines.push(JSON.parse(line) as LogLine);
  });
  const port = () => lines.map(({ msg }) => /health and metrics on port (\d+)/.exec(msg)?.[1]).find(Boolean);
  await eventually(`the ${part} listens`, () => port() !== undefined || child.exitCode !== null, 60_000);
  return {
    process: child,
    lines,
    page: async (path) => (await fetch(`http://127.0.0.1:${port()}${path}`)).text().catch(() => ''),
    end: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? child.signalCode ?? 0;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
      return child.exitCode ?? child.signalCode ?? 0;
    },
  };
};

/** True when the process has said that it leads, and not since that it lost the lease. */
export const leads = ({ lines }: Pick<RunningController, 'lines'>): boolean =>
  lines
    .findLast(({ component, msg }) => component === 'lease' && /leads$|^lost the lease/.test(msg))
    ?.msg.endsWith('leads') ?? false;
