/**
 * Jitter: by how much something came late that comes regularly, as far as it is remembered. Of all delays the second longest counts:
 * one alone is a stop or a lost link, about which nothing can be learned, and what is as long as the second has been seen twice.
 */

/** The two longest delays of some time. */
interface Longest {
  readonly first: number;
  readonly second: number;
}

const none: Longest = { first: 0, second: 0 };

export class Jitter {
  readonly #memoryMs: number;
  #sinceMs = -Infinity;
  #now = none;
  #before = none;

  /** Delays are remembered for as long as this, and for twice as long at the most. */
  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs;
  }

  /** Something came so much too late. */
  note(delayMs: number, nowMs: number): void {
    this.#forget(nowMs);
    this.#now = withDelay(this.#now, delayMs);
  }

  /** How late it is to be expected. */
  expectedMs(nowMs: number): number {
    this.#forget(nowMs);
    return withDelay(withDelay(this.#now, this.#before.first), this.#before.second).second;
  }

  #forget(nowMs: number): void {
    const ageMs = nowMs - this.#sinceMs;
    if (ageMs < this.#memoryMs) return;
    this.#before = ageMs < 2 * this.#memoryMs ? this.#now : none;
    this.#now = none;
    this.#sinceMs = nowMs;
  }
}

const withDelay = ({ first, second }: Longest, delayMs: number): Longest =>
  delayMs > first ? { first: delayMs, second: first } : { first, second: Math.max(second, delayMs) };
