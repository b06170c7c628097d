/**
 * Membership knows which pods are under which policy, and keeps that right one change at a time: a pod asks only the
 * policies that its labels may concern, a policy only the pods that have its labels. It is told of pods, policies and
 * namespaces in any order, and answers each time which policies now have other endpoints.
 */
import { isDeepStrictEqual } from 'node:util';
import { ANY, type Labels, matches, tokensOfLabels } from '../../core/cluster/labels.ts';
import type { PodView, PolicyKey, PolicyView } from '../../core/cluster/view.ts';
import { appliesTo, isSource, SUBNET_TOKEN } from '../../core/policies/policy-index.ts';
import { type Endpoint, endpointOf } from '../../core/slices/endpoints.ts';
import { compareText } from '../../core/values/hash.ts';
import { LabelIndex } from './label-index.ts';

interface Member {
  readonly pod: PodView;
  readonly policies: Set<PolicyKey>;
}

interface PolicyPods {
  readonly policy: PolicyView;
  readonly pods: Set<string>;
  /** The nodes of the pods; undefined until somebody asks. */
  nodes: readonly string[] | undefined;
}

const noLabels: Labels = {};

export class Membership {
  /** `namespace/name` of the pod -> the pod and its policies */
  readonly #memberByPod = new Map<string, Member>();
  readonly #groupByPolicy = new Map<PolicyKey, PolicyPods>();
  readonly #labelsByNamespace = new Map<string, Labels>();
  readonly #podFiles = new LabelIndex<string>();
  readonly #policyFiles = new LabelIndex<PolicyKey>();

  /** The keys of all policies, in no order. */
  policies(): IterableIterator<PolicyKey> {
    return this.#groupByPolicy.keys();
  }

  /** The policy under the key, or undefined when there is none. */
  policy(key: PolicyKey): PolicyView | undefined {
    return this.#groupByPolicy.get(key)?.policy;
  }

  /** How many pods a policy applies to; undefined when there is no such policy. */
  count(key: PolicyKey): number | undefined {
    return this.#groupByPolicy.get(key)?.pods.size;
  }

  /** The pods that a policy applies to, sorted by key; empty when there is no such policy. */
  endpoints(key: PolicyKey): Endpoint[] {
    const pods = [...(this.#groupByPolicy.get(key)?.pods ?? [])].toSorted(compareText);
    return pods.flatMap((podKey) => {
      const member = this.#memberByPod.get(podKey);
      return member === undefined ? [] : [endpointOf(member.pod)];
    });
  }

  /** The nodes that run pods which a policy applies to, sorted; empty when there is no such policy. */
  nodes(key: PolicyKey): readonly string[] {
    const group = this.#groupByPolicy.get(key);
    if (group === undefined) return [];
    group.nodes ??= this.#nodesOf(group.pods);
    return group.nodes;
  }

  /** Learns of a pod as it is now (undefined: it is gone) and returns the policies whose endpoints changed. */
  setPod(key: string, pod: PodView | undefined): PolicyKey[] {
    const before = this.#memberByPod.get(key);
    // A pod that no policy can be about is not kept: host-network pods and finished ones can be many.
    const after = pod !== undefined && isSource(pod) ? this.#joined(pod) : undefined;
    if (before !== undefined) this.#podFiles.takeOut(before.pod.namespace, tokensOfLabels(before.pod.labels), key);
    if (after === undefined) {
      this.#memberByPod.delete(key);
    } else {
      this.#podFiles.file(after.pod.namespace, tokensOfLabels(after.pod.labels), key);
      this.#memberByPod.set(key, after);
    }
    return this.#regroup(key, before, after);
  }

  /** Learns the labels of a namespace (undefined: it is gone) and returns the policies whose endpoints changed. */
  setNamespace(name: string, labels: Labels | undefined): PolicyKey[] {
    if (isDeepStrictEqual(this.#labelsByNamespace.get(name), labels)) return [];
    if (labels === undefined) this.#labelsByNamespace.delete(name);
    else this.#labelsByNamespace.set(name, labels);
    const changed = new Set<PolicyKey>();
    for (const key of [...this.#podFiles.find(name, [ANY])]) {
      const before = this.#memberByPod.get(key);
      if (before === undefined) continue;
      const after = this.#joined(before.pod);
      this.#memberByPod.set(key, after);
      for (const policy of this.#regroup(key, before, after)) changed.add(policy);
    }
    return [...changed];
  }

  /** Learns of a policy as it is now (undefined: it is gone) and returns its key if its slices may be wrong now. */
  setPolicy(key: PolicyKey, policy: PolicyView | undefined): PolicyKey[] {
    const before = this.#groupByPolicy.get(key);
    if (before !== undefined && policy !== undefined && selectsTheSame(before.policy, policy)) {
      this.#groupByPolicy.set(key, { ...before, policy });
      // The slices name their owner by uid.
      return before.policy.uid === policy.uid ? [] : [key];
    }
    if (before !== undefined) this.#disband(key, before);
    if (policy !== undefined) this.#gather(key, policy);
    return before === undefined && policy === undefined ? [] : [key];
  }

  #disband(key: PolicyKey, { policy, pods }: PolicyPods): void {
    this.#policyFiles.takeOut(policy.namespace ?? '', anchorsOf(policy), key);
    for (const podKey of pods) this.#memberByPod.get(podKey)?.policies.delete(key);
    this.#groupByPolicy.delete(key);
  }

  #gather(key: PolicyKey, policy: PolicyView): void {
    const pods = new Set<string>();
    this.#groupByPolicy.set(key, { policy, pods, nodes: undefined });
    if (!isInForce(policy)) return;
    this.#policyFiles.file(policy.namespace ?? '', anchorsOf(policy), key);
    // Pods are not filed under the token of addresses: all of them have one.
    const tokens = policy.spec?.appliedTo.kind === 'labels' ? policy.spec.appliedTo.pods.anchors : [ANY];
    for (const namespace of this.#namespacesOf(policy)) {
      const labels = this.#labelsByNamespace.get(namespace) ?? noLabels;
      for (const podKey of this.#podFiles.find(namespace, tokens)) {
        const member = this.#memberByPod.get(podKey);
        if (member === undefined || !appliesTo(policy, member.pod, labels)) continue;
        pods.add(podKey);
        member.policies.add(key);
      }
    }
  }

  #nodesOf(pods: ReadonlySet<string>): readonly string[] {
    const nodes = new Set<string>();
    for (const key of pods) {
      const node = this.#memberByPod.get(key)?.pod.node;
      if (node !== undefined) nodes.add(node);
    }
    return [...nodes].toSorted(compareText);
  }

  #namespacesOf({ namespace, spec }: PolicyView): string[] {
    if (namespace !== undefined) return [namespace];
    const selector = spec?.appliedTo.namespaces;
    return [...this.#podFiles.namespaces()].filter(
      (name) => selector === undefined || matches(selector, this.#labelsByNamespace.get(name) ?? noLabels),
    );
  }

  /** The pod with the policies that apply to it now. */
  #joined(pod: PodView): Member {
    const labels = this.#labelsByNamespace.get(pod.namespace) ?? noLabels;
    const tokens = [SUBNET_TOKEN, ...tokensOfLabels(pod.labels)];
    const policies = new Set<PolicyKey>();
    for (const namespace of [pod.namespace, '']) {
      for (const key of this.#policyFiles.find(namespace, tokens)) {
        const group = this.#groupByPolicy.get(key);
        if (group !== undefined && appliesTo(group.policy, pod, labels)) policies.add(key);
      }
    }
    return { pod, policies };
  }

  /** Brings the groups of one pod up to date and returns those that changed. */
  #regroup(podKey: string, before: Member | undefined, after: Member | undefined): PolicyKey[] {
    const old = before?.policies ?? new Set<PolicyKey>();
    const now = after?.policies ?? new Set<PolicyKey>();
    for (const key of old.difference(now)) this.#groupByPolicy.get(key)?.pods.delete(podKey);
    for (const key of now.difference(old)) this.#groupByPolicy.get(key)?.pods.add(podKey);
    const isSame =
      before !== undefined && after !== undefined && isDeepStrictEqual(endpointOf(before.pod), endpointOf(after.pod));
    const changed = isSame ? old.symmetricDifference(now) : old.union(now);
    for (const key of changed) {
      const group = this.#groupByPolicy.get(key);
      if (group !== undefined) group.nodes = undefined;
    }
    return [...changed];
  }
}

/** A policy that is being deleted, or whose spec cannot be read, applies to nobody. */
const isInForce = ({ spec, isDeleting }: PolicyView): boolean => spec !== undefined && !isDeleting;

const selectsTheSame = (a: PolicyView, b: PolicyView): boolean =>
  isInForce(a) === isInForce(b) && isDeepStrictEqual(a.spec?.appliedTo, b.spec?.appliedTo);

const anchorsOf = ({ spec }: PolicyView): readonly string[] => {
  if (spec === undefined) return [];
  return spec.appliedTo.kind === 'subnet' ? [SUBNET_TOKEN] : spec.appliedTo.pods.anchors;
};
