/** TokenBucket spreads events in time: a burst at once, then a steady rate. */
import type { Clock } from './clock.ts';

/** Gives out reservations. It never refuses; it only says how long to wait. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #updatedMs: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#updatedMs = clock.monotonicMs();
  }

  /** Takes one token and returns how many milliseconds from now it may be used; 0 means now. */
  reserve(): number {
    const nowMs = this.#clock.monotonicMs();
    const earned = ((nowMs - this.#updatedMs) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, this.#tokens + earned) - 1;
    this.#updatedMs = nowMs;
    // A negative balance is what later reservations have to wait for.
    return Math.max(0, (-this.#tokens / this.#perSecond) * 1000);
  }
}
