/**
 * The vote of the API server, as a Lease: whoever holds it has one vote more, which decides where nodes are even in
 * number. It keeps an epoch, in the count of its transitions: each new holder records one more than it finds, or what it
 * was told to record if that is more. Held only while the votes of nodes are not enough.
 */
import type { LeaseStore } from '../../runtime/control/lease-record.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';

export interface ApiVoteDeps {
  readonly node: string;
  readonly store: LeaseStore;
  readonly clock: Clock;
  /** The vote is ours until then, on the monotonic clock, or not any more. */
  readonly onVote: (untilMs: number | undefined, epoch: number) => void;
}

/** What is not renewed for so long is free, by the clock of whoever wants it. */
const durationMs = 5_000;
/** The holder counts on less: its own clock may be slower than that of others. */
const countedMs = 4_000;
const renewMs = 1_000;
const retryMs = 100;

export class ApiVote {
  readonly #deps: ApiVoteDeps;
  #isWanted = false;
  #epoch = 0;
  #wake = new AbortController();
  /** The version of the record that somebody else holds, and when we first saw it. */
  #seen: { readonly version: string; readonly atMs: number } | undefined;

  constructor(deps: ApiVoteDeps) {
    this.#deps = deps;
  }

  /** Whether the vote is wanted, and the epoch to record with it. */
  want(isWanted: boolean, epoch: number): void {
    this.#isWanted = isWanted;
    this.#epoch = Math.max(this.#epoch, epoch);
    // Whoever relied on it is told before anybody else can have it.
    if (!isWanted) this.#deps.onVote(undefined, this.#epoch);
    this.#wake.abort();
  }

  /** Asks for the vote and keeps it while it is wanted, until the signal is aborted. Rejects only for bugs. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let isHeld = false;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      if (this.#isWanted || isHeld) isHeld = await this.#step(isHeld, signal);
      const isWaiting = this.#isWanted || isHeld;
      const pauseMs = isWaiting ? (isHeld ? renewMs : retryMs) : 3_600_000;
      await wait(clock, pauseMs, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  /** One request, or two. True when the vote is ours. */
  async #step(isHeld: boolean, signal: AbortSignal): Promise<boolean> {
    const { store, clock, onVote } = this.#deps;
    try {
      const askedAtMs = clock.monotonicMs();
      const stored = await store.read(signal);
      const record = stored?.record;
      const isOurs = record?.holder === this.#deps.node;
      if (!this.#isWanted) {
        if (isOurs && stored !== undefined)
          await this.#write(record?.transitions ?? 0, undefined, stored.version, signal);
        return false;
      }
      if (record?.holder !== undefined && !isOurs && !this.#hasRunOut(stored?.version ?? '', record.durationSeconds)) {
        if (isHeld) onVote(undefined, this.#epoch);
        return false;
      }
      const found = record?.transitions ?? 0;
      const epoch = Math.max(isOurs ? found : found + 1, this.#epoch);
      if (!(await this.#write(epoch, this.#deps.node, stored?.version, signal))) return false;
      if (!this.#isWanted) return true;
      onVote(askedAtMs + countedMs, epoch);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // The API server is away: what we were promised still holds until its time.
      return isHeld;
    }
  }

  #hasRunOut(version: string, durationSeconds: number): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#seen?.version !== version) this.#seen = { version, atMs: nowMs };
    return nowMs - this.#seen.atMs > Math.max(durationSeconds * 1_000, durationMs);
  }

  #write(
    epoch: number,
    holder: string | undefined,
    version: string | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const now = this.#deps.clock.now();
    const record = { holder, durationSeconds: durationMs / 1_000, acquired: now, renewed: now, transitions: epoch };
    return this.#deps.store.write(record, version, signal);
  }
}
