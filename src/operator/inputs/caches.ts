/**
 * OperatorCaches are all that the operator knows about the cluster. Every replica runs them, so that admission knows as much as the
 * leader. Of namespaces that proxies may run in everything is followed that a proxy is made of; of the others only what we
 * made there.
 */
import { BCSEgressStatus } from '../../api/bcs-egress.ts';
import { BCSEgressControllerStatus } from '../../api/bcs-egress-controller.ts';
import { resourceOf } from '../../api/kinds.ts';
import { labels, operatorName } from '../../api/names.ts';
import type { ClusterRanges } from '../../core/cluster/view.ts';
import { type ApiObject, type Output, projectClusterInfo, readStatus, type Schema } from '../../core/project/index.ts';
import { projectEgress } from '../../core/proxy/project.ts';
import { projectProxy } from '../../core/proxy/project-proxy.ts';
import type { EgressView, ProxyView } from '../../core/proxy/view.ts';
import type { Scope } from '../../runtime/kube/client.ts';
import { type Followed, type FollowingDeps, follow, missingIn, syncedIn } from '../../runtime/kube/following.ts';
import type { Informer } from '../../runtime/kube/informer.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { type MadeKind, resources, sliceManager } from '../objects/kind.ts';
import { type ProxyPod, projectPod } from './pods.ts';

/** An object of ours: what decisions see of it, the status it shows, and its metadata. */
export interface CachedProxyObject<View, Status> {
  readonly metadata: KubeObject['metadata'];
  readonly view: View;
  /** Undefined when there is none, or when somebody has made it unreadable. */
  readonly status: Status | undefined;
}

export type CachedEgress = CachedProxyObject<EgressView, BCSEgressStatus>;
export type CachedProxy = CachedProxyObject<ProxyView, BCSEgressControllerStatus>;

/** One cache as its readers see it. */
export type OperatorCache<T> = Pick<Informer<T>, 'store' | 'synced' | 'isSynced' | 'subscribe' | 'stats'>;

export interface OperatorCaches {
  readonly egresses: OperatorCache<CachedEgress>;
  readonly proxies: OperatorCache<CachedProxy>;
  readonly namespaces: OperatorCache<KubeObject>;
  readonly clusterInfos: OperatorCache<ClusterRanges>;
  readonly pods: readonly OperatorCache<ProxyPod>[];
  /** The ConfigMap of the cluster's DNS; undefined when names are not published. */
  readonly dns: OperatorCache<ConfigMap> | undefined;
  /** What is there of the kinds that we make; of Deployments also those of others, in namespaces of proxies. */
  readonly made: Readonly<Record<MadeKind, readonly OperatorCache<KubeObject>[]>>;
  readonly all: readonly (readonly [string, OperatorCache<unknown>])[];
  readonly synced: Promise<void>;
  /** Names of the caches that have not been filled yet. */
  missing(): string[];
  /** Calls the listener after every change of anything. */
  subscribe(listener: () => void): () => void;
  /** Fills the caches and keeps them in step until the signal is aborted. Call it once. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface OperatorCachesDeps extends FollowingDeps {
  /** Where proxies may run. */
  readonly proxyNamespaces: readonly string[];
  /** Where the cluster's DNS has its Corefile; undefined when names are not published. */
  readonly dnsConfigMap: { readonly namespace: string; readonly name: string } | undefined;
}

const ours: Scope = { labelSelector: `${labels.managedBy}=${operatorName}` };

/** Makes the caches; nothing is read before `run`. */
export const createOperatorCaches = (deps: OperatorCachesDeps): OperatorCaches => {
  const { proxyNamespaces, dnsConfigMap } = deps;
  const runs: ((signal: AbortSignal) => Promise<void>)[] = [];
  const all: [string, OperatorCache<unknown>][] = [];
  const followed = <T, O extends KubeObject = KubeObject>(
    name: string,
    resource: Resource,
    how: Followed<T, never, O>,
  ): OperatorCache<T> => {
    const informer = follow(deps, name, resource, how);
    runs.push((signal) => informer.run(signal));
    all.push([name, informer]);
    return informer;
  };
  const inNamespaces = <T>(name: string, resource: Resource, project: (object: KubeObject) => T, scope: Scope = {}) =>
    proxyNamespaces.map((namespace) =>
      followed(`${name}/${namespace}`, resource, { project, scope: { ...scope, namespace } }),
    );
  const caches = {
    egresses: followed('egresses', resourceOf('BCSEgress'), { project: keeping(projectEgress, BCSEgressStatus) }),
    proxies: followed('proxies', resourceOf('BCSEgressController'), {
      project: keeping(projectProxy, BCSEgressControllerStatus),
    }),
    namespaces: followed('namespaces', resources.namespaces, { project: slim, scope: { metadataOnly: true } }),
    clusterInfos: followed('clusterInfos', resourceOf('EgressClusterInfo'), {
      project: (object: KubeObject & ApiObject) => projectClusterInfo(object),
    }),
    pods: inNamespaces('pods', resources.pods, projectPod),
    dns:
      dnsConfigMap === undefined
        ? undefined
        : followed<ConfigMap>('dns', resources.configMaps, {
            project: slim,
            scope: { namespace: dnsConfigMap.namespace, fieldSelector: `metadata.name=${dnsConfigMap.name}` },
          }),
    made: {
      deployments: inNamespaces('deployments', resources.deployments, slim),
      autoscalers: inNamespaces('autoscalers', resources.autoscalers, slim, ours),
      disruptionBudgets: inNamespaces('disruptionBudgets', resources.disruptionBudgets, slim, ours),
      networkPolicies: inNamespaces('networkPolicies', resources.networkPolicies, slim, ours),
      services: [followed('services', resources.services, { project: slim, scope: ours })],
      // The slices that Kubernetes makes carry the labels of our Services too, but not this one.
      endpointSlices: [
        followed('endpointSlices', resources.endpointSlices, {
          project: slim,
          scope: { labelSelector: `${sliceManager}=${operatorName}` },
        }),
      ],
    },
  };
  const synced = syncedIn(all);
  return {
    ...caches,
    all,
    synced,
    missing: () => missingIn(all),
    subscribe: (listener) => {
      const ends = all.map(([, cache]) => cache.subscribe(() => listener()));
      return () => {
        for (const end of ends) end();
      };
    },
    run: async (signal) => {
      await Promise.all(runs.map((run) => run(signal)));
    },
  };
};

/** The object of a kind by its key; undefined when there is none. */
export const findMade = (
  { made }: Pick<OperatorCaches, 'made'>,
  kind: MadeKind,
  key: string,
): KubeObject | undefined => {
  for (const { store } of made[kind]) {
    const found = store.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
};

const keeping =
  <View, S extends Schema>(project: (object: ApiObject) => View, schema: S) =>
  (object: KubeObject & ApiObject): CachedProxyObject<View, Output<S>> => ({
    metadata: slim(object).metadata,
    view: project(object),
    status: readStatus(schema, object),
  });

// Half of an object that is applied is a record of who owns which field.
const slim = <T extends KubeObject>(object: T): T => {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
};
