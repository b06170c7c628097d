/**
 * Watch joins an informer to a controller: it says which keys of the controller an object concerns.
 */

/** A change as informers report it. */
export type SourceChange<T> =
  | { readonly kind: 'put'; readonly key: string; readonly value: T; readonly previous: T | undefined }
  | { readonly kind: 'delete'; readonly key: string; readonly previous: T };

/** The part of an informer that a controller needs. */
export interface WatchSource<T> {
  /** Resolves when the first list is in the store. */
  readonly synced: Promise<void>;
  readonly store: { entries(): Iterable<readonly [string, T]> };
  /** Reports every later change; the returned function ends that. */
  subscribe(listener: (change: SourceChange<T>) => void): () => void;
}

/** One watched kind, without its type parameter. Made by `watch`. */
export interface Watch {
  readonly name: string;
  readonly synced: Promise<void>;
  /** Keys that the present objects concern. */
  presentKeys(): Iterable<string>;
  /** Reports the keys of every later change; the returned function ends that. */
  subscribe(listener: (keys: Iterable<string>) => void): () => void;
}

/**
 * Returns the watch of a source. `keysOf` gets the key and value of one object and returns the controller's keys;
 * it must be pure. For a change it is asked about the old and the new value, because an object that moved from one
 * owner to another concerns both.
 */
export function watch<T>(
  name: string,
  source: WatchSource<T>,
  keysOf: (key: string, value: T) => Iterable<string> = (key) => [key],
): Watch {
  return {
    name,
    synced: source.synced,
    *presentKeys() {
      for (const [key, value] of source.store.entries()) yield* keysOf(key, value);
    },
    subscribe: (listener) => source.subscribe((change) => listener(changedKeys(change, keysOf))),
  };
}

/** Lazy, so that an error in `keysOf` is thrown to the controller that iterates and not into the informer. */
function* changedKeys<T>(
  change: SourceChange<T>,
  keysOf: (key: string, value: T) => Iterable<string>,
): Generator<string> {
  if (change.previous !== undefined) yield* keysOf(change.key, change.previous);
  if (change.kind === 'put') yield* keysOf(change.key, change.value);
}
