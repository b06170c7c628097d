/**
 * The shadows on all policies while policies come, change and go. What was found is remembered, and only those are looked
 * at again that changed, or over which one that changed might win.
 */

import type { ClusterRanges, ClusterView, PolicyKey, PolicyView } from '../cluster/view.ts';
import { isSameList } from '../values/equality.ts';
import { anchorsOf, type ReadPolicy } from './policy-index.ts';
import { type Changes, changesBetween, placeIn } from './policy-order.ts';
import { compareRead, createLook, type Filed, type Shadow, tokensOf } from './shadows.ts';

/** The shadows as they stand. */
export interface ShadowsNow {
  readonly on: (policy: PolicyKey) => readonly Shadow[];
  /** Policies that may have other ones than before, in a form that may be older; undefined: all of them. */
  readonly changed: readonly PolicyView[] | undefined;
}

/** What shadows depend on besides the policies. */
interface ShadowContext {
  readonly ranges: ClusterRanges;
  readonly namespaces: ClusterView['namespaces'];
}

/** Makes a function that finds what shadowsOf finds, for policies that are sorted by age. */
export const createIncrementalShadows = (): ((
  policies: readonly PolicyView[],
  ranges: ClusterRanges,
  namespaces: ClusterView['namespaces'],
) => ShadowsNow) => {
  const files = new FiledPolicies();
  const found = new Map<PolicyKey, readonly Shadow[]>();
  const on: ShadowsNow['on'] = (policy) => found.get(policy) ?? noShadows;
  let known: readonly PolicyView[] = [];
  let around: ShadowContext | undefined;
  return (policies, ranges, namespaces) => {
    const changes = changesBetween(known, policies);
    const isElsewhere = around?.ranges !== ranges || !isSameList(around.namespaces, namespaces);
    known = policies;
    around = { ranges, namespaces };
    const touched = files.change(changes);
    const losers = isElsewhere ? files.all() : touched;
    if (isElsewhere) found.clear();
    else for (const { key } of changes.gone) if (!files.has(key)) found.delete(key);
    const shadowsOn = createLook(files.filed, ranges, namespaces);
    for (const loser of losers) {
      const { key } = loser.policy;
      const shadows = shadowsOn(loser);
      if (shadows.length > 0) found.set(key, shadows);
      else found.delete(key);
    }
    return { on, changed: isElsewhere ? undefined : [...touched].map(({ policy }) => policy) };
  };
};

/** The policies by what they are about: those in force, as they were when that last changed. */
class FiledPolicies {
  readonly #byKey = new Map<PolicyKey, ReadPolicy>();
  /** namespace, undefined for cluster policies -> anchor -> policies in order of precedence */
  readonly #anchored = new Map<string | undefined, Map<string, ReadPolicy[]>>();
  /** label with its value -> policies whose pods all have it, in any namespace */
  readonly #labelled = new Map<string, Set<ReadPolicy>>();

  readonly filed: Filed = (namespace, token) => this.#anchored.get(namespace)?.get(token) ?? nobody;

  has(key: PolicyKey): boolean {
    return this.#byKey.has(key);
  }

  all(): Iterable<ReadPolicy> {
    return this.#byKey.values();
  }

  /** Takes the changes over and returns those in force over which one of the changed ones could win, or could before. */
  change({ gone, come }: Changes): ReadonlySet<ReadPolicy> {
    const comeByKey = new Map(come.map((policy) => [policy.key, policy]));
    const moved: ReadPolicy[] = [];
    for (const { key } of gone) {
      const filed = this.#byKey.get(key);
      const now = comeByKey.get(key);
      if (filed === undefined) continue;
      // A new binding changes nothing about whom a policy is about.
      if (now !== undefined && isFiledAs(filed, now)) comeByKey.delete(key);
      else {
        this.#takeOut(filed);
        moved.push(filed);
      }
    }
    const filed: ReadPolicy[] = [];
    for (const policy of comeByKey.values()) {
      if (policy.spec !== undefined && !policy.isDeleting) filed.push(this.#file({ policy, spec: policy.spec }));
    }
    const touched = new Set(filed);
    for (const one of [...moved, ...filed]) for (const loser of this.#losersTo(one)) touched.add(loser);
    return touched;
  }

  #file(read: ReadPolicy): ReadPolicy {
    const { policy, spec } = read;
    this.#byKey.set(policy.key, read);
    const files = this.#anchored.get(policy.namespace) ?? new Map<string, ReadPolicy[]>();
    this.#anchored.set(policy.namespace, files);
    for (const token of anchorsOf(spec)) {
      const file = files.get(token);
      if (file === undefined) files.set(token, [read]);
      else file.splice(placeIn(file, read, compareRead), 0, read);
    }
    for (const token of tokensOf(spec)) {
      if (isWithValue(token)) this.#labelled.set(token, (this.#labelled.get(token) ?? new Set()).add(read));
    }
    return read;
  }

  #takeOut(read: ReadPolicy): void {
    const { policy, spec } = read;
    this.#byKey.delete(policy.key);
    const files = this.#anchored.get(policy.namespace);
    for (const token of anchorsOf(spec)) {
      const file = files?.get(token);
      file?.splice(placeIn(file, read, compareRead), 1);
      if (file?.length === 0) files?.delete(token);
    }
    for (const token of tokensOf(spec)) {
      const losers = this.#labelled.get(token);
      losers?.delete(read);
      if (losers?.size === 0) this.#labelled.delete(token);
    }
  }

  /** The policies that would look for a rival where this one is filed. */
  *#losersTo({ policy: { namespace }, spec }: ReadPolicy): Generator<ReadPolicy> {
    for (const anchor of anchorsOf(spec)) {
      const isLabel = isWithValue(anchor);
      // Who has a label with its value is filed; for the few other anchors everybody is asked.
      for (const loser of (isLabel ? this.#labelled.get(anchor) : this.#byKey.values()) ?? nobody) {
        if (namespace !== undefined && loser.policy.namespace !== namespace) continue;
        if (isLabel || tokensOf(loser.spec).includes(anchor)) yield loser;
      }
    }
  }
}

/** True when the policy would be filed where it is, with the same rank. */
const isFiledAs = ({ policy: filed, spec }: ReadPolicy, policy: PolicyView): boolean =>
  policy.spec === spec && !policy.isDeleting && policy.createdAtMs === filed.createdAtMs && policy.kind === filed.kind;

/** No key of a label and no other token has this sign. */
const isWithValue = (token: string): boolean => token.includes('=');

const nobody: readonly ReadPolicy[] = [];
const noShadows: readonly Shadow[] = [];
