/** Pods of proxies, as far as the operator looks at them. */

import type { Finding } from '../../core/cluster/finding.ts';
import { type Ip, parseIp } from '../../core/ip/index.ts';
import type { ServingPod } from '../objects/rule-objects.ts';
import { podTrouble, type TroubledPod } from './pod-trouble.ts';

export interface ProxyPod extends ServingPod {
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Ready, and not on its way out. */
  readonly isReady: boolean;
  /** What keeps it from being ready; undefined when nothing is known to, and for a pod on its way out. */
  readonly trouble: Finding | undefined;
}

interface ProxyPodObject extends TroubledPod {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: TroubledPod['status'] & { readonly podIPs?: readonly { readonly ip?: string }[] };
}

/** What is kept of a pod. */
export const projectPod = (object: ProxyPodObject): ProxyPod => {
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
    trouble: isReady || metadata.deletionTimestamp !== undefined ? undefined : podTrouble(object),
    ips: (status?.podIPs ?? []).flatMap(({ ip = '' }): Ip[] => {
      const parsed = parseIp(ip);
      return parsed.ok ? [parsed.value] : [];
    }),
    node: spec?.nodeName,
  };
};

/** The pods that carry all of these labels, in the order of their names. */
export const podsWith = (
  pods: Iterable<ProxyPod>,
  namespace: string,
  selector: Readonly<Record<string, string>>,
): ProxyPod[] =>
  [...pods]
    .filter(
      (pod) =>
        pod.namespace === namespace && Object.entries(selector).every(([key, value]) => pod.labels[key] === value),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
