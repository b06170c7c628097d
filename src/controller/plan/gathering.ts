/**
 * Gathering joins changes that come close together, so that a burst of them costs few plans and not one each. The first
 * change after a quiet time is not held back. While changes keep coming, the rest between two plans doubles up to a
 * limit, and is at least as long as a plan takes: half of the time is left for writing, however large the cluster is.
 */
import { type Clock, wait } from '../../runtime/process/clock.ts';

/** How long changes are gathered. */
export interface GatheringTimes {
  /** The rest after the first change of a burst. */
  readonly firstMs: number;
  /** The longest rest, unless the work takes longer. */
  readonly limitMs: number;
}

/** The changes since the last call of `next`. Anybody may `tell`; one loop calls `next`. */
export class Gathering {
  readonly #clock: Clock;
  readonly #times: GatheringTimes;
  #hasNews = false;
  #wake = new AbortController();
  #restMs = 0;

  constructor(clock: Clock, times: GatheringTimes) {
    this.#clock = clock;
    this.#times = times;
  }

  /** Says that something has changed. Returns at once. */
  tell(): void {
    this.#hasNews = true;
    this.#wake.abort();
  }

  /** Resolves with true when changes are to be worked on, with false when the signal is aborted. */
  async next(lastWorkMs: number, signal: AbortSignal): Promise<boolean> {
    const { firstMs, limitMs } = this.#times;
    await wait(this.#clock, this.#restMs, signal);
    this.#restMs = this.#hasNews ? Math.max(firstMs, Math.min(this.#restMs * 2, limitMs), lastWorkMs) : firstMs;
    while (!this.#hasNews && !signal.aborted) {
      this.#wake = new AbortController();
      await wait(this.#clock, forEverMs, AbortSignal.any([signal, this.#wake.signal]));
    }
    // What one answer of the API server told is told in one turn.
    await wait(this.#clock, 0, signal);
    this.#hasNews = false;
    return !signal.aborted;
  }
}

/** Every wait has a limit; this one only says that the loop looks again once a day. */
const forEverMs = 24 * 60 * 60 * 1000;
