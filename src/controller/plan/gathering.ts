/** Gathering joins changes that come close together, so that a burst of them costs one plan and not one each. */
import { type Clock, wait } from '../../runtime/process/clock.ts';

/** How long changes are gathered. */
export interface GatheringTimes {
  /** The burst is over when nothing came for this long. */
  readonly quietMs: number;
  /** A burst that does not end is cut after this long. */
  readonly limitMs: number;
}

/** The changes since the last burst. Anybody may `tell`; one loop calls `burst`. */
export class Gathering {
  readonly #clock: Clock;
  /** Changes told so far, and how many of them an earlier burst has covered. */
  #told = 0;
  #covered = 0;
  #wake = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Says that something has changed. Returns at once. */
  tell(): void {
    this.#told += 1;
    this.#wake.abort();
  }

  /** Resolves with true after a burst of changes, with false when the signal is aborted. */
  async burst({ quietMs, limitMs }: GatheringTimes, signal: AbortSignal): Promise<boolean> {
    while (this.#told === this.#covered && !signal.aborted) {
      this.#wake = new AbortController();
      await wait(this.#clock, forEverMs, AbortSignal.any([signal, this.#wake.signal]));
    }
    const endsAtMs = this.#clock.monotonicMs() + limitMs;
    let seen: number;
    do {
      seen = this.#told;
      await wait(this.#clock, Math.min(quietMs, endsAtMs - this.#clock.monotonicMs()), signal);
    } while (this.#told !== seen && this.#clock.monotonicMs() < endsAtMs && !signal.aborted);
    this.#covered = this.#told;
    return !signal.aborted;
  }
}

/** Every wait has a limit; this one only says that the loop looks again once a day. */
const forEverMs = 24 * 60 * 60 * 1000;
