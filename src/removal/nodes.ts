/** Which nodes are clean, from the objects of the cluster. */
import type { KubeObject } from '../runtime/kube/resource.ts';

/** As much of a DaemonSet as is needed. */
export interface DaemonSet extends KubeObject {
  readonly status?: { readonly observedGeneration?: number; readonly desiredNumberScheduled?: number };
}

/** As much of a pod as is needed. */
export interface Pod extends KubeObject {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly conditions?: readonly ServedCondition[];
    readonly initContainerStatuses?: readonly CleanerStatus[];
    readonly containerStatuses?: readonly CleanerStatus[];
  };
}
interface CleanerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}
interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: { readonly exitCode: number };
}

/** As much of a node as is needed. */
export interface Node extends KubeObject {
  readonly status?: { readonly conditions?: readonly ServedCondition[] };
}
interface ServedCondition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
}

/** What the nodes look like. */
export interface Nodes {
  /** Nothing is left to wait for. */
  readonly isDone: boolean;
  readonly clean: readonly string[];
  /** Not ready, so nobody can clean them from here. */
  readonly unreachable: readonly string[];
  /** One sentence for each pod that has not cleaned its node, and one if pods are still missing. */
  readonly missing: readonly string[];
}

/** Judges by the pods that clean: a pod of the DaemonSet that is ready has cleaned its node. */
export const judgeNodes = (daemonSet: DaemonSet | undefined, pods: readonly Pod[], nodes: readonly Node[]): Nodes => {
  if (daemonSet === undefined) return { isDone: true, clean: [], unreachable: [], missing: [] };
  const { metadata, status } = daemonSet;
  const wanted = status?.desiredNumberScheduled;
  if (wanted === undefined || (status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    return { isDone: false, clean: [], unreachable: [], missing: [`${metadata.name} has not been looked at yet`] };
  }
  const unready = new Set(nodes.filter((node) => !isReady(node)).map((node) => node.metadata.name));
  // Pods of the agents before it have the same labels; they belong to a DaemonSet that is gone.
  const own = pods.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
  const clean = own.filter(isReady).map(nodeOf);
  const rest = own.filter((pod) => !isReady(pod));
  const unreachable = rest.map(nodeOf).filter((node) => unready.has(node));
  const dirty = rest.filter((pod) => !unready.has(nodeOf(pod)));
  const missing = [
    ...dirty.map((pod) => `${nodeOf(pod) || 'a node'} is not clean yet: ${whyNot(pod)}`).toSorted(),
    ...(own.length < wanted ? [`nodes without a pod that cleans them: ${wanted - own.length}`] : []),
  ];
  return { isDone: missing.length === 0, clean: clean.toSorted(), unreachable: unreachable.toSorted(), missing };
};

const isReady = ({ status }: Pod | Node): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true;

const nodeOf = ({ spec }: Pod): string => spec?.nodeName ?? '';

/** The first thing that keeps a pod from being ready, in the words of the kubelet or the scheduler. */
const whyNot = ({ metadata, status }: Pod): string => {
  for (const { name, ready, state, lastState } of [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ]) {
    if (ready === true) continue;
    const ended = state?.terminated ?? lastState?.terminated;
    if (ended !== undefined && ended.exitCode !== 0) {
      return `it ended with code ${ended.exitCode}; kubectl logs ${metadata.name} --container ${name} says why`;
    }
    const { reason = 'it is at work', message } = state?.waiting ?? {};
    return message === undefined ? reason : `${reason}, ${message}`;
  }
  const unscheduled = status?.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  return unscheduled?.message ?? 'its pod has not started';
};
