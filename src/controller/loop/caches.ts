/**
 * ControllerCaches are all that the controller knows about the cluster: one informer per kind, each projected before it is kept.
 * Every replica runs them. A part reads `store`, or subscribes to what concerns it; nobody but the informers writes.
 */
import { EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import type { EgressEndpoint } from '../../api/egress-endpoint-slice.ts';
import { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { resourceOf } from '../../api/kinds.ts';
import { labels, taints } from '../../api/names.ts';
import { PolicyStatus } from '../../api/policy.ts';
import type { GatewayView, NamespaceView, NodeView, PodView, PolicyView, TunnelView } from '../../core/cluster/view.ts';
import {
  type ApiObject,
  type NodeObject,
  type Output,
  projectClusterPolicy,
  projectGateway,
  projectNamespace,
  projectNode,
  projectPod,
  projectPolicy,
  projectTunnel,
  readStatus,
  type Schema,
} from '../../core/project/index.ts';
import { type Followed, type FollowingDeps, follow, missingIn, syncedIn } from '../../runtime/kube/following.ts';
import type { Informer } from '../../runtime/kube/informer.ts';
import { coreResource, type KubeObject, type OwnerReference, type Resource } from '../../runtime/kube/resource.ts';

/** What is kept of every object that we write to, besides its view. */
export interface Identity {
  readonly name: string;
  /** Undefined for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly uid: string;
  /** Tells whether the cache has seen a write of ours. */
  readonly resourceVersion: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
}

/** An object of ours: who it is, what decisions see of it, and the status it shows now. */
export interface CachedObject<View, Status> {
  readonly identity: Identity;
  readonly view: View;
  /** Undefined when there is none, or when somebody has made it unreadable. */
  readonly status: Status | undefined;
}

export type CachedGateway = CachedObject<GatewayView, EgressGatewayStatus>;
export type CachedPolicy = CachedObject<PolicyView, PolicyStatus>;
/** Its view always says that the agent was never heard of: only heartbeats.ts, which has a clock, knows better. */
export type CachedTunnel = CachedObject<TunnelView, EgressTunnelStatus>;
/** Its view is the object as served; who reads the spec parses it. */
export type CachedClusterInfo = CachedObject<ApiObject, EgressClusterInfoStatus>;

/** An endpoint slice of either kind. */
export interface CachedSlice {
  readonly identity: Identity;
  /** The value of the label that names its policy; undefined when somebody took it off. */
  readonly policy: string | undefined;
  /** What its name was made from, as other programs read it; undefined when it was named otherwise. */
  readonly generateName: string | undefined;
  readonly owners: readonly OwnerReference[];
  readonly endpoints: readonly EgressEndpoint[];
}

/** One cache as the parts see it: they read `store` and subscribe, and never write. */
export type ControllerCache<T, I extends string = never> = Pick<
  Informer<T, I>,
  'store' | 'synced' | 'isSynced' | 'unreadable' | 'subscribe' | 'stats'
>;

/** A namespace with its uid; that of kube-system serves as the uid of the cluster. */
export interface CachedNamespace extends NamespaceView {
  readonly uid: string;
}

/** A node as a Kubernetes object: when it was made, and whether it has our start-up taint. */
export interface CachedNode extends NodeView {
  readonly createdAtMs: number;
  /** The places of the taint in the list of taints; it may be there once for each effect. */
  readonly startupTaints: readonly number[];
}

/** The caches by kind. Keys are `namespace/name`, or `name` for cluster-scoped kinds. */
export interface CacheByKind {
  readonly nodes: ControllerCache<CachedNode>;
  readonly namespaces: ControllerCache<CachedNamespace>;
  readonly pods: ControllerCache<PodView, 'namespace'>;
  readonly gateways: ControllerCache<CachedGateway>;
  readonly policies: ControllerCache<CachedPolicy>;
  readonly clusterPolicies: ControllerCache<CachedPolicy>;
  readonly tunnels: ControllerCache<CachedTunnel>;
  readonly clusterInfos: ControllerCache<CachedClusterInfo>;
  readonly slices: ControllerCache<CachedSlice, 'policy'>;
  readonly clusterSlices: ControllerCache<CachedSlice, 'policy'>;
}

/** All caches. */
export interface ControllerCaches extends CacheByKind {
  /** Every cache with its name, for metrics. */
  readonly all: readonly (readonly [string, ControllerCache<unknown>])[];
  /** Resolves when every cache has been filled once. */
  readonly synced: Promise<void>;
  /** Names of the caches that have not been filled yet; empty when the parts may work. */
  missing(): string[];
  /** When a cache last lost its connection, on the monotonic clock; undefined when it never did. */
  disconnectedAtMs(cache: keyof CacheByKind): number | undefined;
  /** Fills the caches and keeps them in step until the signal is aborted. Call it once. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes the caches; nothing is read before `run`. */
export const createControllerCaches = (deps: FollowingDeps): ControllerCaches => {
  const { clock, onProblem } = deps;
  const disconnectedAtMs = new Map<keyof CacheByKind, number>();
  const runs: ((signal: AbortSignal) => Promise<void>)[] = [];
  const followed: Follow = (cache, resource, how) => {
    const tell: FollowingDeps['onProblem'] = (name, problem) => {
      if (problem.kind === 'disconnected') disconnectedAtMs.set(cache, clock.monotonicMs());
      onProblem(name, problem);
    };
    const informer = follow({ ...deps, onProblem: tell }, cache, resource, how);
    runs.push((signal) => informer.run(signal));
    return informer;
  };
  const caches = cachesBy(followed);
  const all: ControllerCaches['all'] = Object.entries(caches);
  const synced = syncedIn(all);
  return {
    ...caches,
    all,
    synced,
    missing: () => missingIn(all),
    disconnectedAtMs: (cache) => disconnectedAtMs.get(cache),
    run: async (signal) => {
      await Promise.all(runs.map((run) => run(signal)));
    },
  };
};

/** Waits until the caches are filled; false when the signal came first. */
export const untilSynced = async (caches: Pick<ControllerCaches, 'synced'>, signal: AbortSignal): Promise<boolean> => {
  const stopped = Promise.withResolvers<void>();
  const stop = (): void => stopped.resolve();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  await Promise.race([caches.synced, stopped.promise]);
  signal.removeEventListener('abort', stop);
  return !signal.aborted;
};

type Follow = <T, I extends string = never, O extends KubeObject = KubeObject>(
  cache: keyof CacheByKind,
  resource: Resource,
  how: Followed<T, I, O>,
) => ControllerCache<T, I>;

const cachesBy = (follow: Follow): CacheByKind => ({
  nodes: follow('nodes', coreResource('nodes', 'Node', false), { project: cachedNode }),
  namespaces: follow('namespaces', coreResource('namespaces', 'Namespace', false), {
    project: (object): CachedNamespace => ({ ...projectNamespace(object), uid: object.metadata.uid ?? '' }),
    scope: { metadataOnly: true },
  }),
  pods: follow('pods', coreResource('pods', 'Pod', true), {
    project: projectPod,
    indexes: { namespace: ({ namespace }) => [namespace] },
  }),
  gateways: follow('gateways', resourceOf('EgressGateway'), { project: keeping(projectGateway, EgressGatewayStatus) }),
  policies: follow('policies', resourceOf('EgressPolicy'), { project: keeping(projectPolicy, PolicyStatus) }),
  clusterPolicies: follow('clusterPolicies', resourceOf('EgressClusterPolicy'), {
    project: keeping(projectClusterPolicy, PolicyStatus),
  }),
  tunnels: follow('tunnels', resourceOf('EgressTunnel'), {
    project: keeping((object) => projectTunnel(object, 'never'), EgressTunnelStatus),
  }),
  clusterInfos: follow('clusterInfos', resourceOf('EgressClusterInfo'), {
    project: keeping(
      ({ metadata: { name }, spec, status }): ApiObject => ({ metadata: { name }, spec, status }),
      EgressClusterInfoStatus,
    ),
  }),
  slices: follow('slices', resourceOf('EgressEndpointSlice'), sliceCache),
  clusterSlices: follow('clusterSlices', resourceOf('EgressClusterEndpointSlice'), sliceCache),
});

/** What is kept of a node. */
export const cachedNode = (object: NodeObject): CachedNode => ({
  ...projectNode(object),
  createdAtMs: Date.parse(object.metadata.creationTimestamp ?? '') || 0,
  startupTaints: (object.spec?.taints ?? []).flatMap(({ key }, place) => (key === taints.startup ? [place] : [])),
});

/** Makes the projection of one of our kinds from that of its view. */
const keeping =
  <View, S extends Schema>(project: (object: ApiObject, before?: View) => View, schema: S) =>
  (object: KubeObject & ApiObject, before?: CachedObject<View, Output<S>>): CachedObject<View, Output<S>> => ({
    identity: identityOf(object),
    view: project(object, before?.view),
    status: readStatus(schema, object),
  });

/** What is kept of any object besides its view. */
export const identityOf = ({ metadata }: KubeObject): Identity => ({
  name: metadata.name,
  namespace: metadata.namespace,
  uid: metadata.uid ?? '',
  resourceVersion: metadata.resourceVersion ?? '',
  generation: metadata.generation ?? 0,
  isDeleting: metadata.deletionTimestamp !== undefined,
  finalizers: metadata.finalizers ?? [],
});

const sliceCache = {
  project: (object: KubeObject & { readonly endpoints?: readonly EgressEndpoint[] }): CachedSlice => ({
    identity: identityOf(object),
    policy: object.metadata.labels?.[labels.policyName],
    generateName: object.metadata.generateName,
    owners: object.metadata.ownerReferences ?? [],
    endpoints: object.endpoints ?? [],
  }),
  // The policy as `namespace/name`, or `name` for a cluster policy.
  indexes: {
    policy: ({ policy, identity: { namespace } }: CachedSlice): readonly string[] => {
      if (policy === undefined) return [];
      return [namespace === undefined ? policy : `${namespace}/${policy}`];
    },
  },
};
