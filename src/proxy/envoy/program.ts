/** Runs Envoy and keeps it running. All that it serves is in its files, so a new Envoy has the rules of the one before. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { wait } from '../../runtime/process/clock.ts';
import type { EngineParts } from '../engine/engine.ts';

/** Connections of a rule that is gone are ended after so long. */
const DRAIN_SECONDS = 3;
const RESTART_MS = { first: 100, most: 5_000 } as const;
/** A program that ran for so long has started well. */
const STEADY_MS = 10_000;
const STOP_MS = 5_000;

type ProgramParts = Pick<EngineParts, 'program' | 'log' | 'clock'>;

/**
 * Starts Envoy again whenever it ends, until the signal is aborted; resolves when the last one has ended. Before each start
 * `prepare` cleans up behind the one before.
 */
export const keepRunning = async (
  parts: ProgramParts,
  bootstrapPath: string,
  prepare: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const { log, clock } = parts;
  let pauseMs: number = RESTART_MS.first;
  while (!signal.aborted) {
    const startedAtMs = clock.monotonicMs();
    await prepare();
    const how = await runOnce(parts, bootstrapPath, signal);
    if (signal.aborted) return;
    const ms = clock.monotonicMs() - startedAtMs;
    pauseMs = ms > STEADY_MS ? RESTART_MS.first : Math.min(pauseMs * 2, RESTART_MS.most);
    log.error({ component: 'envoy', ms: Math.round(ms) }, `envoy ended (${how}); it is started again`);
    await wait(clock, pauseMs, signal);
  }
};

/** Runs one Envoy to its end and tells how it ended. */
const runOnce = ({ program, log }: ProgramParts, bootstrapPath: string, signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const child = spawn(program, argumentsFor(bootstrapPath), { stdio: ['ignore', 'ignore', 'pipe'] });
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line !== '') log.warn({ component: 'envoy' }, line);
    });
    let killer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      child.kill('SIGTERM');
      killer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    };
    const end = (how: string): void => {
      clearTimeout(killer);
      signal.removeEventListener('abort', stop);
      resolve(how);
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    child.on('error', (error) => end(error.message));
    child.on('close', (code, by) => end(by === null ? `code ${code}` : by));
  });

const argumentsFor = (bootstrapPath: string): string[] => [
  '--config-path',
  bootstrapPath,
  '--concurrency',
  String(availableParallelism()),
  // There is one Envoy in a pod; without shared memory it needs no right to it.
  '--disable-hot-restart',
  // A field that this Envoy does not know may be one that keeps somebody out.
  '--reject-unknown-dynamic-fields',
  '--drain-time-s',
  String(DRAIN_SECONDS),
  '--drain-strategy',
  'immediate',
  // The access log is buffered; a line should not be much older than what it tells.
  '--file-flush-interval-msec',
  '50',
  '--log-level',
  'warning',
  '--log-format',
  '%l %n: %v',
];
