/**
 * AgentCaches are all that the agent of a node knows about the cluster: one informer per kind, each projected before it is
 * kept. Pods are those of the node only, so memory does not grow with the cluster. Nobody but the informers writes.
 */
import { EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import { resourceOf } from '../../api/kinds.ts';
import type {
  ClusterRanges,
  Electorate,
  NamespaceView,
  PodView,
  PolicyView,
  TunnelView,
} from '../../core/cluster/view.ts';
import type { Roster } from '../../core/ownership/planned.ts';
import {
  projectClusterInfo,
  projectClusterPolicy,
  projectElectorate,
  projectNamespace,
  projectPod,
  projectPolicy,
  projectRoster,
  projectTunnel,
} from '../../core/project/index.ts';
import { type FollowingDeps, follow, missingIn } from '../../runtime/kube/following.ts';
import type { Informer } from '../../runtime/kube/informer.ts';
import { coreResource, type KubeObject } from '../../runtime/kube/resource.ts';

/** What is known of the node that the agent runs on. */
export interface OwnNode {
  readonly labels: Readonly<Record<string, string>>;
}

/** What is known of the cluster as a whole. */
export interface ClusterInfoFacts {
  readonly ranges: ClusterRanges | undefined;
  /** Who votes on the owners of EIPs; undefined while nobody does. */
  readonly electorate: Electorate | undefined;
}

/** The caches by kind. Keys are `namespace/name`, or `name` for cluster-scoped kinds. */
export interface AgentCaches {
  readonly policies: Informer<PolicyView>;
  readonly clusterPolicies: Informer<PolicyView>;
  readonly tunnels: Informer<TunnelView>;
  readonly clusterInfos: Informer<ClusterInfoFacts>;
  readonly gateways: Informer<Roster>;
  readonly namespaces: Informer<NamespaceView>;
  readonly pods: Informer<PodView>;
  readonly ownNode: Informer<OwnNode>;
}

/** What the caches need. */
export interface AgentCachesDeps extends FollowingDeps {
  readonly node: string;
}

/** Makes the caches of a node; nothing is read before they run. */
export const createAgentCaches = (deps: AgentCachesDeps): AgentCaches => ({
  policies: follow(deps, 'policies', resourceOf('EgressPolicy'), { project: projectPolicy }),
  clusterPolicies: follow(deps, 'clusterPolicies', resourceOf('EgressClusterPolicy'), {
    project: projectClusterPolicy,
  }),
  // An agent judges no heartbeat of another node: the controller does, and says so in the phase.
  tunnels: follow(deps, 'tunnels', resourceOf('EgressTunnel'), { project: (object) => projectTunnel(object, 'never') }),
  clusterInfos: follow(deps, 'clusterInfos', resourceOf('EgressClusterInfo'), {
    project: (object): ClusterInfoFacts => ({ ranges: rangesOf(object), electorate: projectElectorate(object) }),
  }),
  gateways: follow(deps, 'gateways', resourceOf('EgressGateway'), { project: projectRoster }),
  namespaces: follow(deps, 'namespaces', coreResource('namespaces', 'Namespace', false), {
    project: projectNamespace,
    scope: { metadataOnly: true },
  }),
  pods: follow(deps, 'pods', coreResource('pods', 'Pod', true), {
    project: projectPod,
    scope: { fieldSelector: `spec.nodeName=${deps.node}` },
  }),
  ownNode: follow(deps, 'ownNode', coreResource('nodes', 'Node', false), {
    project: ({ metadata }): OwnNode => ({ labels: metadata.labels ?? {} }),
    scope: { fieldSelector: `metadata.name=${deps.node}`, metadataOnly: true },
  }),
});

/** Every cache with its name. */
export const allOf = (caches: AgentCaches): readonly (readonly [string, Informer<unknown>])[] => Object.entries(caches);

/** Names of the caches that have not been filled yet. Nothing may reach the kernel before there are none. */
export const missingOf = (caches: AgentCaches): string[] => missingIn(allOf(caches));

// Ranges that nobody has detected yet are not known, which is another thing than a cluster without ranges.
const rangesOf = (object: KubeObject & { readonly status?: unknown }): ClusterRanges | undefined => {
  const status = EgressClusterInfoStatus.safeParse(object.status);
  return status.data?.egressIgnoreCIDR === undefined ? undefined : projectClusterInfo(object);
};
