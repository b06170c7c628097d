/**
 * The operator's one pass: look at the caches, plan, write what differs. Statuses come first, because proxies wait for
 * them; then objects, names, and at last the release of what is being deleted. Every object is a task of its own: what
 * fails for one is tried again later and stops nobody.
 */
import type { PassResult } from '../runtime/control/loop.ts';
import { ApiError, isConflict, isNotFound } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { messageOf } from '../runtime/process/bug.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { PublishedNames } from './dns/names.ts';
import { EgressReconciler } from './egress-reconciler.ts';
import type { OperatorCaches } from './inputs/caches.ts';
import type { ProxyPod } from './inputs/pods.ts';
import { ObjectReconciler } from './object-reconciler.ts';
import type { ProxySettings } from './objects/proxy-objects.ts';
import { ProxyReconciler } from './proxy-reconciler.ts';
import { hostEntries } from './publication.ts';
import type { Replicas } from './replicas.ts';
import { ServedNames } from './served-names.ts';
import { lookAt, type OperatorSnapshot } from './snapshot.ts';
import type { Statuses } from './statuses.ts';
import { atMost, type Task } from './task.ts';
import type { DesiredObjectWriter } from './writer.ts';

export interface OperatorSettings extends ProxySettings {
  /** Where proxies may run. */
  readonly proxyNamespaces: readonly string[];
  /** The one BCSEgressController that is made when a BCSEgress names it and it is missing; undefined: none is. */
  readonly defaultProxy: { readonly key: string; readonly spec: object } | undefined;
  /** Search domains of pods, which no rule may publish a name of, beside `reservedNames`. */
  readonly searchDomains: readonly string[];
}

export interface OperatorDeps {
  readonly client: KubeClient;
  readonly caches: OperatorCaches;
  readonly writer: DesiredObjectWriter;
  readonly statuses: Statuses;
  readonly replicas: Replicas;
  /** Undefined when names are not published. */
  readonly names: PublishedNames | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: OperatorSettings;
}

/** Writes at once: enough to be quick with a thousand rules, and little enough for the API server. */
const writesAtOnce = 8;

export class Operator {
  readonly #deps: OperatorDeps;
  readonly #egresses: EgressReconciler;
  readonly #objects: ObjectReconciler;
  readonly #proxies: ProxyReconciler;
  /** what failed -> why, so that the same is told once */
  readonly #failures = new Map<string, string>();
  readonly #servedNames: ServedNames;
  #readyPods: OperatorSnapshot['readyPods'] = new Map();

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
    this.#objects = new ObjectReconciler(deps);
    this.#egresses = new EgressReconciler(deps, this.#objects);
    this.#proxies = new ProxyReconciler(deps, this.#objects);
    this.#servedNames = new ServedNames(deps.clock, deps.replicas);
  }

  /** True while a rule waits for a replica or a name, or an object for its release. */
  get hasPending(): boolean {
    return this.#egresses.hasPending;
  }

  /** The ready pods of all proxies at the last look: those whose reports matter. */
  readyPods(): ProxyPod[] {
    return [...this.#readyPods.values()].flat();
  }

  /** One pass. Rejects only for bugs. */
  async pass(signal: AbortSignal): Promise<PassResult> {
    const { caches, settings } = this.#deps;
    const world = lookAt(caches, [...settings.reservedNames, ...settings.searchDomains]);
    this.#readyPods = world.readyPods;
    const found = this.#objects.foundText();
    const results = [
      await this.#do([...this.#egresses.statusTasks(world), ...this.#proxies.statusTasks(world)], signal),
      await this.#do([...this.#proxies.makingTasks(world), ...this.#objects.tasks(world)], signal),
      await this.#do(this.#proxies.sizeTasks(world), signal),
      await this.#publish(world, signal),
      await this.#do(this.#egresses.releaseTasks(world), signal),
    ];
    // What Kubernetes or others have refused is told by the next pass, and tried again: no cache will ask for it.
    const hasNews = found !== this.#objects.foundText();
    return results.every((result) => result) && !hasNews && !this.#objects.isObstructed ? 'done' : 'again';
  }

  async #publish(world: OperatorSnapshot, signal: AbortSignal): Promise<boolean> {
    const { names, caches } = this.#deps;
    if (names === undefined) return true;
    const entries = hostEntries(caches, world.plan, this.#servedNames.ids(world, names.before));
    const tasks = [{ name: 'names in the DNS of the cluster', run: (own: AbortSignal) => names.apply(entries, own) }];
    return (await this.#do(tasks, signal)) && !this.#servedNames.hasDoubt;
  }

  /** Runs tasks side by side; true when all went well. A lost race is seen by the caches and leads to another pass. */
  async #do(tasks: readonly Task[], signal: AbortSignal): Promise<boolean> {
    const outcomes = await atMost(writesAtOnce, tasks, (task) => this.#try(task, signal));
    return outcomes.every((outcome) => outcome);
  }

  async #try({ name, run, failed }: Task, signal: AbortSignal): Promise<boolean> {
    try {
      await run(signal);
      this.#failures.delete(name);
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (!(error instanceof ApiError)) throw error;
      const message = messageOf(error);
      if (isConflict(error) || isNotFound(error)) return false;
      failed?.(error);
      if (this.#failures.get(name) !== message) this.#deps.log.warn({ component: 'operator' }, `${name}: ${message}`);
      this.#failures.set(name, message);
      return false;
    }
  }
}
