/**
 * ChangeThrottle joins changes that come close together, so that a burst of them costs few plans and not one each. The first
 * change after a quiet time is not held back. Between two plans there is a rest, which follows from what came meanwhile:
 *
 * - one change: somebody may make one after the other, each when the one before is done. The rest is a quarter of what a
 *   plan takes; a longer one would make the next change fall into it, and so for ever.
 * - a few: as long as a plan takes.
 * - a burst: three times as long, and it doubles up to a limit. Most of the time is left for writing, however large the
 *   cluster is.
 */
import { type Clock, wait } from '../../runtime/process/clock.ts';

/** How long changes are gathered. */
export interface ChangeThrottleTimes {
  /** The rest after the first change of a burst. */
  readonly firstMs: number;
  /** The longest rest, unless the work takes longer. */
  readonly limitMs: number;
}

/** The changes since the last call of `next`. Anybody may `tell`; one loop calls `next`. */
export class ChangeThrottle {
  readonly #clock: Clock;
  readonly #times: ChangeThrottleTimes;
  #changes = 0;
  #wake = new AbortController();
  #restMs = 0;

  constructor(clock: Clock, times: ChangeThrottleTimes) {
    this.#clock = clock;
    this.#times = times;
  }

  /** Says that something has changed. Returns at once. */
  tell(): void {
    this.#changes += 1;
    this.#wake.abort();
  }

  /** Resolves with true when changes are to be worked on, with false when the signal is aborted. */
  async next(lastWorkMs: number, signal: AbortSignal): Promise<boolean> {
    const { firstMs, limitMs } = this.#times;
    await wait(this.#clock, this.#restMs, signal);
    const burstRestMs = this.#changes > few ? Math.min(this.#restMs * 2, limitMs) : 0;
    this.#restMs = Math.max(firstMs, burstRestMs, lastWorkMs * restPerWork(this.#changes));
    while (this.#changes === 0 && !signal.aborted) {
      this.#wake = new AbortController();
      await wait(this.#clock, forEverMs, AbortSignal.any([signal, this.#wake.signal]));
    }
    // What one answer of the API server told is told in one turn.
    await wait(this.#clock, 0, signal);
    this.#changes = 0;
    return !signal.aborted;
  }
}

/** More changes than this between two plans are a burst. */
const few = 3;

const restPerWork = (changes: number): number => {
  if (changes > few) return 3;
  return changes > 1 ? 1 : 0.25;
};

/** Every wait has a limit; this one only says that the loop looks again once a day. */
const forEverMs = 24 * 60 * 60 * 1000;
