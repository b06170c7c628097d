/** What is done to BCSEgress objects: they are held, judged, told how they stand, and let go. */
import { resourceOf } from '../api/kinds.ts';
import { finalizers, operatorName } from '../api/names.ts';
import type { EgressPlan } from '../core/proxy/plan.ts';
import { isGoneFrom } from '../core/proxy/report.ts';
import { statusOf } from '../core/proxy/status.ts';
import { refOf } from '../runtime/kube/resource.ts';
import type { CachedEgress } from './inputs/caches.ts';
import type { ObjectReconciler } from './object-reconciler.ts';
import type { OperatorDeps } from './operator.ts';
import { isMadeByDefault } from './proxy-reconciler.ts';
import { publishedOf } from './publication.ts';
import type { OperatorSnapshot } from './snapshot.ts';
import type { Task } from './task.ts';

/** A finalizer is not kept longer than this, whatever replicas say. */
const releaseLimitMs = 60_000;

export class EgressReconciler {
  readonly #deps: OperatorDeps;
  readonly #objects: ObjectReconciler;
  #hasPending = false;

  constructor(deps: OperatorDeps, objects: ObjectReconciler) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /** True when an object waited for something at the last look. */
  get hasPending(): boolean {
    return this.#hasPending;
  }

  /** Statuses of all objects; a proxy serves what it sees accepted here. */
  statusTasks(world: OperatorSnapshot): Task[] {
    const { caches, statuses } = this.#deps;
    this.#hasPending = false;
    statuses.keepOnly('BCSEgress', new Set(caches.egresses.store.keys()));
    return [...world.plan.egresses.values()].flatMap((plan): Task[] => {
      const kept = caches.egresses.store.get(plan.view.key);
      return kept === undefined ? [] : [this.#statusTask(world, plan, kept)];
    });
  }

  #statusTask({ readyPods, troubles }: OperatorSnapshot, plan: EgressPlan, kept: CachedEgress): Task {
    const { caches, statuses, names, replicas, clock, settings } = this.#deps;
    const { key, proxy, generation } = plan.view;
    const before = statuses.latest('BCSEgress', key, kept);
    const pods = readyPods.get(proxy) ?? [];
    const isSettled = replicas.isSettled(pods);
    const known = {
      replicas: isSettled ? pods.map((pod) => replicas.of(pod)) : [],
      hadContact: isSettled && before?.syncedAt !== undefined,
      isBeingMade: isMadeByDefault(settings, proxy),
      trouble: troubles.get(proxy),
      published: publishedOf(caches, plan, this.#objects.foreign, names),
    };
    const status = statusOf(plan, known, before, clock.now());
    this.#hasPending ||= status.state === 'Pending';
    // What is served is not known yet: only that the operator has seen the object can be told, and proxies wait for it.
    const canTell = isSettled || before?.observedGeneration !== generation;
    return {
      name: `status of BCSEgress ${key}`,
      run: async (signal) => {
        await this.#hold(kept, signal);
        if (canTell) await statuses.egress(key, kept, status, signal);
      },
    };
  }

  /** An object is held before anything is served of it, so that it cannot go before that is undone. */
  async #hold({ metadata }: CachedEgress, signal: AbortSignal): Promise<void> {
    if (metadata.finalizers?.includes(finalizers.egress)) return;
    const { name, namespace = '', uid = '' } = metadata;
    const object = { metadata: { name, namespace, uid, finalizers: [finalizers.egress] } };
    await this.#deps.client.apply(resourceOf('BCSEgress'), object, { fieldManager: operatorName, signal });
  }

  /** Lets objects go whose rules no replica serves any more, or whose time is over. */
  releaseTasks({ readyPods }: OperatorSnapshot): Task[] {
    const { caches, clock, replicas } = this.#deps;
    return [...caches.egresses.store.entries()].flatMap(([key, { metadata, view }]): Task[] => {
      const { deletionTimestamp, finalizers: held = [] } = metadata;
      if (deletionTimestamp === undefined || !held.includes(finalizers.egress)) return [];
      const pods = readyPods.get(view.proxy) ?? [];
      const known = pods.map((pod) => replicas.of(pod));
      const isGone = replicas.isSettled(pods) && isGoneFrom(known, key);
      const isLate = clock.now().getTime() - Date.parse(deletionTimestamp) > releaseLimitMs;
      if (isGone || isLate) return [this.#release(key, metadata, isGone)];
      this.#hasPending = true;
      return [];
    });
  }

  #release(key: string, { uid, finalizers: held = [] }: CachedEgress['metadata'], isGone: boolean): Task {
    const { client, log } = this.#deps;
    const path = `/metadata/finalizers/${held.indexOf(finalizers.egress)}`;
    const operations = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'test', path, value: finalizers.egress },
      { op: 'remove', path },
    ] as const;
    return {
      name: `release of BCSEgress ${key}`,
      run: async (signal) => {
        await client.patch(resourceOf('BCSEgress'), refOf(key), { kind: 'json', operations }, { signal });
        log.info({ component: 'operator', key }, isGone ? 'released: its rules are gone' : 'released after the limit');
      },
    };
  }
}
