/**
 * Store holds the projected objects of one informer by key, with named indexes that are kept on every write.
 * Only the informer writes; everybody else sees `StoreView`. Values are deeply frozen: a reader cannot damage them.
 */
import { sharing } from './sharing.ts';

/** From a value to the index entries it stands under; an empty list keeps it out of the index. */
export type IndexFunctions<T, I extends string> = Readonly<Record<I, (value: T) => readonly string[]>>;

/** What changed for one key. `previous` is absent for a new key. */
export type StoreChange<T> =
  | { readonly kind: 'put'; readonly key: string; readonly value: T; readonly previous: T | undefined }
  | { readonly kind: 'delete'; readonly key: string; readonly previous: T };

/** The reader's side. */
export interface StoreView<T, I extends string = never> {
  readonly size: number;
  /** Returns the value, or undefined when the key is not there. */
  get(key: string): T | undefined;
  has(key: string): boolean;
  keys(): IterableIterator<string>;
  values(): IterableIterator<T>;
  entries(): IterableIterator<[string, T]>;
  /** Returns the keys under one entry of a named index, sorted; empty when there are none. */
  keysBy(index: I, entry: string): string[];
  /** Returns the values under one entry of a named index, sorted by key. */
  valuesBy(index: I, entry: string): T[];
}

export class Store<T, I extends string = never> implements StoreView<T, I> {
  readonly #valueByKey = new Map<string, T>();
  /** index name -> entry -> keys */
  readonly #keysByEntry = new Map<I, Map<string, Set<string>>>();
  readonly #indexFunctions: ReadonlyArray<readonly [I, (value: T) => readonly string[]]>;

  constructor(indexes: IndexFunctions<T, I>) {
    // Object.entries forgets that the keys are exactly I.
    this.#indexFunctions = Object.entries(indexes) as unknown as ReadonlyArray<[I, (value: T) => readonly string[]]>;
    for (const [name] of this.#indexFunctions) this.#keysByEntry.set(name, new Map());
  }

  get size(): number {
    return this.#valueByKey.size;
  }

  get(key: string): T | undefined {
    return this.#valueByKey.get(key);
  }

  has(key: string): boolean {
    return this.#valueByKey.has(key);
  }

  keys(): IterableIterator<string> {
    return this.#valueByKey.keys();
  }

  values(): IterableIterator<T> {
    return this.#valueByKey.values();
  }

  entries(): IterableIterator<[string, T]> {
    return this.#valueByKey.entries();
  }

  keysBy(index: I, entry: string): string[] {
    return [...(this.#keysByEntry.get(index)?.get(entry) ?? [])].sort();
  }

  valuesBy(index: I, entry: string): T[] {
    return this.keysBy(index, entry).flatMap((key) => this.#valueByKey.get(key) ?? []);
  }

  /**
   * Writes a value and freezes it. Returns undefined when an equal value is already there. Parts that equal those of
   * the value before are the same parts; see sharing.ts.
   */
  put(key: string, next: T): StoreChange<T> | undefined {
    const previous = this.#valueByKey.get(key);
    const value = previous === undefined ? next : sharing(previous, next);
    if (previous !== undefined) {
      if (value === previous) return undefined;
      this.#unindex(key, previous);
    }
    this.#valueByKey.set(key, deepFreeze(value));
    this.#index(key, value);
    return { kind: 'put', key, value, previous };
  }

  /** Removes a key. Returns undefined when it was not there. */
  delete(key: string): StoreChange<T> | undefined {
    const previous = this.#valueByKey.get(key);
    if (previous === undefined) return undefined;
    this.#unindex(key, previous);
    this.#valueByKey.delete(key);
    return { kind: 'delete', key, previous };
  }

  #index(key: string, value: T): void {
    for (const [name, entriesOf] of this.#indexFunctions) {
      const keysByEntry = this.#keysByEntry.get(name);
      for (const entry of entriesOf(value)) {
        const keys = keysByEntry?.get(entry);
        if (keys === undefined) keysByEntry?.set(entry, new Set([key]));
        else keys.add(key);
      }
    }
  }

  #unindex(key: string, value: T): void {
    for (const [name, entriesOf] of this.#indexFunctions) {
      const keysByEntry = this.#keysByEntry.get(name);
      for (const entry of entriesOf(value)) {
        const keys = keysByEntry?.get(entry);
        keys?.delete(key);
        if (keys?.size === 0) keysByEntry?.delete(entry);
      }
    }
  }
}

/** Freezes plain data all the way down and returns it. */
function deepFreeze<V>(value: V): V {
  // Bytes cannot be frozen: the language refuses it.
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
