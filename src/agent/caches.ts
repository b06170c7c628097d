/**
 * Caches are all that the agent of a node knows about the cluster: one informer per kind, each projected before it is
 * kept. Pods are those of the node only, so memory does not grow with the cluster. Nobody but the informers writes.
 */
import { EgressClusterInfoStatus } from '../api/egress-cluster-info.ts';
import { resourceOf } from '../api/kinds.ts';
import {
  projectClusterInfo,
  projectClusterPolicy,
  projectNamespace,
  projectPod,
  projectPolicy,
  projectTunnel,
} from '../core/project/index.ts';
import type { ClusterRanges, NamespaceView, PodView, PolicyView, TunnelView } from '../core/view.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { Informer, type InformerOptions, type InformerProblem } from '../runtime/kube/informer.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';
import type { Clock } from '../runtime/process/clock.ts';

/** What is known of the node that the agent runs on. */
export interface OwnNode {
  readonly labels: Readonly<Record<string, string>>;
}

/** The caches by kind. Keys are `namespace/name`, or `name` for cluster-scoped kinds. */
export interface Caches {
  readonly policies: Informer<PolicyView>;
  readonly clusterPolicies: Informer<PolicyView>;
  readonly tunnels: Informer<TunnelView>;
  readonly clusterInfos: Informer<ClusterRanges>;
  readonly namespaces: Informer<NamespaceView>;
  readonly pods: Informer<PodView>;
  readonly ownNode: Informer<OwnNode>;
}

/** What the caches need. */
export interface CachesDeps {
  readonly node: string;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  /** Told about what is unreadable and about lost connections, with the name of the cache. */
  readonly onProblem: (cache: string, problem: InformerProblem) => void;
}

/** Makes the caches of a node; nothing is read before they run. */
export const createCaches = ({ node, client, clock, random, onProblem }: CachesDeps): Caches => {
  const follow = <T>(
    cache: keyof Caches,
    resource: Resource,
    rest: Pick<InformerOptions<T, never, KubeObject>, 'project' | 'scope'>,
  ): Informer<T> =>
    new Informer({
      client,
      clock,
      random,
      resource,
      onProblem: (problem) => onProblem(cache, problem),
      ...rest,
    });
  return {
    policies: follow('policies', resourceOf('EgressPolicy'), { project: projectPolicy }),
    clusterPolicies: follow('clusterPolicies', resourceOf('EgressClusterPolicy'), { project: projectClusterPolicy }),
    // An agent judges no heartbeat of another node: the controller does, and says so in the phase.
    tunnels: follow('tunnels', resourceOf('EgressTunnel'), { project: (object) => projectTunnel(object, 'never') }),
    clusterInfos: follow('clusterInfos', resourceOf('EgressClusterInfo'), { project: rangesOf }),
    namespaces: follow('namespaces', coreResource('namespaces', 'Namespace', false), {
      project: projectNamespace,
      scope: { metadataOnly: true },
    }),
    pods: follow('pods', coreResource('pods', 'Pod', true), {
      project: projectPod,
      scope: { fieldSelector: `spec.nodeName=${node}` },
    }),
    ownNode: follow('ownNode', coreResource('nodes', 'Node', false), {
      project: ({ metadata }): OwnNode => ({ labels: metadata.labels ?? {} }),
      scope: { fieldSelector: `metadata.name=${node}`, metadataOnly: true },
    }),
  };
};

/** Every cache with its name. */
export const allOf = (caches: Caches): readonly (readonly [string, Informer<unknown>])[] => Object.entries(caches);

/** Names of the caches that have not been filled yet. Nothing may reach the kernel before there are none. */
export const missingOf = (caches: Caches): string[] =>
  allOf(caches)
    .filter(([, { isSynced }]) => !isSynced)
    .map(([name]) => name);

// Ranges that nobody has detected yet are not known, which is another thing than a cluster without ranges.
const rangesOf = (object: KubeObject & { readonly status?: unknown }): ClusterRanges | undefined => {
  const status = EgressClusterInfoStatus.safeParse(object.status);
  return status.data?.egressIgnoreCIDR === undefined ? undefined : projectClusterInfo(object);
};
