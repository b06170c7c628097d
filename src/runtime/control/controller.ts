/**
 * Controller brings one kind of object to where it should be: watches -> keys -> queue -> reconcile(key).
 * Reconcile is level based. It gets a key, reads the stores and makes things so; it never learns which event came.
 * Read `ReconcileResult` first.
 */
import { assertNever, Bug, isBug, messageOf } from '../process/bug.ts';
import type { Clock } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import { type QueueHooks, type QueueItem, type QueueLimits, WorkQueue } from './queue.ts';
import type { Watch } from './watch.ts';

/** What reconcile found. The world's faults are thrown instead and retried with back-off; bugs end the process. */
export type ReconcileResult =
  /** All is as it should be. */
  | { readonly kind: 'done' }
  /** All is as it should be, but look again after this time. */
  | { readonly kind: 'requeue'; readonly afterMs: number }
  /** The object asks for something that cannot be. No retry until it, or something it depends on, changes. */
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string };

/** What happened to one key, for metrics. */
export interface Reconciled {
  readonly outcome: ReconcileResult['kind'] | 'failed';
  /** Why it was refused or failed; empty otherwise. A small set of words, fit for a label. */
  readonly reason: string;
  readonly durationMs: number;
  /** From the first change that asked for the work to its end. */
  readonly ageMs: number;
}

/** What a controller tells its metrics. */
export interface ControllerHooks extends QueueHooks {
  reconciled(result: Reconciled): void;
}

/** One controller: its name, what it watches and what it does. */
export interface ControllerOptions {
  readonly name: string;
  readonly watches: readonly Watch[];
  /** Must obey the signal, which is aborted after `timeLimitMs`. */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>;
  /** How many keys are worked on at once; 1 when absent. */
  readonly workers?: number;
  /** 60 s when absent. */
  readonly timeLimitMs?: number;
  readonly limits?: QueueLimits;
}

/** What a controller needs. */
export interface ControllerDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly hooks?: ControllerHooks;
}

/** How long a reconcile may go on after its signal; then it counts as a bug, since its key could never run again. */
const graceMs = 10_000;

/** A control loop. `run` it once. */
export class Controller {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #deps: ControllerDeps;
  readonly #log: Log;
  /** Names of watches without a first list; undefined until `run`. */
  #unsynced: Set<string> | undefined;
  /** Keys found at the start that have not been tried yet; undefined until all watches are synced. */
  #initial: Set<string> | undefined;
  #initialCount = 0;

  constructor(options: ControllerOptions, deps: ControllerDeps) {
    this.name = options.name;
    this.#options = options;
    this.#deps = deps;
    this.#log = deps.log.child({ controller: options.name });
    this.queue = new WorkQueue({ ...deps, limits: options.limits });
  }

  /**
   * Says what is missing until every key that existed at the start was tried once; then undefined.
   * Tried, not succeeded: one object that keeps failing must not keep the whole process from being ready.
   */
  missing(): string | undefined {
    if (this.#unsynced === undefined) return 'not started';
    if (this.#initial === undefined) return `waits for the first list of ${[...this.#unsynced].sort().join(', ')}`;
    if (this.#initial.size > 0) return `${this.#initial.size} of ${this.#initialCount} keys not worked off yet`;
    return undefined;
  }

  /** Works until the signal is aborted, then finishes what waits in the queue. Rejects only on a bug. */
  async run(signal: AbortSignal): Promise<void> {
    if (!(await this.#synced(signal))) return;
    const bug = Promise.withResolvers<never>();
    // Subscribed before the first look at the stores: a change in between is queued twice rather than missed.
    const subscriptions = this.#options.watches.map((watch) =>
      watch.subscribe((keys) => {
        try {
          for (const key of keys) this.queue.add(key);
        } catch (error) {
          bug.reject(error);
        }
      }),
    );
    try {
      const initial = new Set(this.#options.watches.flatMap((watch) => [...watch.presentKeys()]));
      this.#initial = initial;
      this.#initialCount = initial.size;
      for (const key of initial) this.queue.add(key);
      const work = this.queue.run(this.#options.workers ?? 1, signal, (item) => this.#handle(item));
      await Promise.race([work, bug.promise]);
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe();
    }
  }

  /** Waits until all watches are synced. False when the signal came first. */
  async #synced(signal: AbortSignal): Promise<boolean> {
    const stopped = Promise.withResolvers<void>();
    const stop = (): void => stopped.resolve();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const unsynced = new Set(this.#options.watches.map((watch) => watch.name));
    this.#unsynced = unsynced;
    const all = this.#options.watches.map(async (watch) => {
      await watch.synced;
      unsynced.delete(watch.name);
    });
    await Promise.race([Promise.all(all), stopped.promise]);
    signal.removeEventListener('abort', stop);
    return !signal.aborted;
  }

  async #handle({ key, ageMs }: QueueItem): Promise<void> {
    const startMs = this.#deps.clock.monotonicMs();
    const { outcome, reason } = await this.#reconcile(key);
    const durationMs = this.#deps.clock.monotonicMs() - startMs;
    this.#initial?.delete(key);
    this.#deps.hooks?.reconciled({ outcome, reason, durationMs, ageMs: ageMs + durationMs });
  }

  /** Runs reconcile and turns its result into what the queue does next. */
  async #reconcile(key: string): Promise<Pick<Reconciled, 'outcome' | 'reason'>> {
    try {
      const result = await this.#limited(key);
      this.queue.forget(key);
      switch (result.kind) {
        case 'done':
          return { outcome: result.kind, reason: '' };
        case 'requeue':
          this.queue.addAfter(key, result.afterMs);
          return { outcome: result.kind, reason: '' };
        case 'refused':
          this.#log.info({ key, reason: result.reason }, result.message);
          return { outcome: result.kind, reason: result.reason };
        default:
          return assertNever(result);
      }
    } catch (error) {
      if (isBug(error)) throw error;
      const reason = reasonOf(error);
      const count = this.queue.failures(key) + 1;
      // The 1st, 2nd, 4th, 8th ... failure in a row is worth a line; an outage must not flood the log.
      const level = Number.isInteger(Math.log2(count)) ? 'warn' : 'debug';
      this.#log[level]({ key, reason, count }, `will try again: ${messageOf(error)}`);
      this.queue.retry(key);
      return { outcome: 'failed', reason };
    }
  }

  async #limited(key: string): Promise<ReconcileResult> {
    const { clock } = this.#deps;
    const { reconcile, timeLimitMs = 60_000 } = this.#options;
    const limit = new AbortController();
    const stuck = Promise.withResolvers<never>();
    const cancelLimit = clock.after(timeLimitMs, () => limit.abort(new ReconcileTimeout(timeLimitMs)));
    const cancelGrace = clock.after(timeLimitMs + graceMs, () =>
      stuck.reject(new Bug(`controller "${this.name}" does not end its work on "${key}" when its time is over`)),
    );
    try {
      return await Promise.race([reconcile(key, limit.signal), stuck.promise]);
    } finally {
      cancelLimit();
      cancelGrace();
    }
  }
}

/** Reconcile took too long. The world's fault: whatever it waited for did not answer. */
class ReconcileTimeout extends Error {
  override readonly name = 'ReconcileTimeout';
  readonly reason = 'Timeout';

  constructor(limitMs: number) {
    super(`took longer than ${limitMs} ms`);
  }
}

/** The word for an error in logs and metrics: its own `reason` or `code`, else the name of its class. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Unknown';
  if ('reason' in error && typeof error.reason === 'string') return error.reason;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.name;
}
