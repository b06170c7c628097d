/** Which pod a person means: the words of the command line, and the choice among the pods that there are. */
import { compareText } from '../core/values/hash.ts';
import { keyOf } from '../runtime/kube/resource.ts';
import type { ServedPod } from './read.ts';

/** What was written. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
  /** The kind of the workload whose pods are meant; undefined when a pod is. */
  readonly owner: OwnerKind | undefined;
}

/** Workloads that pods can be named by. A Deployment owns its pods through ReplicaSets. */
export type OwnerKind = 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'DaemonSet' | 'Job';

/** A value, or one sentence that says what is wrong and what is allowed. */
export type ParseResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly sentence: string };

/** A pod, with what the reader has to know about the choice. */
export interface ChosenPod {
  readonly pod: ServedPod;
  readonly note: string | undefined;
}

// The words that kubectl knows these kinds by.
const ownerByWord: Readonly<Record<string, OwnerKind | undefined>> = {
  deploy: 'Deployment',
  deployment: 'Deployment',
  rs: 'ReplicaSet',
  replicaset: 'ReplicaSet',
  sts: 'StatefulSet',
  statefulset: 'StatefulSet',
  ds: 'DaemonSet',
  daemonset: 'DaemonSet',
  job: 'Job',
};
const podWords = ['po', 'pod'];
const namePattern = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const allowed = 'write POD, NAMESPACE/POD, or a workload such as deploy/NAME';

/** Reads `POD`, `NAMESPACE/POD`, `deploy/NAME` or `NAMESPACE/deploy/NAME`; `namespace` is for names without one. */
export const readPodName = (text: string, namespace: string): ParseResult<PodName> => {
  if (!namePattern.test(namespace)) {
    return { ok: false, sentence: `${JSON.stringify(namespace)} is not a valid namespace: write -n NAMESPACE.` };
  }
  const parts = text.split('/');
  if (parts.length > 3 || !parts.every((part) => namePattern.test(part))) {
    return { ok: false, sentence: `${JSON.stringify(text)} is not a valid pod name: ${allowed}.` };
  }
  const name = parts.at(-1) ?? '';
  const word = parts.length === 1 ? 'pod' : (parts.at(-2) ?? '');
  const owner = ownerByWord[word];
  const isKind = owner !== undefined || podWords.includes(word);
  if (parts.length === 3 && !isKind) {
    return { ok: false, sentence: `${JSON.stringify(word)} is not a kind of workload that has pods: ${allowed}.` };
  }
  const [first = namespace] = parts;
  const isNamed = parts.length === 3 || (parts.length === 2 && !isKind);
  return { ok: true, value: { namespace: isNamed ? first : namespace, name, owner } };
};

/**
 * Chooses among the pods of the namespace: the one of that name, else one whose name begins so. Pods of one workload
 * are alike to policies, so one of them stands for all; of different ones the reader has to choose.
 */
export const choosePod = ({ namespace, name, owner }: PodName, pods: readonly ServedPod[]): ParseResult<ChosenPod> => {
  const exact = owner === undefined ? pods.find(({ metadata }) => metadata.name === name) : undefined;
  if (exact !== undefined) return { ok: true, value: { pod: exact, note: undefined } };
  const candidates = pods
    .filter((pod) => (owner === undefined ? pod.metadata.name.startsWith(name) : isOwnedBy(pod, owner, name)))
    .sort((a, b) => order(a) - order(b) || compareText(a.metadata.name, b.metadata.name));
  const [pod] = candidates;
  const asked = owner === undefined ? `pod ${name}` : `pod of the ${owner} ${name}`;
  if (pod === undefined) {
    const sentence = `There is no ${asked} in namespace ${namespace}; choose another namespace with -n NAMESPACE or NAMESPACE/POD.`;
    return { ok: false, sentence };
  }
  if (new Set(candidates.map(ownerOf)).size > 1) {
    return {
      ok: false,
      sentence: `The names of several pods begin with ${name}: ${shown(candidates)}; choose one of them.`,
    };
  }
  const note =
    candidates.length === 1
      ? undefined
      : `This is one of ${candidates.length} pods of the same workload: ${shown(candidates)}.`;
  return { ok: true, value: { pod, note } };
};

const isOwnedBy = (pod: ServedPod, kind: OwnerKind, name: string): boolean => {
  const owner = controllerOf(pod);
  if (kind !== 'Deployment') return owner?.kind === kind && owner.name === name;
  const hash = pod.metadata.labels?.['pod-template-hash'];
  return owner?.kind === 'ReplicaSet' && hash !== undefined && owner.name === `${name}-${hash}`;
};

const controllerOf = ({ metadata }: ServedPod) => metadata.ownerReferences?.find(({ controller }) => controller);

/** The workload of a pod; a pod without one stands for itself. Revisions of a Deployment may differ in their labels. */
const ownerOf = (pod: ServedPod): string => {
  const owner = controllerOf(pod);
  return owner === undefined ? keyOf(pod) : `${owner.kind}/${owner.name}`;
};

/** Running pods first: a finished one is under no policy. */
const order = ({ status }: ServedPod): number => (status?.phase === 'Running' ? 0 : 1);

const SHOWN = 5;
const shown = (pods: readonly ServedPod[]): string => {
  const names = pods.slice(0, SHOWN).map(({ metadata }) => metadata.name);
  return pods.length <= SHOWN ? names.join(', ') : `${names.join(', ')} and ${pods.length - SHOWN} more`;
};
