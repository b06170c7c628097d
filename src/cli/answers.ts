/** From a question to its answer: what has to be read from the cluster, and in which order. */
import { parseIp } from '../core/ip/index.ts';
import { projectPod } from '../core/project/index.ts';
import { isNotFound } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { agentsOf } from './agents.ts';
import { decide } from './decide.ts';
import { checkKernels } from './kernel-check.ts';
import { type Answer, type ChosenPod, choosePod, type PodName, readPodName } from './pod-name.ts';
import { homeOf, readAll, readOwnObjects, readPrograms, readSurroundings, resources, type ServedPod } from './read.ts';
import { checkReports, checkStatuses } from './record-check.ts';
import { type StatusReport, statusOf } from './status.ts';
import { viewOf } from './view.ts';
import { type WhyReport, whyOf } from './why.ts';

/** The question cannot be answered as it was asked; the message is one sentence. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
}

/** A cluster that can be asked. */
export interface Cluster {
  readonly client: KubeClient;
  /** The namespace of the context. */
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** How everything stands. Rejects with Unanswered, or with the ApiError of the server. */
export const askStatus = async ({ client, signal }: Cluster): Promise<StatusReport> => {
  const [objects, programs] = await Promise.all([ownObjects(client, signal), readPrograms(client, signal)]);
  return statusOf(objects, programs);
};

/** The words of a question about a pod. */
export interface WhyQuestion {
  readonly pod: string;
  readonly namespace?: string | undefined;
  /** Undefined: every destination. */
  readonly to?: string | undefined;
}

/** How traffic of a pod leaves. Rejects with Unanswered, or with the ApiError of the server. */
export const askWhy = async (
  { client, namespace, signal }: Cluster,
  { pod, namespace: chosenNamespace = namespace, to }: WhyQuestion,
): Promise<WhyReport> => {
  const destination = to === undefined ? undefined : parseIp(to);
  if (destination?.ok === false) {
    throw new Unanswered(`--to is ${JSON.stringify(to)}: allowed is an IPv4 or IPv6 address such as 198.51.100.7.`);
  }
  const name = answered(readPodName(pod, chosenNamespace));
  const home = homeOf(await readPrograms(client, signal));
  const [objects, surroundings, chosen] = await Promise.all([
    ownObjects(client, signal),
    readSurroundings(client, home, signal),
    findPod(client, name, signal),
  ]);
  const { view, notes } = viewOf(objects, surroundings);
  const decided = decide(view, projectPod(chosen.pod), destination?.value);
  const checks = [
    ...checkStatuses(decided, objects),
    ...(await checkKernels(decided, agentsOf(client, home, signal))),
    ...checkReports(decided, objects),
  ];
  const allNotes = chosen.note === undefined ? notes : [chosen.note, ...notes];
  return whyOf(decided, checks, allNotes);
};

const ownObjects = async (client: KubeClient, signal: AbortSignal) => {
  try {
    return await readOwnObjects(client, signal);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new Unanswered('Sallyport is not installed in this cluster; install its chart, or choose another --context.');
  }
};

/** One pod by its name costs one call; only a workload or the beginning of a name needs the list. */
const findPod = async (client: KubeClient, name: PodName, signal: AbortSignal): Promise<ChosenPod> => {
  const exact = name.owner === undefined ? await client.get<ServedPod>(resources.pods, name, { signal }) : undefined;
  const scope = { namespace: name.namespace, signal };
  return answered(choosePod(name, exact ? [exact] : await readAll<ServedPod>(client, resources.pods, scope)));
};

const answered = <T>(answer: Answer<T>): T => {
  if (answer.ok) return answer.value;
  throw new Unanswered(answer.sentence);
};
