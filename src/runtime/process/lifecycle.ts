/**
 * Lifecycle takes a process from start to exit: it owns the signals, the order of stopping and the exit code.
 * Units are stopped in the reverse order of their start, one after the other, within one limit.
 */
import { EgressError, type ErrorCode } from '../../api/error.ts';
import { isBug, messageOf } from './bug.ts';
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';
import { createTasks, type Tasks } from './tasks.ts';

/** What the exit code of every Sallyport process means. */
export const exitCodes = {
  /** Stopped because it was asked to. */
  stopped: 0,
  /** Something failed: a bug, a lost lease, a stop that took too long, or a second signal. */
  failure: 1,
  /** The user gave something that cannot work; nothing was changed. */
  badInput: 2,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The codes with which a start fails because of what the user gave, not because of the world. */
const badInput: ReadonlySet<ErrorCode> = new Set([
  'CERTIFICATE_INVALID',
  'CONFIG_INVALID',
  'KUBECONFIG_INVALID',
  'NODE_TOO_OLD',
  'PORT_IN_USE',
]);

/** Kubernetes kills after 30 s by default; stopping ends a little earlier, so that the log says what hung. */
export const defaultStopLimitMs = 25_000;

/** The part of Node's `process` that is needed; tests pass an EventEmitter. */
export interface ProcessPort {
  on(event: string, listener: (argument: unknown) => void): unknown;
  off(event: string, listener: (argument: unknown) => void): unknown;
  exit(code: ExitCode): void;
}

/** What a lifecycle needs. */
export interface LifecycleDeps {
  readonly process: ProcessPort;
  readonly clock: Clock;
  readonly log: Log;
  readonly stopLimitMs?: number;
}

interface Unit {
  readonly name: string;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** One process from start to exit. Create one per process. */
export class Lifecycle {
  /** Background work without a place in the stop order. */
  readonly tasks: Tasks;
  readonly #deps: LifecycleDeps;
  readonly #units: Unit[] = [];
  readonly #stopping = new AbortController();
  #hasExited = false;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
    this.tasks = createTasks({ log: deps.log, crash: () => this.crash() });
  }

  /** Aborted when the process begins to stop. Readiness turns false on it; units get their own signal later. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Starts a unit. Its signal is aborted when its turn to stop has come; then its promise must settle.
   * A rejection with the reason of that signal is a normal end; any other rejection ends the process.
   * Does nothing once the process stops: a lease that is won at that moment must not start controllers any more.
   */
  start(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.stopping.aborted) return;
    const stop = new AbortController();
    const done = run(stop.signal).catch((error: unknown) => {
      if (!(stop.signal.aborted && error === stop.signal.reason)) throw error;
    });
    this.#units.push({ name, stop, done });
    this.tasks.spawn(name, done);
  }

  /** Begins the graceful stop. Further calls do nothing. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Ends the process at once with exit code 1. For lost leases and bugs: no stop step can be trusted then. */
  crash(): void {
    this.#exit(exitCodes.failure);
  }

  /** Runs `main`, which starts units and returns; then waits for a signal, stops the units and exits. */
  async run(main: (lifecycle: Lifecycle) => Promise<void>): Promise<void> {
    const release = this.#listen();
    try {
      await Promise.race([main(this), aborted(this.stopping)]);
      await aborted(this.stopping);
      this.#exit(await this.#stopUnits());
    } catch (error) {
      this.#exit(this.#report(error));
    } finally {
      release();
    }
  }

  async #stopUnits(): Promise<ExitCode> {
    const { clock, log, stopLimitMs = defaultStopLimitMs } = this.#deps;
    const startMs = clock.monotonicMs();
    const limit = new AbortController();
    const cancel = clock.after(stopLimitMs, () => limit.abort());
    for (const unit of this.#units.toReversed()) {
      unit.stop.abort();
      await Promise.race([unit.done.catch(() => undefined), aborted(limit.signal)]);
      if (!limit.signal.aborted) continue;
      log.error({ component: unit.name, ms: stopLimitMs }, `"${unit.name}" did not stop in time`);
      return exitCodes.failure;
    }
    cancel();
    log.info({ ms: Math.round(clock.monotonicMs() - startMs) }, 'stopped');
    return exitCodes.stopped;
  }

  #listen(): () => void {
    const { process, log } = this.#deps;
    const onSignal = (name: unknown): void => {
      if (this.stopping.aborted) {
        log.warn({ reason: String(name) }, 'second signal, exit at once');
        this.crash();
        return;
      }
      log.info({ reason: String(name) }, 'stopping');
      this.stop();
    };
    const onUncaught = (error: unknown): void => {
      log.fatal({ err: error }, `uncaught error: ${messageOf(error)}`);
      this.crash();
    };
    const listeners = [
      ['SIGTERM', onSignal],
      ['SIGINT', onSignal],
      ['uncaughtException', onUncaught],
      ['unhandledRejection', onUncaught],
    ] as const;
    for (const [event, listener] of listeners) process.on(event, listener);
    return () => {
      for (const [event, listener] of listeners) process.off(event, listener);
    };
  }

  /** Says in one line why `main` failed and returns the exit code for it. */
  #report(error: unknown): ExitCode {
    const { log } = this.#deps;
    if (error instanceof EgressError) {
      log.fatal({ reason: error.code }, error.message);
      return badInput.has(error.code) ? exitCodes.badInput : exitCodes.failure;
    }
    log.fatal({ err: error }, isBug(error) ? `bug: ${messageOf(error)}` : messageOf(error));
    return exitCodes.failure;
  }

  #exit(code: ExitCode): void {
    if (this.#hasExited) return;
    this.#hasExited = true;
    this.#deps.process.exit(code);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A unit that only has to be closed: waits for its signal, closes, and resolves when that is done. */
export function onStop(signal: AbortSignal, close: () => Promise<void>): Promise<void> {
  return aborted(signal).then(close);
}
