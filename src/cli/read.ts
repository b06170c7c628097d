/** What the commands read from the API server: one list per kind, each object as it is served. */
import { clusterInfoName } from '../api/egress-cluster-info.ts';
import { type KindName, resourceOf } from '../api/kinds.ts';
import type { NodeObject } from '../core/project/index.ts';
import { isForbidden } from '../runtime/kube/api-error.ts';
import type { KubeClient, ListOptions } from '../runtime/kube/client.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';

/** An object of the API server. Nothing is assumed about `spec` and `status`. */
export type ServedObject = KubeObject & { readonly spec?: unknown; readonly status?: unknown };

/** The objects of Sallyport itself. */
export interface OwnObjects {
  readonly gateways: readonly ServedObject[];
  readonly policies: readonly ServedObject[];
  readonly clusterPolicies: readonly ServedObject[];
  readonly tunnels: readonly ServedObject[];
  /** Undefined: the controller has not made it yet. */
  readonly clusterInfo: ServedObject | undefined;
}

/** A pod as it is served, as far as commands look at it. */
export type ServedPod = KubeObject & {
  readonly spec?: {
    readonly nodeName?: string;
    readonly hostNetwork?: boolean;
    readonly containers?: readonly {
      readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip?: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** A workload of the chart: a Deployment or a DaemonSet. */
export type ServedProgram = KubeObject & {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly readyReplicas?: number;
    readonly numberReady?: number;
    readonly desiredNumberScheduled?: number;
  };
};

export type ServedConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> };

const apps = (plural: string, kind: string): Resource => ({
  group: 'apps',
  version: 'v1',
  plural,
  kind,
  namespaced: true,
});

/** Kinds of Kubernetes that the commands read. */
export const resources = {
  pods: coreResource('pods', 'Pod', true),
  nodes: coreResource('nodes', 'Node', false),
  namespaces: coreResource('namespaces', 'Namespace', false),
  configMaps: coreResource('configmaps', 'ConfigMap', true),
  deployments: apps('deployments', 'Deployment'),
  daemonSets: apps('daemonsets', 'DaemonSet'),
} as const;

/** Selects everything that the chart makes, and its pods. */
export const partOfSallyport = 'app.kubernetes.io/part-of=sallyport';

// A person waits for the answer; a server that is slower than this is a finding of its own.
const limitMs = 15_000;
const retries = 1;

/** Everything of one collection. Fails with an ApiError. */
export const readAll = async <T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  options: ListOptions = {},
): Promise<T[]> => {
  const items: T[] = [];
  const pages = client.list<T>(resource, { timeoutMs: limitMs, retries, ...options });
  for await (const page of pages) items.push(...page.items);
  return items;
};

/** The objects of Sallyport; fails with an ApiError, which is `isNotFound` where its kinds are not installed. */
export const readOwnObjects = async (client: KubeClient, signal: AbortSignal): Promise<OwnObjects> => {
  const read = (kind: KindName) => readAll<ServedObject>(client, resourceOf(kind), { signal });
  const [gateways, policies, clusterPolicies, tunnels, clusterInfos] = await Promise.all([
    read('EgressGateway'),
    read('EgressPolicy'),
    read('EgressClusterPolicy'),
    read('EgressTunnel'),
    read('EgressClusterInfo'),
  ]);
  const clusterInfo = clusterInfos.find(({ metadata }) => metadata.name === clusterInfoName);
  return { gateways, policies, clusterPolicies, tunnels, clusterInfo };
};

/** The controller and the agents. */
export const readPrograms = async (client: KubeClient, signal: AbortSignal): Promise<ServedProgram[]> => {
  const scope = { labelSelector: partOfSallyport, signal };
  const lists = await Promise.all([
    readAll<ServedProgram>(client, resources.deployments, scope),
    readAll<ServedProgram>(client, resources.daemonSets, scope),
  ]);
  return lists.flat();
};

/** The namespace that the chart is installed in; undefined when nothing of it is found. */
export const homeOf = (programs: readonly ServedProgram[]): string | undefined => programs[0]?.metadata.namespace;

/** What decisions are made from besides our own objects. */
export interface ClusterContext {
  readonly nodes: readonly (KubeObject & NodeObject)[];
  readonly namespaces: readonly KubeObject[];
  /** The configuration of the chart; undefined where there is none, or where the reader may not see it. */
  readonly config: ServedConfigMap | undefined;
}

/** The nodes, the namespaces and the configuration, which is in the namespace of the chart. */
export const readClusterContext = async (
  client: KubeClient,
  home: string | undefined,
  signal: AbortSignal,
): Promise<ClusterContext> => {
  const [nodes, namespaces, config] = await Promise.all([
    readAll<KubeObject & NodeObject>(client, resources.nodes, { signal }),
    readAll(client, resources.namespaces, { signal, metadataOnly: true }),
    home === undefined ? undefined : readConfig(client, home, signal),
  ]);
  return { nodes, namespaces, config };
};

const readConfig = async (
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<ServedConfigMap | undefined> => {
  try {
    const ref = { namespace, name: 'sallyport' };
    return await client.get<ServedConfigMap>(resources.configMaps, ref, { signal, timeoutMs: limitMs, retries });
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
};
