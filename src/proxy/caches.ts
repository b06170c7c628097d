/**
 * ProxyCaches are all that a proxy knows about the cluster. It reads every BCSEgress and every BCSEgressController, also those of
 * other proxies: a name belongs to one object of the whole cluster, so the plan needs all of them to be the operator's plan.
 */
import { resourceOf } from '../api/kinds.ts';
import type { ClusterRanges, NamespaceView } from '../core/cluster/view.ts';
import { projectClusterInfo, projectNamespace } from '../core/project/index.ts';
import { projectEgress } from '../core/proxy/project.ts';
import { projectProxy } from '../core/proxy/project-proxy.ts';
import type { EgressView, ProxyView } from '../core/proxy/view.ts';
import { type FollowingDeps, follow, missingIn } from '../runtime/kube/following.ts';
import type { Informer } from '../runtime/kube/informer.ts';
import { coreResource } from '../runtime/kube/resource.ts';
import { type SourcePod, sourceOf } from './engine/sources.ts';

/** The caches by kind. Keys are `namespace/name`, or `name` for cluster-scoped kinds. */
export interface ProxyCaches {
  readonly egresses: Informer<EgressView>;
  readonly proxies: Informer<ProxyView>;
  readonly clusterInfos: Informer<ClusterRanges>;
  readonly namespaces: Informer<NamespaceView>;
  /** Pods as clients of the proxy. */
  readonly pods: Informer<SourcePod>;
}

/** Makes the caches; nothing is read before they run. */
export const createProxyCaches = (deps: FollowingDeps): ProxyCaches => ({
  egresses: follow(deps, 'egresses', resourceOf('BCSEgress'), { project: projectEgress }),
  proxies: follow(deps, 'proxies', resourceOf('BCSEgressController'), { project: projectProxy }),
  clusterInfos: follow(deps, 'clusterInfos', resourceOf('EgressClusterInfo'), { project: projectClusterInfo }),
  namespaces: follow(deps, 'namespaces', coreResource('namespaces', 'Namespace', false), {
    project: projectNamespace,
    scope: { metadataOnly: true },
  }),
  pods: follow(deps, 'pods', coreResource('pods', 'Pod', true), { project: sourceOf }),
});

/** Every cache with its name. */
export const allOf = (caches: ProxyCaches): readonly (readonly [string, Informer<unknown>])[] => Object.entries(caches);

/** Names of the caches that have not been filled yet. No rule is served before there are none. */
export const missingOf = (caches: ProxyCaches): string[] => missingIn(allOf(caches));
