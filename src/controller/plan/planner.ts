/**
 * Planner decides anew whenever something has changed that a decision depends on: an object, the configuration, or the
 * silence of an agent. Our own writes come back as changes of statuses; they are no reason to decide again.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Watch } from '../../runtime/control/watch.ts';
import { wait } from '../../runtime/process/clock.ts';
import type { CachedObject, ControllerCache, ControllerCaches } from '../loop/caches.ts';
import type { ControlLoopDeps } from '../loop/control-loop.ts';
import type { Decider, IndexedPlan, PlanInput } from './decision.ts';
import { ChangeThrottle } from './gathering.ts';
import type { Heartbeats } from './heartbeats.ts';

/** While changes keep coming there is a rest between two plans; see Gathering. */
const times = { firstMs: 5, limitMs: 160 };

/** What a planner needs. */
export interface PlannerDeps extends Pick<ControlLoopDeps, 'config' | 'clock'> {
  readonly caches: { readonly [K in PlanInput]: Pick<ControllerCaches[K], 'subscribe'> };
  readonly metrics: Pick<ControlLoopDeps['metrics'], 'controller'>;
}

/** The one who decides. `run` it once. */
export class Planner {
  readonly #deps: PlannerDeps;
  readonly #heartbeats: Pick<Heartbeats, 'look'>;
  readonly #changes: ChangeThrottle;
  readonly #listeners = new Set<() => void>();
  readonly #first = Promise.withResolvers<void>();
  #decision: IndexedPlan | undefined;

  constructor(deps: PlannerDeps, heartbeats: Pick<Heartbeats, 'look'>) {
    this.#deps = deps;
    this.#heartbeats = heartbeats;
    this.#changes = new ChangeThrottle(deps.clock, times);
  }

  /** The last decision; undefined until the caches are filled and the first one is made. */
  get decision(): IndexedPlan | undefined {
    return this.#decision;
  }

  /**
   * A watch that names the keys which `keysBehind` finds after a decision: at once, or when there was no other decision for
   * `delayMs`; but at the latest `limitMs` after the first one that it has not looked at.
   */
  watch(
    name: string,
    keysBehind: (decision: IndexedPlan) => Iterable<string>,
    delayMs = 0,
    limitMs: number = delayMs,
  ): Watch {
    const { clock } = this.#deps;
    const present = (): Iterable<string> => (this.#decision === undefined ? [] : keysBehind(this.#decision));
    return {
      name,
      synced: this.#first.promise,
      presentKeys: present,
      subscribe: (listener) => {
        let cancel: (() => void) | undefined;
        let sinceMs: number | undefined;
        const look = (): void => {
          sinceMs = undefined;
          listener(present());
        };
        const tell = (): void => {
          if (delayMs === 0) {
            look();
            return;
          }
          const nowMs = clock.monotonicMs();
          sinceMs ??= nowMs;
          cancel?.();
          cancel = clock.after(Math.min(delayMs, sinceMs + limitMs - nowMs), look);
        };
        this.#listeners.add(tell);
        return () => {
          this.#listeners.delete(tell);
          cancel?.();
        };
      },
    };
  }

  /** Decides until the signal is aborted. */
  async run(decider: Pick<Decider, 'decide'>, signal: AbortSignal): Promise<void> {
    const subscriptions = this.#subscribe();
    try {
      await Promise.all([this.#decideAlways(decider, signal), this.#listenForSilence(signal)]);
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe();
    }
  }

  async #decideAlways(decider: Pick<Decider, 'decide'>, signal: AbortSignal): Promise<void> {
    const { clock, config, metrics } = this.#deps;
    const hooks = metrics.controller('plan');
    // Without any object there is no change, and still something to decide: that nothing is to be done.
    this.#changes.tell();
    let durationMs = 0;
    while (await this.#changes.next(durationMs, signal)) {
      const startMs = clock.monotonicMs();
      const decision = decider.decide(config.current);
      this.#decision = decision;
      for (const listener of this.#listeners) listener();
      this.#first.resolve();
      durationMs = clock.monotonicMs() - startMs;
      hooks.reconciled({ outcome: 'done', reason: '', durationMs, ageMs: durationMs });
    }
  }

  async #listenForSilence(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { gatewayFailover, failover } = this.#deps.config.current.feature;
      const { enable, tunnelMonitorPeriod, tunnelUpdatePeriod, eipEvictionTimeout } = gatewayFailover;
      const timeoutMs = enable ? eipEvictionTimeout * 1000 : Number.POSITIVE_INFINITY;
      // After the grace other agents have acted; what they report is one period away.
      const graceMs = (failover.graceSeconds + tunnelUpdatePeriod) * 1000;
      if (this.#heartbeats.look(timeoutMs, tunnelMonitorPeriod * 1000, graceMs)) this.#changes.tell();
      await wait(this.#deps.clock, tunnelMonitorPeriod * 1000, signal);
    }
  }

  #subscribe(): readonly (() => void)[] {
    const { caches, config } = this.#deps;
    const tell = (): void => this.#changes.tell();
    return [
      config.changed(tell),
      caches.nodes.subscribe(tell),
      caches.namespaces.subscribe(tell),
      caches.clusterInfos.subscribe(tell),
      // The generation counts changes of the spec; wishes are annotations.
      this.#subscribeTo(caches.gateways, ({ identity, view }) => [identity.generation, view.moves]),
      this.#subscribeTo(caches.policies, ({ identity }) => identity.generation),
      this.#subscribeTo(caches.clusterPolicies, ({ identity }) => identity.generation),
      this.#subscribeTo(caches.tunnels, ({ view: { device, held, conflicts, uplink, detectionMs, electorate } }) => ({
        ...{ device, held, conflicts, uplink, detectionMs },
        isWatched: electorate !== undefined,
      })),
    ];
  }

  /** Tells about changes of what a decision reads: whether the object is there, and what `inputOf` returns. */
  #subscribeTo<View, Status>(
    cache: Pick<ControllerCache<CachedObject<View, Status>>, 'subscribe'>,
    inputOf: (kept: CachedObject<View, Status>) => unknown,
  ): () => void {
    const input = (kept: CachedObject<View, Status>): unknown => {
      const { uid, isDeleting } = kept.identity;
      return [uid, isDeleting, inputOf(kept)];
    };
    return cache.subscribe((change) => {
      const isOld = change.kind === 'put' && change.previous !== undefined;
      if (!isOld || !isDeepStrictEqual(input(change.previous), input(change.value))) this.#changes.tell();
    });
  }
}
