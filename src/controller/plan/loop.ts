/**
 * KindLoop makes the objects of one kind show what was decided. It is level based: it gets a key, looks at the last decision
 * and at the object, and writes what differs. An object that cannot be written holds up nobody else.
 */
import { type KindName, resourceOf } from '../../api/kinds.ts';
import type { ReconcileResult } from '../../runtime/control/controller.ts';
import type { EventFacts } from '../../runtime/kube/event-recorder.ts';
import type { AnyStatus } from '../../runtime/kube/owned-status.ts';
import { apiVersionOf, refOf } from '../../runtime/kube/resource.ts';
import type { CachedObject, ControllerCache, Identity } from '../loop/caches.ts';
import type { ControlLoopDeps } from '../loop/control-loop.ts';
import type { Change } from './change.ts';
import type { IndexedPlan } from './decision.ts';
import type { ObjectEvent } from './events.ts';
import { WritePriority } from './write-priority.ts';
import { isLostRace, ObjectWriter, type ObjectWriterOptions } from './writer.ts';

/** What a loop does, and for which kind. */
export interface KindLoopOptions<View, Status extends AnyStatus>
  extends Pick<ObjectWriterOptions<Status>, 'finalizer' | 'ownership'> {
  /** Also the field manager, after `sallyport-`. */
  readonly name: string;
  readonly kind: KindName;
  readonly cache: ControllerCache<CachedObject<View, Status>>;
  /** Keys that a decision is about. Objects in the cache are looked at in any case. */
  readonly keysOf: (decision: IndexedPlan) => Iterable<string>;
  /** What has to be written; empty when the object is as it should be. Pure. */
  readonly changesOf: (
    key: string,
    decision: IndexedPlan,
    kept: CachedObject<View, Status> | undefined,
    now: Date,
  ) => readonly Change<Status>[];
  /** What people are told about a new status. Pure. */
  readonly happeningsOf: (before: Status | undefined, after: Status) => readonly ObjectEvent[];
  /**
   * The objects about which a decision may say something else than the last one that all were compared with; absent where
   * it costs less to compare all again.
   */
  readonly changedSince?: (last: IndexedPlan, decision: IndexedPlan) => Iterable<string>;
  /** The least time since the last status of the object was written before this one may be; 0 when absent. Pure. */
  readonly paceMs?: (before: Status | undefined, after: Status) => number;
  /** True while a status may not be written, because another object has to be written first. Never, when absent. */
  readonly hasToWait?: (key: string, decision: IndexedPlan) => boolean;
  /** True when no packet waits for the status: in a burst it lets others go first. Never, when absent. Pure. */
  readonly canStepBack?: (before: Status | undefined, after: Status) => boolean;
}

type KindLoopDeps = Pick<ControlLoopDeps, 'client' | 'clock' | 'log' | 'events'>;

/** After a lost race the cache needs a moment to show why. */
const raceMs = 50;
/** Until another object is written, which is on its way. */
const turnMs = 10;

/** The control loop of one kind. */
export class KindLoop<View, Status extends AnyStatus> {
  readonly name: string;
  readonly cache: ControllerCache<CachedObject<View, Status>>;
  readonly #options: KindLoopOptions<View, Status>;
  readonly #deps: KindLoopDeps;
  readonly #writer: ObjectWriter<Status>;
  /** key -> when its status was last written; kept only where there is a pace */
  readonly #writtenAtMs = new Map<string, number>();
  readonly #turns = new WritePriority();
  /** The last decision that every object was compared with. */
  #compared: IndexedPlan | undefined;

  constructor(options: KindLoopOptions<View, Status>, deps: KindLoopDeps) {
    this.name = options.name;
    this.cache = options.cache;
    this.#options = options;
    this.#deps = deps;
    this.#writer = new ObjectWriter(deps.client, {
      resource: resourceOf(options.kind),
      fieldManager: `sallyport-${options.name}`,
      finalizer: options.finalizer,
      ownership: options.ownership,
    });
  }

  /**
   * The keys of all objects that are not as decided. An object about which the last decision said the same was queued
   * then, and is queued whenever it changes.
   */
  keysBehind(decision: IndexedPlan): string[] {
    const last = this.#compared;
    this.#compared = decision;
    const { changedSince, keysOf } = this.#options;
    const { store } = this.cache;
    const keys =
      last === undefined || changedSince === undefined
        ? new Set([...keysOf(decision), ...store.keys()])
        : changedSince(last, decision);
    return [...keys].filter((key) => this.#changesOf(key, decision).changes.length > 0);
  }

  /** Brings one object to where the decision wants it. */
  async reconcile(key: string, decision: IndexedPlan, signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.cache.store.has(key)) this.#forget(key);
    const { kept, changes } = this.#changesOf(key, decision);
    try {
      for (const change of changes) {
        if (change.kind === 'create') await this.#writer.create(refOf(key).name, signal);
        else if (kept !== undefined) {
          const isStatus = change.kind === 'status';
          if (isStatus && this.#options.hasToWait?.(key, decision)) return { kind: 'requeue', afterMs: turnMs };
          const waitMs = isStatus ? this.#waitMs(key, kept.status, change.status) : 0;
          if (waitMs > 0) return { kind: 'requeue', afterMs: waitMs };
          await this.#writer.write(key, kept.identity, change, signal);
        }
        this.#report(key, kept, change);
      }
    } catch (error) {
      if (isLostRace(error)) return { kind: 'requeue', afterMs: raceMs };
      throw error;
    }
    return { kind: 'done' };
  }

  #changesOf(key: string, decision: IndexedPlan) {
    const cached = this.cache.store.get(key);
    const kept = cached && this.#writer.latest(key, cached);
    return { kept, changes: this.#options.changesOf(key, decision, kept, this.#deps.clock.now()) };
  }

  #forget(key: string): void {
    this.#writer.forget(key);
    this.#writtenAtMs.delete(key);
    this.#turns.forget(key);
  }

  /** How long the status has to wait for its turn; 0 counts it as written now. */
  #waitMs(key: string, before: Status | undefined, after: Status): number {
    const { paceMs, canStepBack } = this.#options;
    const nowMs = this.#deps.clock.monotonicMs();
    const turnMs = canStepBack === undefined ? 0 : this.#turns.waitMs(key, !canStepBack(before, after), nowMs);
    if (turnMs > 0 || paceMs === undefined) return turnMs;
    const waitMs = (this.#writtenAtMs.get(key) ?? Number.NEGATIVE_INFINITY) + paceMs(before, after) - nowMs;
    if (waitMs <= 0) this.#writtenAtMs.set(key, nowMs);
    return Math.max(0, waitMs);
  }

  #report(key: string, kept: CachedObject<View, Status> | undefined, change: Change<Status>): void {
    const log = this.#deps.log.child({ controller: this.name });
    if (change.kind !== 'status' || kept === undefined) {
      log.info({ key }, sentences[change.kind]);
      return;
    }
    log.debug({ key }, sentences.status);
    for (const happening of this.#options.happeningsOf(kept.status, change.status)) {
      log.info({ key, reason: happening.reason }, happening.note);
      this.#deps.events.record(this.#eventOf(kept.identity, happening));
    }
  }

  #eventOf({ name, namespace, uid }: Identity, { type, reason, note }: ObjectEvent): EventFacts {
    const { kind } = this.#options;
    const regarding = { apiVersion: apiVersionOf(resourceOf(kind)), kind, name, namespace, uid };
    return { regarding, type, reason, action: 'Plan', note };
  }
}

const sentences = {
  create: 'created',
  delete: 'deleted',
  hold: 'put the finalizer on',
  release: 'took the finalizer off',
  status: 'wrote the status',
} as const satisfies Record<Change<never>['kind'], string>;
