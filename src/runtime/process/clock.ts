/**
 * Clock is the only way in which Sallyport reads time or waits. Processes use `systemClock`; tests move a
 * `ManualClock` by hand, so that no test sleeps and a simulation of years takes milliseconds.
 */

/** Time as code may see it. Durations are measured with `monotonicMs`, dates for people and the API come from `now`. */
export interface Clock {
  /** The date of the wall clock. It may jump; never subtract two of them to get a duration. */
  now(): Date;
  /** Milliseconds since an arbitrary instant; never goes back. */
  monotonicMs(): number;
  /** Calls back once after the delay; the returned function cancels it and may be called twice. */
  after(delayMs: number, callback: () => void): () => void;
}

/** setTimeout turns a longer delay into 1 ms, so longer waits are cut into pieces (24.8 days). */
const maxTimerMs = 2 ** 31 - 1;

/** The clock of the machine. Its timers keep the process alive. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const arm = (remainingMs: number): void => {
      timer =
        remainingMs > maxTimerMs
          ? setTimeout(() => arm(remainingMs - maxTimerMs), maxTimerMs)
          : setTimeout(callback, remainingMs);
    };
    arm(Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

/** Resolves after the delay, or at once when the signal is aborted. Never rejects. */
export function wait(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

/**
 * Runs a call under a time limit. Its signal is aborted with `limitError()` when the time is over or with the reason
 * of `signal` when that is aborted; then the returned promise rejects, whether the call listens or not.
 */
export async function withLimit<T>(
  clock: Clock,
  limit: { readonly ms: number; readonly error: () => Error; readonly signal?: AbortSignal | undefined },
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const forward = (): void => controller.abort(limit.signal?.reason);
  if (limit.signal?.aborted) forward();
  limit.signal?.addEventListener('abort', forward, { once: true });
  const cancel = clock.after(limit.ms, () => controller.abort(limit.error()));
  try {
    controller.signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    controller.signal.addEventListener('abort', () => aborted.reject(controller.signal.reason), { once: true });
    return await Promise.race([call(controller.signal), aborted.promise]);
  } finally {
    cancel();
    limit.signal?.removeEventListener('abort', forward);
  }
}

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until `advance` is called. */
export class ManualClock implements Clock {
  readonly #startMs: number;
  #elapsedMs = 0;
  #timers: readonly Timer[] = [];

  constructor(start: Date = new Date('2026-01-01T00:00:00Z')) {
    this.#startMs = start.getTime();
  }

  now(): Date {
    return new Date(this.#startMs + this.#elapsedMs);
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback };
    // Behind all timers that are due at the same time, as in Node: first set, first fired.
    const position = this.#timers.findIndex((other) => other.dueMs > timer.dueMs);
    this.#timers = this.#timers.toSpliced(position < 0 ? this.#timers.length : position, 0, timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves time forward. Timers fire in order, each at its own time, with all promise work in between done. */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#elapsedMs + ms;
    await settle();
    for (let next = this.#takeDue(targetMs); next !== undefined; next = this.#takeDue(targetMs)) {
      this.#elapsedMs = next.dueMs;
      next.callback();
      await settle();
    }
    this.#elapsedMs = targetMs;
  }

  #takeDue(targetMs: number): Timer | undefined {
    const [first, ...rest] = this.#timers;
    if (first === undefined || first.dueMs > targetMs) return undefined;
    this.#timers = rest;
    return first;
  }
}

/** An immediate runs only when no promise callback is left, so one turn settles everything that needs no real I/O. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
