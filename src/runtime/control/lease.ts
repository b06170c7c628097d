/**
 * LeaderLease lets one of several processes lead. The rule that keeps two from leading at once needs no common
 * clock: a leader stops `renewDeadlineMs` after it *sent* its last successful write, and a candidate takes over only
 * after it has *seen* no write for `durationMs`, each by its own monotonic clock. The difference between the two is
 * what clocks may drift apart during one lease, plus the time the old leader has to exit.
 */
import { EgressError } from '../../api/error.ts';
import { isBug, messageOf } from '../process/bug.ts';
import { type Clock, wait, withLimit } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import type { LeaseLoss } from './lease-lost.ts';
import type { LeaseRecord, LeaseStore, StoredLease } from './lease-record.ts';

/** The timing of a lease. All candidates must agree on it; a longer duration found in the record is honoured. */
export interface LeaseTiming {
  /** A candidate takes over after seeing no renewal for this long. */
  readonly durationMs: number;
  /** A leader gives up when it could not renew for this long. Must be shorter than `durationMs`. */
  readonly renewDeadlineMs: number;
  /** Pause between two tries; candidates add up to a fifth, so that they do not come at the same time. */
  readonly retryMs: number;
}

/**
 * Twice the values of Kubernetes' own components: on a starved machine, or with a starved API server, a renewal takes seconds,
 * and nobody waits for the next leader. Agents fail over by themselves, and a leader that stops gives the lease back.
 */
export const defaultLeaseTiming: LeaseTiming = { durationMs: 30_000, renewDeadlineMs: 20_000, retryMs: 2_000 };

/** What a lease tells its metrics. */
export interface LeaseHooks {
  leading(isLeader: boolean): void;
  /** Holders so far, as written in the record. */
  transitions(count: number): void;
  failed(): void;
}

/** What a lease needs. */
export interface LeaseDeps {
  readonly store: LeaseStore;
  /** Must be unique to this run of the process: a restarted process is another candidate. One that lost the lease is not. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly timing?: LeaseTiming;
  readonly hooks?: LeaseHooks;
}

/** What the owner of a lease wants to know. */
export interface LeaseEvents {
  /** Called once, when this process begins to lead. */
  readonly onLeading: () => void;
  /** Called at most once. Whoever leads from now on may already be working: end what only a leader may do. */
  readonly onLost: (loss: LeaseLoss) => void;
}

/** The last change this process has seen, and when it saw it. */
interface Observation {
  readonly version: string | undefined;
  readonly sinceMs: number;
}

/** One candidacy. `run` it once; after a loss or a release it cannot be used again. */
export class LeaderLease {
  readonly #deps: LeaseDeps;
  readonly #timing: LeaseTiming;
  readonly #log: Log;
  /** Leading until this instant of the monotonic clock. */
  #leadsUntilMs = Number.NEGATIVE_INFINITY;
  #observed: Observation | undefined;
  #hasSeenHolder = false;
  /** The last try got no answer: the log has said so. */
  #isFailing = false;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
    this.#timing = deps.timing ?? defaultLeaseTiming;
    const { durationMs, renewDeadlineMs, retryMs } = this.#timing;
    if (!(retryMs > 0 && retryMs * 2 <= renewDeadlineMs && renewDeadlineMs < durationMs)) {
      throw new EgressError(
        'CONFIG_INVALID',
        `lease timing ${durationMs}/${renewDeadlineMs}/${retryMs} ms is not allowed: the duration must be longer than the renew deadline, and that at least twice the retry`,
        { data: { ...this.#timing } },
      );
    }
    this.#log = deps.log.child({ component: 'lease' });
  }

  /** True while no other process can lead. It turns false by itself with time: ask before every act that matters. */
  isLeader(): boolean {
    return this.#deps.clock.monotonicMs() < this.#leadsUntilMs;
  }

  /** Runs until the signal is aborted, then gives the lease back; or until the lease is lost. Rejects only on a bug. */
  async run(signal: AbortSignal, events: LeaseEvents): Promise<void> {
    if (!(await this.#acquire(signal))) return;
    this.#log.info({}, `"${this.#deps.identity}" leads`);
    this.#deps.hooks?.leading(true);
    events.onLeading();
    const loss = await this.#hold(signal);
    this.#leadsUntilMs = Number.NEGATIVE_INFINITY;
    this.#deps.hooks?.leading(false);
    if (loss === undefined) {
      await this.#release();
      return;
    }
    this.#log.warn({ reason: loss }, 'lost the lease and does not write until it has it again');
    events.onLost(loss);
  }

  /** Tries until the lease is ours. False when the signal came first. */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random } = this.#deps;
    while (!signal.aborted) {
      if ((await this.#attempt(this.#timing.renewDeadlineMs / 2, signal)) === 'held') return true;
      await wait(clock, this.#timing.retryMs * (1 + random() / 5), signal);
    }
    return false;
  }

  /** Renews until the signal is aborted (undefined) or the lease is lost. */
  async #hold(signal: AbortSignal): Promise<LeaseLoss | undefined> {
    const { clock } = this.#deps;
    for (;;) {
      await wait(clock, Math.min(this.#timing.retryMs, this.#remainingMs()), signal);
      if (signal.aborted) return undefined;
      if (!this.isLeader()) return 'RenewDeadline';
      // Half of the deadline per try: one stalled request does not use up all of the time.
      const outcome = await this.#attempt(Math.min(this.#timing.renewDeadlineMs / 2, this.#remainingMs()), signal);
      if (outcome === 'other') return 'TakenByOther';
    }
  }

  #remainingMs(): number {
    return this.#leadsUntilMs - this.#deps.clock.monotonicMs();
  }

  /** One try to take or renew: `held` on success, `other` when somebody else holds it, `failed` when nobody knows. */
  async #attempt(limitMs: number, signal: AbortSignal): Promise<'held' | 'other' | 'failed'> {
    const { clock, hooks } = this.#deps;
    const error = (): Error => new Error(`no answer within ${Math.round(limitMs)} ms`);
    try {
      const outcome = await withLimit(clock, { ms: limitMs, error, signal }, (limited) => this.#takeOrRenew(limited));
      this.#isFailing = false;
      return outcome;
    } catch (error) {
      if (isBug(error)) throw error;
      if (signal.aborted) return 'failed';
      hooks?.failed();
      if (!this.#isFailing) this.#log.warn({}, `cannot reach the lease, will go on trying: ${messageOf(error)}`);
      this.#isFailing = true;
      return 'failed';
    }
  }

  async #takeOrRenew(signal: AbortSignal): Promise<'held' | 'other' | 'failed'> {
    const { store, clock, hooks } = this.#deps;
    const stored = await store.read(signal);
    signal.throwIfAborted();
    this.#observe(stored);
    if (!this.#mayWrite(stored)) return 'other';
    // Taken before the write: the server cannot have written earlier, so nobody can have seen it earlier.
    const sentMs = clock.monotonicMs();
    const record = this.#nextRecord(stored?.record);
    if (!(await store.write(record, stored?.version, signal))) return 'failed';
    // An answer that comes after the limit no longer counts: the caller has already gone on.
    signal.throwIfAborted();
    this.#leadsUntilMs = sentMs + this.#timing.renewDeadlineMs;
    hooks?.transitions(record.transitions);
    // A process that was frozen while it waited for the answer may read it when the time is long over.
    return this.isLeader() ? 'held' : 'failed';
  }

  #observe(stored: StoredLease | undefined): void {
    if (stored?.record.holder !== undefined) this.#hasSeenHolder = true;
    if (this.#observed !== undefined && this.#observed.version === stored?.version) return;
    this.#observed = { version: stored?.version, sinceMs: this.#deps.clock.monotonicMs() };
  }

  /** Ours, free, or not renewed for so long that its holder has given up. */
  #mayWrite(stored: StoredLease | undefined): boolean {
    const holder = stored?.record.holder;
    if (holder === this.#deps.identity) return true;
    if (stored === undefined) {
      // A record that never existed is free. One that was deleted under its holder is free for the holder only.
      if (!this.#hasSeenHolder || this.isLeader()) return true;
    } else if (holder === undefined) {
      return true;
    }
    const durationMs = Math.max(this.#timing.durationMs, (stored?.record.durationSeconds ?? 0) * 1000);
    return this.#deps.clock.monotonicMs() - (this.#observed?.sinceMs ?? 0) >= durationMs;
  }

  #nextRecord(current: LeaseRecord | undefined): LeaseRecord {
    const { identity, clock } = this.#deps;
    const now = clock.now();
    const isRenewal = current?.holder === identity;
    return {
      holder: identity,
      durationSeconds: Math.ceil(this.#timing.durationMs / 1000),
      acquired: isRenewal ? current.acquired : now,
      renewed: now,
      transitions: current === undefined ? 0 : current.transitions + (isRenewal ? 0 : 1),
    };
  }

  /** Gives the lease back, so that the next leader need not wait. Failing to is harmless: the lease runs out. */
  async #release(): Promise<void> {
    const { store, clock, identity } = this.#deps;
    const limit = { ms: this.#timing.retryMs, error: () => new Error('no answer in time') };
    try {
      await withLimit(clock, limit, async (signal) => {
        const stored = await store.read(signal);
        if (stored?.record.holder !== identity) return;
        const record = { ...stored.record, holder: undefined, durationSeconds: 1, renewed: clock.now() };
        await store.write(record, stored.version, signal);
      });
      this.#log.info({}, 'gave the lease back');
    } catch (error) {
      this.#log.warn({}, `could not give the lease back: ${messageOf(error)}`);
    }
  }
}
