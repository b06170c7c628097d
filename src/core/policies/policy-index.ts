/**
 * PolicyIndex finds the policies that may concern a pod, or may win over another policy, without asking every policy.
 * Policies are filed by namespace and by one label that their pods must have; a policy by address is filed as such.
 */

import { type Labels, matches, tokensOfLabels } from '../cluster/labels.ts';
import type { PodView, PolicySpecView, PolicyView } from '../cluster/view.ts';
import { type Exchanged, exchangedBetween, ListChangeLog } from '../incremental/change-log.ts';
import { contains } from '../ip/index.ts';
import { comparePrecedence } from './precedence.ts';

/** A policy whose spec could be read. */
export interface ReadPolicy {
  readonly policy: PolicyView;
  readonly spec: PolicySpecView;
}

/** Policies in order of precedence, and where to look for them. */
export interface PolicyIndex {
  readonly ranked: readonly ReadPolicy[];
  /** The policies of a namespace (undefined: cluster policies) that are filed under a token, in order of precedence. */
  readonly filed: (namespace: string | undefined, token: string) => readonly ReadPolicy[];
}

/** The token of policies that name pods by address; no label can be written like this. */
export const SUBNET_TOKEN = '#subnet';

/** Files the policies. Those that are being deleted or cannot be read concern nobody and are left out. */
export const indexPolicies = (policies: readonly PolicyView[]): PolicyIndex => createPolicyIndexer()(policies);

/**
 * Makes a function that files policies as indexPolicies does. It remembers what it filed last: for another list it takes out
 * and files only policies that are other values. With the same ones it gives the same index again. An index is good until the next
 * call: thousands of policies are not filed in new label indexes because of one. `ranked` has a change log.
 */
export const createPolicyIndexer = (): ((policies: readonly PolicyView[]) => PolicyIndex) => {
  const entries = new Map<PolicyView, ReadPolicy>();
  const labelIndexes: PoliciesByToken = new Map();
  const changeLog = new ListChangeLog<ReadPolicy>();
  let index = indexOf(changeLog.mark([]), labelIndexes);
  let filed: readonly PolicyView[] = [];
  return (policies) => {
    const { gone: less, come: more } = exchangedBetween(filed, policies) ?? comparedWith(entries, policies);
    filed = policies;
    const gone = new Set<ReadPolicy>();
    for (const policy of less) {
      const entry = entries.get(policy);
      if (entry === undefined) continue;
      gone.add(entry);
      entries.delete(policy);
      changeLog.exchange(entry, undefined);
    }
    const added: ReadPolicy[] = [];
    for (const policy of more) {
      const { spec } = policy;
      if (spec === undefined || policy.isDeleting || entries.has(policy)) continue;
      const entry = { policy, spec };
      entries.set(policy, entry);
      added.push(entry);
      changeLog.exchange(undefined, entry);
    }
    if (added.length === 0 && gone.size === 0) return index;
    refile(labelIndexes, added, gone);
    index = indexOf(changeLog.mark(mergedIn(index.ranked, added, gone)), labelIndexes);
    return index;
  };
};

/** Policies that are filed and not in a list, and those of the list that are not filed. */
const comparedWith = (
  filed: ReadonlyMap<PolicyView, unknown>,
  policies: readonly PolicyView[],
): Exchanged<PolicyView> => {
  const all = new Set(policies);
  return { gone: new Set(filed.keys()).difference(all), come: new Set(policies.filter((one) => !filed.has(one))) };
};

/** Namespace (undefined: of the cluster) -> token -> the policies filed there, in order of precedence. */
type PoliciesByToken = Map<string | undefined, Map<string, readonly ReadPolicy[]>>;

const indexOf = (ranked: readonly ReadPolicy[], labelIndexes: PoliciesByToken): PolicyIndex => ({
  ranked,
  filed: (namespace, token) => labelIndexes.get(namespace)?.get(token) ?? [],
});

/** Takes some policies out of the label indexes and files others. */
const refile = (labelIndexes: PoliciesByToken, added: readonly ReadPolicy[], gone: ReadonlySet<ReadPolicy>): void => {
  const byNamespace = Map.groupBy([...gone, ...added], ({ policy }) => policy.namespace);
  for (const [namespace, entries] of byNamespace) {
    const files = labelIndexes.get(namespace) ?? new Map<string, readonly ReadPolicy[]>();
    const filings = entries.flatMap((entry) => anchorsOf(entry.spec).map((token) => ({ token, entry })));
    for (const [token, some] of Map.groupBy(filings, (filing) => filing.token)) {
      const fresh = some.map(({ entry }) => entry).filter((entry) => !gone.has(entry));
      const all = mergedIn(files.get(token) ?? [], fresh, gone);
      if (all.length === 0) files.delete(token);
      else files.set(token, all);
    }
    if (files.size === 0) labelIndexes.delete(namespace);
    else labelIndexes.set(namespace, files);
  }
};

/** So few are put in their places one by one; more are sorted with all others. */
const few = 8;

/** Policies in order of precedence, without some and with others. */
const mergedIn = (
  entries: readonly ReadPolicy[],
  added: readonly ReadPolicy[],
  gone: ReadonlySet<ReadPolicy>,
): readonly ReadPolicy[] => {
  const merged = gone.size > few ? entries.filter((entry) => !gone.has(entry)) : withoutFew(entries, gone);
  if (added.length > few) return [...merged, ...added].toSorted(byPrecedence);
  for (const entry of added) merged.splice(placeIn(merged, entry), 0, entry);
  return merged;
};

/** A list without some of its policies. They are looked for one by one, which costs less than to ask about each of the list. */
const withoutFew = (entries: readonly ReadPolicy[], gone: Iterable<ReadPolicy>): ReadPolicy[] => {
  const left = [...entries];
  for (const entry of gone) {
    const place = left.indexOf(entry);
    if (place >= 0) left.splice(place, 1);
  }
  return left;
};

/** The place of a policy in a list that is in order of precedence. */
const placeIn = (entries: readonly ReadPolicy[], entry: ReadPolicy): number => {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = entries[middle];
    if (other !== undefined && byPrecedence(other, entry) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Orders policies, the winning one first. */
export const byPrecedence = (a: ReadPolicy, b: ReadPolicy): number => comparePrecedence(a.policy, b.policy);

/** The tokens that a policy is filed under. */
export const anchorsOf = ({ appliedTo }: PolicySpecView): readonly string[] =>
  appliedTo.kind === 'subnet' ? [SUBNET_TOKEN] : appliedTo.pods.anchors;

/** The policies that a pod is under, the winning one first. `namespaceLabels` are those of the pod's namespace. */
export const policiesOfPod = (index: PolicyIndex, pod: PodView, namespaceLabels: Labels): PolicyView[] => {
  const found = new Set<ReadPolicy>();
  const tokens = [SUBNET_TOKEN, ...tokensOfLabels(pod.labels)];
  for (const namespace of [pod.namespace, undefined]) {
    for (const token of tokens) {
      for (const entry of index.filed(namespace, token)) {
        if (appliesTo(entry.policy, pod, namespaceLabels)) found.add(entry);
      }
    }
  }
  return [...found].toSorted(byPrecedence).map(({ policy }) => policy);
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
