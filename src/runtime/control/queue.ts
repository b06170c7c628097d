/**
 * WorkQueue hands out keys, never objects: a key that changes a hundred times while it waits is worked on once.
 * Read `add`, `retry` and `run` first. The shape is client-go's work queue with one rule more: when work on a key
 * begins, an older wish to look at it later is dropped, because the new result decides when to look again.
 */
import type { Clock } from '../process/clock.ts';
import { TokenBucket } from '../process/token-bucket.ts';
import { LeaseLost } from './lease-lost.ts';

/** How fast failed keys come back. */
export interface QueueLimits {
  /** First back-off of a key; it doubles with every failure. */
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  /** All retries of all keys together. Changes of objects are never slowed down by it. */
  readonly retriesPerSecond: number;
  readonly retryBurst: number;
}

export const defaultQueueLimits: QueueLimits = {
  backoffBaseMs: 5,
  backoffMaxMs: 5 * 60 * 1000,
  retriesPerSecond: 10,
  retryBurst: 100,
};

/** What a queue tells its metrics. Depth and age are read with `depth` and `oldestAgeMs`. */
export interface QueueHooks {
  retried(): void;
}

/** What a queue needs. `random` returns a number from 0 up to but without 1. */
export interface QueueDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly limits?: QueueLimits | undefined;
  readonly hooks?: QueueHooks | undefined;
}

/** One key handed to a worker, with the time since the first change that asked for it. */
export interface QueueItem {
  readonly key: string;
  readonly ageMs: number;
}

/** Keyed work queue. One key is never worked on by two workers at once. */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #limits: QueueLimits;
  readonly #hooks: QueueHooks | undefined;
  readonly #bucket: TokenBucket;
  /** key -> when it was first asked for; in the order in which keys are handed out. */
  readonly #ready = new Map<string, number>();
  /** key -> when it was asked for again while being worked on, or undefined. */
  readonly #active = new Map<string, number | undefined>();
  /** key -> its timer. */
  readonly #delayed = new Map<string, { readonly dueMs: number; readonly cancel: () => void }>();
  /** key -> failures in a row. */
  readonly #failures = new Map<string, number>();
  #wake: (() => void)[] = [];
  #isStopped = false;

  constructor(deps: QueueDeps) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#limits = deps.limits ?? defaultQueueLimits;
    this.#hooks = deps.hooks;
    this.#bucket = new TokenBucket(deps.clock, this.#limits.retriesPerSecond, this.#limits.retryBurst);
  }

  /** Keys that wait to be handed out now; delayed ones do not count. */
  get depth(): number {
    return this.#ready.size;
  }

  /** How long the oldest waiting key has waited; 0 when none waits. */
  oldestAgeMs(): number {
    const [sinceMs] = this.#ready.values();
    return sinceMs === undefined ? 0 : this.#clock.monotonicMs() - sinceMs;
  }

  /** Failures in a row of a key; 0 when it is healthy or unknown. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Asks for work on a key now. A waiting key stays where it is; a key being worked on runs once more afterwards. */
  add(key: string): void {
    if (this.#isStopped) return;
    const nowMs = this.#clock.monotonicMs();
    if (this.#active.has(key)) {
      this.#active.set(key, this.#active.get(key) ?? nowMs);
      return;
    }
    if (this.#ready.has(key)) return;
    this.#ready.set(key, nowMs);
    this.#wake.shift()?.();
  }

  /** Asks for work on a key after a delay. Of several wishes the earliest counts. */
  addAfter(key: string, delayMs: number): void {
    if (this.#isStopped) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    const dueMs = this.#clock.monotonicMs() + delayMs;
    const earlier = this.#delayed.get(key);
    if (earlier !== undefined && earlier.dueMs <= dueMs) return;
    earlier?.cancel();
    const cancel = this.#clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueMs, cancel });
  }

  /** Asks for work on a key that failed: after its back-off, and not before the bucket of all retries allows it. */
  retry(key: string): void {
    if (this.#isStopped) return;
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    const { backoffBaseMs, backoffMaxMs } = this.#limits;
    const backoffMs = Math.min(backoffMaxMs, backoffBaseMs * 2 ** failures);
    // Between half and all of it, so that keys that failed together do not come back together.
    const jitteredMs = backoffMs * (0.5 + this.#random() / 2);
    this.#hooks?.retried();
    this.addAfter(key, Math.max(jitteredMs, this.#bucket.reserve()));
  }

  /** Ends the back-off of a key: call it after success, or when it will not be retried. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /**
   * Works with that many workers until the signal is aborted. From then on no key is accepted and delayed ones are
   * dropped; keys already waiting are still worked on, unless the lease was lost: they are another process's then. An error
   * thrown by `work` stops everything and is rethrown.
   */
  async run(workers: number, signal: AbortSignal, work: (item: QueueItem) => Promise<void>): Promise<void> {
    const stop = (): void => {
      this.#stop();
      if (signal.reason instanceof LeaseLost) this.#ready.clear();
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      await Promise.all(Array.from({ length: workers }, () => this.#work(work)));
    } catch (error) {
      this.#ready.clear();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#stop();
    }
  }

  async #work(work: (item: QueueItem) => Promise<void>): Promise<void> {
    for (let item = await this.#take(); item !== undefined; item = await this.#take()) {
      await work(item);
      this.#release(item.key);
    }
  }

  async #take(): Promise<QueueItem | undefined> {
    while (this.#ready.size === 0) {
      if (this.#isStopped) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake.push(resolve);
      });
    }
    for (const [key, sinceMs] of this.#ready) {
      this.#ready.delete(key);
      this.#active.set(key, undefined);
      this.#delayed.get(key)?.cancel();
      this.#delayed.delete(key);
      return { key, ageMs: this.#clock.monotonicMs() - sinceMs };
    }
    return undefined;
  }

  #release(key: string): void {
    const askedAgainMs = this.#active.get(key);
    this.#active.delete(key);
    if (askedAgainMs === undefined) return;
    this.#ready.set(key, askedAgainMs);
    this.#wake.shift()?.();
  }

  #stop(): void {
    this.#isStopped = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    for (const wake of this.#wake) wake();
    this.#wake = [];
  }
}
