/** The world of one pass: the plan of this moment, and who serves it. Made from the caches, it decides nothing itself. */
import { clusterInfoName } from '../api/egress-cluster-info.ts';
import type { Finding } from '../core/cluster/finding.ts';
import type { ClusterRanges } from '../core/cluster/view.ts';
import { emptySet } from '../core/ip/index.ts';
import { type ProxiesPlan, type ProxyPlan, planProxies } from '../core/proxy/plan.ts';
import type { ProxiesView } from '../core/proxy/view.ts';
import type { KubeObject } from '../runtime/kube/resource.ts';
import { findMade, type OperatorCaches } from './inputs/caches.ts';
import { deploymentTrouble } from './inputs/pod-trouble.ts';
import { type ProxyPod, podsWith } from './inputs/pods.ts';
import { isOurs } from './objects/kind.ts';
import { podMarks } from './objects/proxy-objects.ts';

export interface OperatorSnapshot {
  readonly plan: ProxiesPlan;
  /** Ready pods by the key of their proxy. */
  readonly readyPods: ReadonlyMap<string, readonly ProxyPod[]>;
  /** What keeps pods of a proxy from being ready, by its key. */
  readonly troubles: ReadonlyMap<string, Finding>;
}

interface Workload extends KubeObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  };
}

/** Looks at the caches. `reservedNames` are names of the cluster itself. */
export const lookAt = (caches: OperatorCaches, reservedNames: readonly string[]): OperatorSnapshot => {
  const plan = planProxies(viewOf(caches, reservedNames));
  const pods = caches.pods.flatMap(({ store }) => [...store.values()]);
  const podsByProxy = [...plan.proxies.values()].map((proxy) => [proxy.key, podsOf(caches, proxy, pods)] as const);
  const readyPods = new Map(podsByProxy.map(([key, own]) => [key, own.filter(({ isReady }) => isReady)]));
  const troubles = podsByProxy.flatMap(([key, own]): [string, Finding][] => {
    const trouble = own.find((pod) => pod.trouble !== undefined)?.trouble ?? troubleOfWorkload(caches, key);
    return trouble === undefined ? [] : [[key, trouble]];
  });
  return { plan, readyPods, troubles: new Map(troubles) };
};

const troubleOfWorkload = (caches: OperatorCaches, key: string): Finding | undefined => {
  const workload = workloadOf(caches, key);
  return workload === undefined ? undefined : deploymentTrouble(workload);
};

/** What plans and verdicts are made from. */
export const viewOf = (
  { egresses, proxies, namespaces, clusterInfos }: OperatorCaches,
  reservedNames: readonly string[],
): ProxiesView => ({
  egresses: [...egresses.store.values()].map(({ view }) => view),
  proxies: [...proxies.store.values()].map(({ view }) => view),
  namespaces: new Map([...namespaces.store.values()].map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
  ranges: clusterInfos.store.get(clusterInfoName) ?? unknownRanges,
  reservedNames,
});

/** The Deployment of a proxy, ours or not; undefined when there is none. */
export const workloadOf = (caches: OperatorCaches, key: string): Workload | undefined =>
  findMade(caches, 'deployments', key) as Workload | undefined;

/** The labels of the pods of a proxy: those of a Deployment that somebody else made, or ours. */
export const selectorOf = (caches: OperatorCaches, key: string, name: string): Readonly<Record<string, string>> => {
  const workload = workloadOf(caches, key);
  return workload === undefined || isOurs(workload)
    ? podMarks(name)
    : (workload.spec?.selector?.matchLabels ?? podMarks(name));
};

const podsOf = (caches: OperatorCaches, { key, view }: ProxyPlan, pods: readonly ProxyPod[]): ProxyPod[] =>
  view === undefined ? [] : podsWith(pods, view.namespace, selectorOf(caches, key, view.name));

/** Without EgressClusterInfo only what is private everywhere counts as inside. */
const unknownRanges: ClusterRanges = {
  isKnown: false,
  services: emptySet,
  nodes: emptySet,
  apiServers: emptySet,
  pods: emptySet,
  custom: emptySet,
};
