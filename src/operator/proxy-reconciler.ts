/** What is done to BCSEgressControllers: made when they are missing, sized, told how they stand, removed when unused. */
import { resourceOf } from '../api/kinds.ts';
import { labels, operatorName } from '../api/names.ts';
import { type Finding, finding } from '../core/cluster/finding.ts';
import { limitsOfProxy } from '../core/proxy/limits.ts';
import type { ProxyPlan } from '../core/proxy/plan.ts';
import type { ProxyView } from '../core/proxy/view.ts';
import { type KubeObject, refOf } from '../runtime/kube/resource.ts';
import type { ObjectReconciler } from './object-reconciler.ts';
import { isOurs, resources } from './objects/kind.ts';
import type { OperatorDeps, OperatorSettings } from './operator.ts';
import { type OperatorSnapshot, workloadOf } from './snapshot.ts';
import type { Task } from './task.ts';

/** The manager that sets the number of replicas; the autoscaler takes it over. */
const sizeManager = `${operatorName}-size`;

export class ProxyReconciler {
  readonly #deps: OperatorDeps;
  readonly #objects: ObjectReconciler;

  constructor(deps: OperatorDeps, objects: ObjectReconciler) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /** Statuses of all BCSEgressControllers. */
  statusTasks({ plan, readyPods, troubles }: OperatorSnapshot): Task[] {
    const { caches, statuses } = this.#deps;
    statuses.keepOnly('BCSEgressController', new Set(caches.proxies.store.keys()));
    return [...plan.proxies.values()].flatMap(({ key, view, references }): Task[] => {
      const kept = caches.proxies.store.get(key);
      if (kept === undefined || view === undefined) return [];
      const limits = limitsOfProxy(view);
      const readyReplicas = readyPods.get(key)?.length ?? 0;
      const fields = { readyReplicas, references: references.map(namesOf) };
      const findings = {
        Accepted: view.problems[0] ?? finding('Valid', `BCSEgressController ${key} is valid.`),
        Ready: this.#readiness(view, readyReplicas, references.length, troubles.get(key)),
        ...(limits === undefined ? {} : { Limited: limits }),
      };
      return [
        {
          name: `status of BCSEgressController ${key}`,
          run: (signal) => statuses.proxy(key, kept, fields, findings, signal),
        },
      ];
    });
  }

  #readiness(
    { key, namespace, run }: ProxyView,
    ready: number,
    references: number,
    trouble: Finding | undefined,
  ): Finding {
    if (!this.#deps.settings.proxyNamespaces.includes(namespace)) {
      return finding('ProxyNamespaceNotAllowed', `Proxies may not run in namespace ${namespace}.`);
    }
    const refusal = this.#objects.refusals.get(key);
    if (refusal !== undefined) return finding('WorkloadRefused', `The proxy ${key} lacks something: ${refusal}.`);
    if (references === 0) return finding('ProxyReady', `No BCSEgress uses the proxy ${key}, so it does not run.`);
    if (ready >= run.minReplicas)
      return finding('ProxyReady', `At least ${run.minReplicas} replicas of ${key} are ready.`);
    const count = `${ready} of ${run.minReplicas} replicas of ${key} are ready.`;
    if (trouble === undefined) return finding('ReplicasNotReady', count);
    return { reason: trouble.reason, sentence: `${count} ${trouble.sentence}` };
  }

  /** Makes those that are named and missing, and removes those that we made and nobody names. */
  makingTasks({ plan }: OperatorSnapshot): Task[] {
    const { caches, settings } = this.#deps;
    return [...plan.proxies.values()].flatMap((proxy): Task[] => {
      const { key, view, references } = proxy;
      const kept = caches.proxies.store.get(key);
      if (view === undefined) {
        const { defaultProxy } = settings;
        const isWanted = references.length > 0 && defaultProxy !== undefined && isMadeByDefault(settings, key);
        return isWanted ? [this.#make(key, defaultProxy.spec)] : [];
      }
      const isUnused = references.length === 0 && kept !== undefined && isOurs(kept);
      return isUnused ? [this.#remove(key, kept.metadata)] : [];
    });
  }

  /** Only the default one: whoever may write a BCSEgress could else have a proxy without tenants by inventing a name. */
  #make(key: string, spec: object): Task {
    const { client, log } = this.#deps;
    const metadata = { ...namesOf(key), labels: { [labels.managedBy]: operatorName } };
    const object: KubeObject & { spec: object } = { metadata, spec };
    return {
      name: `BCSEgressController ${key}`,
      run: async (signal) => {
        await client.apply(resourceOf('BCSEgressController'), object, { fieldManager: operatorName, signal });
        log.info({ component: 'operator', key }, 'made the BCSEgressController that a BCSEgress names');
      },
    };
  }

  #remove(key: string, { uid }: KubeObject['metadata']): Task {
    const { client, log } = this.#deps;
    const only = uid === undefined ? {} : { uid };
    return {
      name: `BCSEgressController ${key}`,
      run: async (signal) => {
        await client.delete(resourceOf('BCSEgressController'), refOf(key), { ...only, signal });
        log.info({ component: 'operator', key }, 'removed the BCSEgressController that nobody names any more');
      },
    };
  }

  /** Keeps the number of replicas between its bounds, also where no autoscaler works. */
  sizeTasks({ plan }: OperatorSnapshot): Task[] {
    return [...plan.proxies.values()].flatMap((proxy) => this.#sizeTask(proxy));
  }

  #sizeTask({ key, view, references }: ProxyPlan): Task[] {
    const { caches, client } = this.#deps;
    const workload = workloadOf(caches, key);
    if (view === undefined || references.length === 0 || workload === undefined || !isOurs(workload)) return [];
    const { minReplicas, maxReplicas } = view.run;
    const now = workload.spec?.replicas ?? 1;
    const replicas = Math.min(Math.max(now, minReplicas), maxReplicas);
    if (replicas === now) return [];
    const object: KubeObject & { spec: object } = { metadata: namesOf(key), spec: { replicas } };
    return [
      {
        name: `size of Deployment ${key}`,
        run: async (signal) => {
          await client.apply(resources.deployments, object, { fieldManager: sizeManager, signal });
        },
      },
    ];
  }
}

/** True when the operator makes the BCSEgressController by itself. */
export const isMadeByDefault = (
  { defaultProxy, proxyNamespaces }: Pick<OperatorSettings, 'defaultProxy' | 'proxyNamespaces'>,
  key: string,
): boolean => defaultProxy?.key === key && proxyNamespaces.includes(namesOf(key).namespace);

const namesOf = (key: string): { readonly namespace: string; readonly name: string } => {
  const { namespace = '', name } = refOf(key);
  return { namespace, name };
};
