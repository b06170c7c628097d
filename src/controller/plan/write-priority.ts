/**
 * WritePriority says which writes may go now. A write costs the API server several milliseconds of a core, so of a thousand new
 * policies the last would get its EIP twice as late if each of the first were told at once that it is in force. Many
 * writes that packets wait for, within a second, are a burst; while it lasts, the others let them go first.
 */

/** More urgent writes than this within a second are a burst. */
const few = 8;
const burstMs = 1_000;
/** A write that lets others go first is looked at again after this long. */
const lookAgainMs = 500;
/** It waits no longer than this altogether. */
const longestMs = 20_000;

/** The turns of one kind of object. */
export class WritePriority {
  /** When the last few urgent writes were made. */
  #urgentAtMs: readonly number[] = [];
  /** key -> since when its write has let others go first */
  readonly #waitsSinceMs = new Map<string, number>();

  /** How long the write of an object has to wait; 0 counts it as made now. */
  waitMs(key: string, isUrgent: boolean, nowMs: number): number {
    if (isUrgent) this.#urgentAtMs = [...this.#urgentAtMs, nowMs].slice(-few);
    const sinceMs = this.#waitsSinceMs.get(key) ?? nowMs;
    if (isUrgent || !this.#isBurst(nowMs) || nowMs - sinceMs >= longestMs) {
      this.#waitsSinceMs.delete(key);
      return 0;
    }
    this.#waitsSinceMs.set(key, sinceMs);
    return lookAgainMs;
  }

  /** The object is gone. */
  forget(key: string): void {
    this.#waitsSinceMs.delete(key);
  }

  #isBurst(nowMs: number): boolean {
    const [firstMs = Number.NEGATIVE_INFINITY] = this.#urgentAtMs;
    return this.#urgentAtMs.length === few && nowMs - firstMs < burstMs;
  }
}
