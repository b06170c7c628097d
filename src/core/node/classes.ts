/**
 * A class is the ordered list of policies that a source is under. Sources with the same list share the class and all of
 * its destinations, so a pod costs one element, however many policies it is under.
 */

import type { Labels } from '../cluster/labels.ts';
import type { PodView, PolicyView } from '../cluster/view.ts';
import type { Interval, IntervalSet, Ip } from '../ip/index.ts';
import { setOf } from '../ip/index.ts';
import {
  byPrecedence,
  type PolicyIndex,
  policiesOfPod,
  type ReadPolicy,
  SUBNET_TOKEN,
} from '../policies/policy-index.ts';
import { assignUnique } from '../values/assign-unique.ts';
import { isSameList } from '../values/equality.ts';
import { compareText, hashText } from '../values/hash.ts';
import { CLASSES } from './numbers.ts';

/** Policies in order of precedence, and their keys as one text that names the class. */
export interface Class {
  readonly name: string;
  readonly policies: readonly PolicyView[];
}

/** The class of some policies. */
export const classOf = (policies: readonly PolicyView[]): Class => ({
  // A comma is in no key, so no two lists have the same name.
  name: policies.map(({ key }) => key).join(),
  policies,
});

/** The class of each address of the pods; addresses of pods under no policy are missing. */
export type ClassByAddress = ReadonlyMap<Ip, Class>;

/** True when each address has the very same class. */
export const haveSameClasses = (a: ClassByAddress, b: ClassByAddress): boolean =>
  a.size === b.size && a.entries().every(([ip, one]) => b.get(ip) === one);

/**
 * Makes a function that finds the classes of pods. It remembers what it found for a pod, and asks again only when the
 * pod, its namespace or the policies are others. A pod that is under the same policies keeps its class.
 */
export const createClassifier = () => {
  const known = new WeakMap<PodView, { index: PolicyIndex; labels: Labels; found: Class }>();
  const find = (index: PolicyIndex, pod: PodView, labels: Labels): Class => {
    const last = known.get(pod);
    if (last?.index === index && last.labels === labels) return last.found;
    const policies = policiesOfPod(index, pod, labels);
    const isSame = last !== undefined && isSameList(last.found.policies, policies);
    const found = isSame ? last.found : classOf(policies);
    known.set(pod, { index, labels, found });
    return found;
  };
  return (index: PolicyIndex, pods: readonly PodView[], labelsOf: (namespace: string) => Labels): ClassByAddress => {
    const owners = new Map<Ip, PodView>();
    const classes = new Map<Ip, Class>();
    for (const pod of pods) {
      const found = find(index, pod, labelsOf(pod.namespace));
      if (found.policies.length === 0) continue;
      for (const ip of [...pod.ipv4, ...pod.ipv6]) {
        // Two pods have one address only for the moment in which one of them goes; the choice must not depend on order.
        const owner = owners.get(ip);
        if (owner !== undefined && comparePods(owner, pod) < 0) continue;
        owners.set(ip, pod);
        classes.set(ip, found);
      }
    }
    return classes;
  };
};

const comparePods = (a: PodView, b: PodView): number =>
  compareText(a.namespace, b.namespace) || compareText(a.name, b.name);

/** Addresses and the class that a source there has when it is no known pod. */
export interface Net {
  readonly addresses: IntervalSet;
  readonly class: Class;
}

/**
 * The nets: cluster policies by podSubnet without namespaceSelector are about every source with such an address, known
 * or not. A pod whose address the API server does not tell yet is caught this way. Nets are disjoint.
 */
export const netsOf = ({ filed }: PolicyIndex): readonly Net[] => {
  const edges: Edge[] = [];
  for (const entry of filed(undefined, SUBNET_TOKEN)) {
    const { appliedTo } = entry.spec;
    if (appliedTo.kind !== 'subnet' || (appliedTo.namespaces?.requirements.length ?? 0) > 0) continue;
    for (const { first, last } of appliedTo.subnet.intervals) {
      edges.push({ at: first, entry, isStart: true }, { at: last + 1n, entry, isStart: false });
    }
  }
  const pieces = new Map<string, { class: Class; intervals: Interval[] }>();
  for (const [interval, entries] of sweep(edges)) {
    const found = classOf(entries.map(({ policy }) => policy));
    const piece = pieces.get(found.name);
    if (piece === undefined) pieces.set(found.name, { class: found, intervals: [interval] });
    else piece.intervals.push(interval);
  }
  return [...pieces.values()].map((piece) => ({ addresses: setOf(piece.intervals), class: piece.class }));
};

interface Edge {
  readonly at: bigint;
  readonly entry: ReadPolicy;
  readonly isStart: boolean;
}

/** The intervals between edges, with the entries that are open there in order of precedence. */
function* sweep(edges: Edge[]): Generator<[Interval, readonly ReadPolicy[]], undefined> {
  edges.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  let open: readonly ReadPolicy[] = [];
  let from = 0n;
  for (const { at, entry, isStart } of edges) {
    if (open.length > 0 && from < at) yield [{ first: from, last: at - 1n }, open];
    from = at;
    open = isStart ? [...open, entry].toSorted(byPrecedence) : open.filter((other) => other !== entry);
  }
}

/** A number for every class, by name. It comes from the name, so that a class has the same one after a restart. */
export const assignClassNumbers = (names: Iterable<string>): ReadonlyMap<string, number> =>
  assignUnique(
    [...names].toSorted(compareText).map((name) => ({ name, recorded: undefined, hash: () => hashText(name) })),
    { size: CLASSES, at: (place) => place + 1 },
  );
