/** From a question to its answer: what has to be read from the cluster, and in which order. */
import { resourceOf } from '../api/kinds.ts';
import { annotations } from '../api/names.ts';
import { type Ip, parseIp } from '../core/ip/index.ts';
import { projectPod } from '../core/project/index.ts';
import { isNotFound } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { type Clock, systemClock, wait } from '../runtime/process/clock.ts';
import { agentsOf } from './agents.ts';
import { decide } from './decide.ts';
import { type DrainReport, drainPatch, leftOn } from './drain.ts';
import { checkKernels } from './kernel-check.ts';
import { type MoveQuestion, moveOf, remainingOf, wishesWith } from './move.ts';
import { type ChosenPod, choosePod, type ParseResult, type PodName, readPodName } from './pod-name.ts';
import {
  homeOf,
  type OwnObjects,
  readAll,
  readClusterContext,
  readOwnObjects,
  readPrograms,
  resources,
  type ServedObject,
  type ServedPod,
} from './read.ts';
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
    readClusterContext(client, home, signal),
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

/** What `vip move` did. */
export interface MoveReport {
  readonly isFine: boolean;
  /** The EIP; or the node whose address policies left with. */
  readonly vip: string;
  readonly to: string;
  /** How many policies leave with it. */
  readonly policies: number;
  /** True when it was there already. */
  readonly wasThere: boolean;
  /** What is left to do after the time that a person waits; undefined when nothing is. */
  readonly remaining: string | undefined;
}

// An EIP moves within seconds; what takes longer is worth a look at its reasons.
const moveLimitMs = 30_000;
const askAgainMs = 250;

/** Moves an EIP and waits until its new node holds it. Rejects with Unanswered, or with the ApiError of the server. */
export const moveVip = async (
  { client, signal }: Cluster,
  question: MoveQuestion,
  clock: Clock = systemClock,
): Promise<MoveReport> => {
  const move = answered(moveOf(await ownObjects(client, signal), question));
  const { gateway, vip, from, to, policies, isThere } = move;
  if (!isThere) await wish(client, gateway, vip, to, signal);
  try {
    const remaining = await untilDone(client, signal, clock, (objects) => remainingOf(move, objects));
    return { isFine: remaining === undefined, vip: from ?? vip, to, policies, wasThere: isThere, remaining };
  } finally {
    // With a limit of its own: the wish must go also when the time for the answer is over.
    if (!isThere) await wish(client, gateway, vip, undefined, undefined);
  }
};

/** Empties a node of EIPs, or lets it have some again. Rejects with Unanswered, or with the ApiError of the server. */
export const drainNode = async (
  { client, signal }: Cluster,
  node: string,
  isDraining: boolean,
  clock: Clock = systemClock,
): Promise<DrainReport> => {
  const known = await client.get(resources.nodes, { name: node }, { signal });
  if (known === undefined) throw new Unanswered(`There is no node ${node}.`);
  await client.patch(resources.nodes, { name: node }, { kind: 'merge', value: drainPatch(isDraining) }, { signal });
  const remaining = isDraining ? await untilDone(client, signal, clock, (objects) => leftOn(node, objects)) : undefined;
  return { isFine: remaining === undefined, node, isDraining, remaining };
};

/** Asks again and again what remains, as long as a person waits; undefined when nothing does. */
const untilDone = async (
  client: KubeClient,
  signal: AbortSignal,
  clock: Clock,
  remainingIn: (objects: OwnObjects) => string | undefined,
): Promise<string | undefined> => {
  const startMs = clock.monotonicMs();
  for (;;) {
    const remaining = remainingIn(await ownObjects(client, signal));
    if (remaining === undefined || clock.monotonicMs() - startMs >= moveLimitMs) return remaining;
    await wait(clock, askAgainMs, signal);
  }
};

/** Says on the gateway where an EIP is wanted; `node` undefined takes it back. */
const wish = async (
  client: KubeClient,
  name: string,
  vip: Ip,
  node: string | undefined,
  signal: AbortSignal | undefined,
): Promise<void> => {
  const resource = resourceOf('EgressGateway');
  const gateway = await client.get<ServedObject>(resource, { name }, { signal });
  if (gateway === undefined) return;
  const value = { metadata: { annotations: { [annotations.moveEips]: wishesWith(gateway, vip, node) } } };
  await client.patch(resource, { name }, { kind: 'merge', value }, { signal });
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

const answered = <T>(answer: ParseResult<T>): T => {
  if (answer.ok) return answer.value;
  throw new Unanswered(answer.sentence);
};
