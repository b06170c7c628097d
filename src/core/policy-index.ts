/**
 * PolicyIndex finds the policies that may concern a pod, or may win over another policy, without asking every policy.
 * Policies are filed by namespace and by one label that their pods must have; a policy by address is filed as such.
 */
import { contains } from './ip/index.ts';
import { type Labels, matches, tokensOfLabels } from './labels.ts';
import { comparePrecedence } from './precedence.ts';
import type { PodView, PolicySpecView, PolicyView } from './view.ts';

/** A policy whose spec could be read. */
export interface ReadPolicy {
  readonly policy: PolicyView;
  readonly spec: PolicySpecView;
}

/** The same, with its place in the order of precedence. */
export interface RankedPolicy extends ReadPolicy {
  readonly rank: number;
}

/** Policies in order of precedence, and where to look for them. */
export interface PolicyIndex {
  readonly ranked: readonly RankedPolicy[];
  /** The policies of a namespace (undefined: cluster policies) that are filed under a token, in order of precedence. */
  readonly filed: (namespace: string | undefined, token: string) => readonly RankedPolicy[];
}

/** The token of policies that name pods by address; no label can be written like this. */
export const SUBNET_TOKEN = '#subnet';

/** Files the policies. Those that are being deleted or cannot be read concern nobody and are left out. */
export const indexPolicies = (policies: readonly PolicyView[]): PolicyIndex => {
  const ranked: RankedPolicy[] = [];
  const cabinets = new Map<string | undefined, Map<string, RankedPolicy[]>>();
  for (const policy of policies.toSorted(comparePrecedence)) {
    if (policy.spec === undefined || policy.isDeleting) continue;
    const entry = { policy, spec: policy.spec, rank: ranked.length };
    ranked.push(entry);
    const files = cabinets.get(policy.namespace) ?? new Map<string, RankedPolicy[]>();
    cabinets.set(policy.namespace, files);
    for (const token of anchorsOf(policy.spec)) {
      const entries = files.get(token);
      if (entries === undefined) files.set(token, [entry]);
      else entries.push(entry);
    }
  }
  return { ranked, filed: (namespace, token) => cabinets.get(namespace)?.get(token) ?? [] };
};

/** The tokens that a policy is filed under. */
export const anchorsOf = ({ appliedTo }: PolicySpecView): readonly string[] =>
  appliedTo.kind === 'subnet' ? [SUBNET_TOKEN] : appliedTo.pods.anchors;

/** The policies that a pod is under, the winning one first. `namespaceLabels` are those of the pod's namespace. */
export const policiesOfPod = (index: PolicyIndex, pod: PodView, namespaceLabels: Labels): PolicyView[] => {
  const found = new Set<RankedPolicy>();
  const tokens = [SUBNET_TOKEN, ...tokensOfLabels(pod.labels)];
  for (const namespace of [pod.namespace, undefined]) {
    for (const token of tokens) {
      for (const entry of index.filed(namespace, token)) {
        if (appliesTo(entry.policy, pod, namespaceLabels)) found.add(entry);
      }
    }
  }
  return [...found].toSorted((a, b) => a.rank - b.rank).map(({ policy }) => policy);
};

/** True when the traffic of the pod is under the policy, wherever it goes. */
export const appliesTo = ({ namespace, spec }: PolicyView, pod: PodView, namespaceLabels: Labels): boolean => {
  if (spec === undefined || !isSource(pod)) return false;
  const { appliedTo } = spec;
  if (namespace !== undefined && namespace !== pod.namespace) return false;
  if (appliedTo.namespaces !== undefined && !matches(appliedTo.namespaces, namespaceLabels)) return false;
  if (appliedTo.kind === 'labels') return matches(appliedTo.pods, pod.labels);
  return [...pod.ipv4, ...pod.ipv6].some((ip) => contains(appliedTo.subnet, ip));
};

/**
 * True when policies can be about the pod at all. A host-network pod has the address of its node, and that of a
 * finished pod may belong to another pod by now: a policy on either would catch the traffic of somebody else.
 */
export const isSource = (pod: PodView): boolean =>
  !pod.isHostNetwork && !pod.isFinished && pod.ipv4.length + pod.ipv6.length > 0;
