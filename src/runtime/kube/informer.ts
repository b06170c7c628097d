/**
 * Informer keeps a Store equal to what the API server holds, for as long as the process lives.
 *
 *   WATCH with initial events --project--> Store --change--> listeners
 *     ... the stream goes on with changes until it ends; then WATCH again from the last version
 *   version too old (410) or stream not understood: start over; what is no longer there becomes a delete
 *
 * It never gives up. Objects are projected one by one before they are stored, so memory holds only what we use.
 * The first reading is a streaming list (KEP-3157): with 5,000 objects of 5 KB on a real server 125 MB instead of
 * 190 MB with pages of 500, in about the same time (15 Nov 2026). A server that refuses it is read by pages.
 *
 * An object that the projection cannot read keeps its last readable value and is counted in `unreadable`: a policy
 * that somebody breaks must not silently stop to apply, because its pods would then leave with another address.
 */
import { Bug } from '../process/bug.ts';
import { type Clock, wait } from '../process/clock.ts';
import { ApiError, isAnswer, isGone, isInvalid } from './api-error.ts';
import { outageBackoffMs } from './backoff.ts';
import type { KubeClient, Scope, WatchEvent } from './client.ts';
import { type KubeObject, keyOf, type Resource } from './resource.ts';
import { type IndexFunctions, Store, type StoreChange, type StoreView } from './store.ts';

/** Something worth a log line. The informer goes on in every case. */
export type InformerProblem =
  | { readonly kind: 'unreadable'; readonly key: string; readonly error: unknown }
  | { readonly kind: 'disconnected'; readonly error: ApiError; readonly retryMs: number };

/** What an informer has done and holds, for metrics. */
export interface InformerStats {
  readonly objects: number;
  readonly unreadable: number;
  /** Time since the server last said anything; undefined before the first answer. */
  readonly silentMs: number | undefined;
  /** Complete readings of the collection after the first. */
  readonly relists: number;
  /** Watches asked for after the first, whether or not they were opened. */
  readonly reconnects: number;
}

/** What an informer follows and how. O is the object as served, T what is kept of it, I the names of the indexes. */
export interface InformerOptions<T, I extends string, O extends KubeObject> {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly scope?: Scope;
  /** Returns what to keep; undefined keeps nothing; throws when the object cannot be read. `before` is what is kept of it now. */
  readonly project: (object: O, before: T | undefined) => T | undefined;
  readonly indexes?: IndexFunctions<T, I>;
  readonly clock: Clock;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
  readonly onProblem?: (problem: InformerProblem) => void;
  /** Objects per page, for servers without streaming lists. */
  readonly pageSize?: number;
  /** Silence after which a watch counts as dead; see WatchOptions. */
  readonly stallMs?: number;
}

/** A listener must not throw: what it throws ends run(), and with it the process. */
export type Listener<T> = (change: StoreChange<T>) => void;

/** A watch that lasted this long was healthy, even without an event. */
const healthyMs = 5_000;

export class Informer<T, I extends string = never, O extends KubeObject = KubeObject> {
  /** Resolves after the first complete reading; rejects when run() ends before. */
  readonly synced: Promise<void>;
  readonly #options: InformerOptions<T, I, O>;
  readonly #store: Store<T, I>;
  readonly #unreadable = new Set<string>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #sync = Promise.withResolvers<void>();
  #isSynced = false;
  #isRunning = false;
  #canStream = true;
  /** The version up to which the store is right; undefined when only a new reading can tell. */
  #version: string | undefined;
  /** Keys seen by the reading that is under way. */
  #reading: Set<string> | undefined;
  /** Where and when the present watch began to bring changes. */
  #followed: { readonly version: string; readonly sinceMs: number } | undefined;
  #heardAtMs: number | undefined;
  #readings = 0;
  #watches = 0;

  constructor(options: InformerOptions<T, I, O>) {
    this.#options = options;
    this.#store = new Store(options.indexes ?? noIndexes<T, I>());
    this.synced = this.#sync.promise;
    // Who does not wait for the promise must not end the process by its rejection.
    this.synced.catch(() => {});
  }

  get store(): StoreView<T, I> {
    return this.#store;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The version of the collection that the store shows; undefined until it was read, and while it is read anew. */
  get version(): string | undefined {
    return this.#version;
  }

  /** Keys of objects that exist and that the projection could not read, in no order. */
  get unreadable(): ReadonlySet<string> {
    return this.#unreadable;
  }

  stats(): InformerStats {
    const nowMs = this.#options.clock.monotonicMs();
    return {
      objects: this.#store.size,
      unreadable: this.#unreadable.size,
      silentMs: this.#heardAtMs === undefined ? undefined : nowMs - this.#heardAtMs,
      relists: Math.max(0, this.#readings - 1),
      reconnects: Math.max(0, this.#watches - 1),
    };
  }

  /**
   * Calls the listener for every value that is there, then for every change, in order. A value that is written
   * again without a difference is no change. Returns the end of the subscription.
   */
  subscribe(listener: Listener<T>): () => void {
    for (const [key, value] of this.#store.entries()) listener({ kind: 'put', key, value, previous: undefined });
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the server until the signal is aborted; then resolves. Rejects only for bugs. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#isRunning) throw new Bug('an informer runs once');
    this.#isRunning = true;
    try {
      await this.#follow(signal);
    } finally {
      this.#sync.reject(new Error(`the informer of ${this.#options.resource.plural} ended before it was synced`));
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, random, onProblem } = this.#options;
    let failures = 0;
    let failingSinceMs = clock.monotonicMs();
    while (!signal.aborted) {
      const round = await this.#round(signal);
      if (signal.aborted) return;
      const nowMs = clock.monotonicMs();
      if (round.isHealthy) {
        failures = 0;
        failingSinceMs = nowMs;
      }
      const retryMs = Math.max(
        outageBackoffMs({ failures, lastedMs: nowMs - failingSinceMs, isAnswered: isAnswer(round.error) }, random),
        round.error?.retryAfterMs ?? 0,
      );
      failures += 1;
      if (round.error !== undefined) onProblem?.({ kind: 'disconnected', error: round.error, retryMs });
      await wait(clock, retryMs, signal);
    }
  }

  /** One watch to its end, with a reading first if needed. Healthy means that the watch brought us forward. */
  async #round(signal: AbortSignal): Promise<{ readonly isHealthy: boolean; readonly error?: ApiError }> {
    this.#followed = undefined;
    this.#reading = undefined;
    const isStreaming = this.#version === undefined && this.#canStream;
    try {
      if (this.#version === undefined && !isStreaming) await this.#readPages(signal);
      await this.#watch(signal);
      return { isHealthy: this.#isHealthy() };
    } catch (error) {
      if (signal.aborted) return { isHealthy: false };
      if (!(error instanceof ApiError)) throw error;
      if (isStreaming && isInvalid(error)) {
        this.#canStream = false;
        return { isHealthy: true };
      }
      const isHealthy = this.#isHealthy();
      // A stream that we could not read may have hidden a change; only a new reading tells.
      if (isGone(error) || error.reason === 'Garbled') this.#version = undefined;
      return { isHealthy, error };
    }
  }

  #isHealthy(): boolean {
    if (this.#followed === undefined) return false;
    const lastedMs = this.#options.clock.monotonicMs() - this.#followed.sinceMs;
    return lastedMs >= healthyMs || this.#version !== this.#followed.version;
  }

  async #readPages(signal: AbortSignal): Promise<void> {
    const { client, resource, scope, pageSize } = this.#options;
    let version = '';
    this.#reading = new Set();
    // The informer has a back-off of its own.
    for await (const page of client.list<O>(resource, { ...scope, signal, pageSize, retries: 0 })) {
      for (const object of page.items) this.#put(object);
      version = page.resourceVersion;
      this.#heardAtMs = this.#options.clock.monotonicMs();
    }
    this.#endReading(version);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, resource, scope, clock, random, stallMs } = this.#options;
    const sendInitialEvents = this.#version === undefined;
    if (this.#version === undefined) this.#reading = new Set();
    else this.#followed = { version: this.#version, sinceMs: clock.monotonicMs() };
    // Watches that began together must not end together.
    const timeoutSeconds = Math.round(240 + 60 * random());
    this.#watches += 1;
    const options = { ...scope, resourceVersion: this.#version, sendInitialEvents, timeoutSeconds, stallMs, signal };
    for await (const event of client.watch<O>(resource, options)) {
      this.#heardAtMs = clock.monotonicMs();
      this.#take(event);
    }
  }

  #take(event: WatchEvent<O>): void {
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
        this.#put(event.object);
        this.#advance(event.object.metadata.resourceVersion);
        return;
      case 'DELETED':
        this.#delete(keyOf(event.object));
        this.#advance(event.object.metadata.resourceVersion);
        return;
      case 'BOOKMARK':
        if (event.isInitialEnd) this.#endReading(event.resourceVersion);
        else this.#advance(event.resourceVersion);
        return;
      case 'ERROR':
        throw event.error;
    }
  }

  /** Versions of objects in an unfinished reading say nothing about what is still to come. */
  #advance(version: string | undefined): void {
    if (this.#reading === undefined) this.#version = version;
  }

  /** The whole collection was read: what it did not hold is gone. */
  #endReading(version: string): void {
    for (const key of [...this.#store.keys(), ...this.#unreadable]) {
      if (this.#reading?.has(key) === false) this.#delete(key);
    }
    this.#reading = undefined;
    this.#version = version;
    this.#followed = { version, sinceMs: this.#options.clock.monotonicMs() };
    this.#readings += 1;
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#sync.resolve();
    }
  }

  #put(object: O): void {
    const key = keyOf(object);
    this.#reading?.add(key);
    let value: T | undefined;
    try {
      value = this.#options.project(object, this.#store.get(key));
    } catch (error) {
      this.#unreadable.add(key);
      this.#options.onProblem?.({ kind: 'unreadable', key, error });
      return;
    }
    this.#unreadable.delete(key);
    this.#tell(value === undefined ? this.#store.delete(key) : this.#store.put(key, value));
  }

  #delete(key: string): void {
    this.#unreadable.delete(key);
    this.#tell(this.#store.delete(key));
  }

  #tell(change: StoreChange<T> | undefined): void {
    if (change === undefined) return;
    for (const listener of this.#listeners) listener(change);
  }
}

/** Without indexes I is never, for which the empty record is the only value; the compiler cannot see that. */
function noIndexes<T, I extends string>(): IndexFunctions<T, I> {
  return {} as IndexFunctions<T, I>;
}
