/**
 * Loop runs one pass after the other, never two at once: a change when nothing is under way is acted on at once, and
 * what changes while a pass runs, or shortly after it, is taken together in the next one. It knows nothing of what a
 * pass does.
 */
import { type Clock, wait } from '../process/clock.ts';

/** How a pass ended. `again`: something failed that may work later, without any change. */
export type PassResult = 'done' | 'again';

/** Told about every pass, for metrics. */
export interface LoopHooks {
  /** `ageMs` is the time from the first change that asked for the pass to its end. */
  passed(result: PassResult, durationMs: number, ageMs: number): void;
}

/** What a loop needs. */
export interface LoopDeps {
  readonly clock: Clock;
  /** Rejects only for bugs. */
  readonly pass: () => Promise<PassResult>;
  readonly hooks: LoopHooks;
}

/**
 * Between two passes there is a rest: half of what the last one took, and no more than this. While changes come in a burst
 * it doubles up to the longest, so that they are taken together and nearly all of the time is left to whoever makes them:
 * up to twenty times what a pass takes. Where passes are short, nobody waits long even then.
 */
const restMs = 10;
const longestRestMs = 400;
const burstRestPerPass = 20;
/** More changes than this at the beginning of a pass are a burst. */
const few = 3;
/** The first wait after a pass that failed; it doubles up to the longest. */
const firstRetryMs = 500;
const longestRetryMs = 30_000;

/** The loop. Call `touch` for every change, from anywhere, and `run` once. */
export class Loop {
  readonly #deps: LoopDeps;
  /** When the first change came that no pass has seen yet. */
  #touchedAtMs: number | undefined;
  /** How many have come since. */
  #touches = 0;
  #burstRestMs = 0;
  #isPassing = false;
  #wake = Promise.withResolvers<void>();
  #failures = 0;
  #cancelRetry = (): void => {};
  /** Ends the wait for a change that can wait; undefined when there is none. */
  #cancelWait: (() => void) | undefined;

  constructor(deps: LoopDeps) {
    this.#deps = deps;
  }

  /** True when the last pass has seen every change. */
  get isIdle(): boolean {
    return this.#touchedAtMs === undefined && this.#cancelWait === undefined && !this.#isPassing;
  }

  /** Asks for a pass. Returns at once. */
  touch(): void {
    this.#touchedAtMs ??= this.#deps.clock.monotonicMs();
    this.#touches += 1;
    this.#wake.resolve();
  }

  /** Asks for a pass that may wait so long for others who ask. Returns at once. */
  touchWithin(waitMs: number): void {
    if (this.#touchedAtMs !== undefined) return;
    this.#cancelWait ??= this.#deps.clock.after(waitMs, () => this.touch());
  }

  /** Works until the signal is aborted; a pass that is under way then is finished. Rejects only for bugs. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#wake.resolve();
    signal.addEventListener('abort', stop, { once: true });
    for (;;) {
      await this.#wake.promise;
      this.#cancelRetry();
      if (signal.aborted) return;
      this.#wake = Promise.withResolvers();
      this.#burstRestMs = this.#touches > few ? Math.min(Math.max(this.#burstRestMs * 2, restMs), longestRestMs) : 0;
      this.#touches = 0;
      const passMs = await this.#passOnce();
      const burstRestMs = Math.min(this.#burstRestMs, passMs * burstRestPerPass);
      await wait(this.#deps.clock, Math.max(burstRestMs, Math.min(passMs / 2, restMs)), signal);
      if (signal.aborted) stop();
    }
  }

  /** Returns how long it took. */
  async #passOnce(): Promise<number> {
    const { clock, pass, hooks } = this.#deps;
    const startMs = clock.monotonicMs();
    const touchedAtMs = this.#touchedAtMs ?? startMs;
    this.#touchedAtMs = undefined;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    this.#isPassing = true;
    const result = await pass();
    this.#isPassing = false;
    const endMs = clock.monotonicMs();
    hooks.passed(result, endMs - startMs, endMs - touchedAtMs);
    if (result === 'done') {
      this.#failures = 0;
      return endMs - startMs;
    }
    const retryMs = Math.min(firstRetryMs * 2 ** this.#failures, longestRetryMs);
    this.#failures += 1;
    this.#cancelRetry = clock.after(retryMs, () => this.touch());
    return endMs - startMs;
  }
}
