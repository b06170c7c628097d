/** Pods of proxies, as far as the operator looks at them. */
import { type Ip, parseIp } from '../core/ip/index.ts';
import type { KubeObject } from '../runtime/kube/resource.ts';
import type { ServingPod } from './objects/rule-objects.ts';

export interface KnownPod extends ServingPod {
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Ready, and not on its way out. */
  readonly isReady: boolean;
}

interface PodObject extends KubeObject {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly podIPs?: readonly { readonly ip?: string }[];
  };
}

/** What is kept of a pod. */
export const projectPod = (object: PodObject): KnownPod => {
  const { metadata, spec, status } = object;
  const namespace = metadata.namespace ?? '';
  const isReady = (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True');
  return {
    key: `${namespace}/${metadata.name}`,
    name: metadata.name,
    namespace,
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    isReady: isReady && metadata.deletionTimestamp === undefined,
    ips: (status?.podIPs ?? []).flatMap(({ ip = '' }): Ip[] => {
      const parsed = parseIp(ip);
      return parsed.ok ? [parsed.value] : [];
    }),
    node: spec?.nodeName,
  };
};

/** The pods that carry all of these labels, in the order of their names. */
export const podsWith = (
  pods: Iterable<KnownPod>,
  namespace: string,
  selector: Readonly<Record<string, string>>,
): KnownPod[] =>
  [...pods]
    .filter(
      (pod) =>
        pod.namespace === namespace && Object.entries(selector).every(([key, value]) => pod.labels[key] === value),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
