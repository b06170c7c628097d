/** RefCountedSet counts who has something, and tells what somebody has: nodes that policies leave through, addresses that slots leave with. */
import { isSameSet } from '../values/equality.ts';

export class RefCountedSet<T> {
  readonly #counts = new Map<T, number>();
  #present: ReadonlySet<T> = new Set();

  /** Somebody has another thing than before; undefined for nothing. */
  move(from: T | undefined, to: T | undefined): void {
    if (from === to) return;
    if (from !== undefined) this.#add(from, -1);
    if (to !== undefined) this.#add(to, 1);
  }

  /** What somebody has; the same value as at the last call while it is the same. */
  present(): ReadonlySet<T> {
    const now = new Set(this.#counts.keys());
    if (!isSameSet(now, this.#present)) this.#present = now;
    return this.#present;
  }

  #add(what: T, more: number): void {
    const now = (this.#counts.get(what) ?? 0) + more;
    if (now === 0) this.#counts.delete(what);
    else this.#counts.set(what, now);
  }
}
