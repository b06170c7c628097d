/**
 * ChangedKeys holds keys back for a short time and then hands them on together, each once. The first key starts the
 * time, so no key waits longer than that, however many follow.
 */
import type { Clock } from '../../runtime/process/clock.ts';

export class ChangedKeys<K extends string> {
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #listeners = new Set<(keys: Iterable<K>) => void>();
  #keys = new Set<K>();

  constructor(clock: Clock, windowMs: number) {
    this.#clock = clock;
    this.#windowMs = windowMs;
  }

  /** Adds keys to those that will be handed on. Without a listener they are forgotten. */
  add(keys: Iterable<K>): void {
    if (this.#listeners.size === 0) return;
    const isFirst = this.#keys.size === 0;
    for (const key of keys) this.#keys.add(key);
    if (isFirst && this.#keys.size > 0) this.#clock.after(this.#windowMs, () => this.#handOn());
  }

  /** Hands keys on to the listener until the returned function is called. */
  subscribe(listener: (keys: Iterable<K>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #handOn(): void {
    const keys = this.#keys;
    this.#keys = new Set();
    for (const listener of this.#listeners) listener(keys);
  }
}
