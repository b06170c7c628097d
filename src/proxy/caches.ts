/**
 * Caches are all that a proxy knows about the cluster. It reads every BCSEgress and every BCSEgressController, also those of
 * other proxies: a name belongs to one object of the whole cluster, so the plan needs all of them to be the operator's plan.
 */
import { resourceOf } from '../api/kinds.ts';
import { projectClusterInfo, projectNamespace } from '../core/project/index.ts';
import { projectEgress } from '../core/proxy/project.ts';
import { projectProxy } from '../core/proxy/project-proxy.ts';
import type { EgressView, ProxyView } from '../core/proxy/view.ts';
import type { ClusterRanges, NamespaceView } from '../core/view.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { Informer, type InformerOptions, type InformerProblem } from '../runtime/kube/informer.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';
import type { Clock } from '../runtime/process/clock.ts';

/** The caches by kind. Keys are `namespace/name`, or `name` for cluster-scoped kinds. */
export interface Caches {
  readonly egresses: Informer<EgressView>;
  readonly proxies: Informer<ProxyView>;
  readonly clusterInfos: Informer<ClusterRanges>;
  readonly namespaces: Informer<NamespaceView>;
}

/** What the caches need. */
export interface CachesDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  /** Told about what is unreadable and about lost connections, with the name of the cache. */
  readonly onProblem: (cache: string, problem: InformerProblem) => void;
}

/** Makes the caches; nothing is read before they run. */
export const createCaches = ({ client, clock, random, onProblem }: CachesDeps): Caches => {
  const follow = <T>(
    cache: keyof Caches,
    resource: Resource,
    rest: Pick<InformerOptions<T, never, KubeObject>, 'project' | 'scope'>,
  ): Informer<T> =>
    new Informer({ client, clock, random, resource, onProblem: (problem) => onProblem(cache, problem), ...rest });
  return {
    egresses: follow('egresses', resourceOf('BCSEgress'), { project: projectEgress }),
    proxies: follow('proxies', resourceOf('BCSEgressController'), { project: projectProxy }),
    clusterInfos: follow('clusterInfos', resourceOf('EgressClusterInfo'), { project: projectClusterInfo }),
    namespaces: follow('namespaces', coreResource('namespaces', 'Namespace', false), {
      project: projectNamespace,
      scope: { metadataOnly: true },
    }),
  };
};

/** Every cache with its name. */
export const allOf = (caches: Caches): readonly (readonly [string, Informer<unknown>])[] => Object.entries(caches);

/** Names of the caches that have not been filled yet. No rule is served before there are none. */
export const missingOf = (caches: Caches): string[] =>
  allOf(caches)
    .filter(([, { isSynced }]) => !isSynced)
    .map(([name]) => name);
