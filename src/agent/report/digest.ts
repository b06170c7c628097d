/**
 * Digest tells a burst in few words. Of news of one kind the first few are told one by one, and what else comes within a second is told
 * together at its end. While more keep coming the time doubles, so that a node whose EIPs go to and fro writes some lines a
 * minute, and not thousands, which would be work for a machine that has too much of it.
 */
import type { Clock } from '../../runtime/process/clock.ts';

/** More than these within a window are told together. */
const few = 5;
const firstWindowMs = 1_000;
const longestWindowMs = 30_000;
/** So many are named where many are told together. */
const named = 3;

/** What is told together. */
export interface Many<Item> {
  readonly count: number;
  /** The first ones. */
  readonly first: readonly Item[];
}

export interface DigestDeps<Item> {
  readonly clock: Pick<Clock, 'after'>;
  /** What makes news one kind. */
  readonly kindOf: (item: Item) => string;
  readonly tellOne: (item: Item) => void;
  readonly tellMany: (many: Many<Item>) => void;
}

interface Window<Item> {
  readonly durationMs: number;
  readonly cancel: () => void;
  told: number;
  count: number;
  readonly first: Item[];
}

export class Digest<Item> {
  readonly #deps: DigestDeps<Item>;
  readonly #windowByKind = new Map<string, Window<Item>>();
  #isClosed = false;

  constructor(deps: DigestDeps<Item>) {
    this.#deps = deps;
  }

  add(item: Item): void {
    const kind = this.#deps.kindOf(item);
    const window = this.#windowByKind.get(kind) ?? this.#open(kind, firstWindowMs, 0);
    if (window.told < few || this.#isClosed) {
      window.told += 1;
      this.#deps.tellOne(item);
      return;
    }
    window.count += 1;
    if (window.first.length < named) window.first.push(item);
  }

  /** Tells what is left; what comes later is told one by one. */
  close(): void {
    this.#isClosed = true;
    for (const window of this.#windowByKind.values()) {
      window.cancel();
      this.#tell(window);
    }
  }

  #open(kind: string, durationMs: number, told: number): Window<Item> {
    const cancel = this.#isClosed ? () => {} : this.#deps.clock.after(durationMs, () => this.#end(kind));
    const window: Window<Item> = { durationMs, cancel, told, count: 0, first: [] };
    this.#windowByKind.set(kind, window);
    return window;
  }

  #end(kind: string): void {
    const window = this.#windowByKind.get(kind);
    if (window === undefined) return;
    if (window.count === 0) this.#windowByKind.delete(kind);
    else this.#open(kind, Math.min(2 * window.durationMs, longestWindowMs), few);
    this.#tell(window);
  }

  #tell({ count, first }: Window<Item>): void {
    const [only] = first;
    if (count === 1 && only !== undefined) this.#deps.tellOne(only);
    else if (count > 1) this.#deps.tellMany({ count, first });
  }
}
