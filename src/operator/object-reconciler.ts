/** What is done to the objects of proxies and rules: brought to what the plan asks for, and removed when it no longer does. */
import { keyOf } from '../runtime/kube/resource.ts';
import { messageOf } from '../runtime/process/bug.ts';
import { type DesiredObject, isOurs, type MadeKind, resources } from './objects/kind.ts';
import { proxyObjects, proxyService } from './objects/proxy-objects.ts';
import { ruleObjects } from './objects/rule-objects.ts';
import type { OperatorDeps } from './operator.ts';
import { type OperatorSnapshot, selectorOf, workloadOf } from './snapshot.ts';
import type { Task } from './task.ts';

const madeKinds = Object.keys({
  deployments: true,
  services: true,
  autoscalers: true,
  disruptionBudgets: true,
  networkPolicies: true,
  endpointSlices: true,
} satisfies Record<MadeKind, true>) as readonly MadeKind[];

/** An object as it should be; `proxy` is the key of the proxy that cannot run without it. */
interface Wish {
  readonly wanted: DesiredObject;
  readonly proxy: string | undefined;
}

export class ObjectReconciler {
  readonly #deps: OperatorDeps;
  #foreign = new Set<string>();
  #refusals = new Map<string, string>();

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
  }

  /** Keys of Services that rules need and that somebody else has, as the last tasks found them. */
  get foreign(): ReadonlySet<string> {
    return this.#foreign;
  }

  /** What a proxy lacks, by its key, as the last tasks found it. */
  get refusals(): ReadonlyMap<string, string> {
    return this.#refusals;
  }

  /** True while somebody else has what is needed here, or Kubernetes refuses it: no cache tells when that ends. */
  get isObstructed(): boolean {
    return this.#foreign.size > 0 || this.#refusals.size > 0;
  }

  /** What is foreign and what is lacking as one text, to see whether they have changed. */
  foundText(): string {
    return JSON.stringify([[...this.#foreign].toSorted(), [...this.#refusals].toSorted()]);
  }

  /** Everything that is to be written or removed. What the tasks find replaces what was found before. */
  tasks(world: OperatorSnapshot): Task[] {
    const wishes = [...this.#proxyWishes(world), ...this.#ruleWishes(world)];
    this.#foreign = new Set();
    this.#refusals = new Map();
    return [...wishes.map((wish) => this.#bringTask(wish)), ...this.#removals(wishes)];
  }

  #proxyWishes({ plan }: OperatorSnapshot): Wish[] {
    const { caches, settings } = this.#deps;
    return [...plan.proxies.values()].flatMap((proxy): Wish[] => {
      const { key, view, references } = proxy;
      const uid = caches.proxies.store.get(key)?.metadata.uid;
      if (view === undefined || uid === undefined || references.length === 0) return [];
      if (!settings.proxyNamespaces.includes(view.namespace)) return [];
      const workload = workloadOf(caches, key);
      // A Deployment that somebody else made is kept as it is; only the way to it is ours (seed 004, step 3).
      const wanted =
        workload === undefined || isOurs(workload)
          ? proxyObjects(proxy, view, uid, settings)
          : [proxyService(proxy, view, uid, selectorOf(caches, key, view.name))];
      return wanted.map((one) => ({ wanted: one, proxy: key }));
    });
  }

  #ruleWishes({ plan, readyPods }: OperatorSnapshot): Wish[] {
    const { caches } = this.#deps;
    return [...plan.egresses.values()].flatMap(({ view, rules }): Wish[] => {
      const { key, name, namespace, proxy } = view;
      const uid = caches.egresses.store.get(key)?.metadata.uid;
      if (uid === undefined) return [];
      const wanted = ruleObjects({ name, namespace, uid }, rules, readyPods.get(proxy) ?? []);
      return wanted.map((one) => ({ wanted: one, proxy: undefined }));
    });
  }

  #bringTask({ wanted, proxy }: Wish): Task {
    const { writer, log } = this.#deps;
    const key = keyOf(wanted.object);
    const { kind } = resources[wanted.kind];
    const [foreign, refusals] = [this.#foreign, this.#refusals];
    return {
      name: `${kind} ${key}`,
      run: async (signal) => {
        const brought = await writer.bring(wanted, signal);
        if (brought === 'written') log.info({ component: 'operator', key }, `wrote the ${kind}`);
        if (brought !== 'foreign') return;
        if (proxy === undefined) foreign.add(key);
        else refusals.set(proxy, `${kind} ${key} is somebody else's`);
      },
      failed: (error) => {
        if (proxy !== undefined) refusals.set(proxy, messageOf(error));
      },
    };
  }

  #removals(wishes: readonly Wish[]): Task[] {
    const { writer, log } = this.#deps;
    return madeKinds.flatMap((made) => {
      const wanted = new Set(wishes.flatMap((wish) => (wish.wanted.kind === made ? [keyOf(wish.wanted.object)] : [])));
      const { kind } = resources[made];
      return writer.surplus(made, wanted).map((object): Task => {
        const key = keyOf(object);
        return {
          name: `${kind} ${key}`,
          run: async (signal) => {
            await writer.remove(made, object, signal);
            log.info({ component: 'operator', key }, `removed the ${kind}`);
          },
        };
      });
    });
  }
}
