import { z } from 'zod';

/** What of an installation is not in service yet. It judges objects that somebody else has read. */

/** Selects everything that the chart makes, and its pods. */
export const partOfSallyport = 'app.kubernetes.io/part-of=sallyport';

/** The kinds that missingInRollout looks at, as kubectl names them. */
export const rolloutResources = [
  'pods',
  'deployments',
  'daemonsets',
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
].join(',');

/** Where the facts come from. */
export interface RolloutFacts {
  /** All objects of rolloutResources that are part of Sallyport, and the Leases of our programs. */
  objects(): Promise<readonly unknown[]>;
  /** The last thing that the container of a pod said: of its run before if it has ended since. Empty if nothing. */
  lastWords(pod: string, ofRunBefore: boolean): Promise<string>;
}

const Condition = z.object({ type: z.string(), status: z.string(), message: z.string().default('') });
const Waiting = z.object({ reason: z.string().default(''), message: z.string().default('') });
const Terminated = z.object({ reason: z.string().default(''), exitCode: z.int() });
const Container = z.object({
  ready: z.boolean(),
  state: z.object({ waiting: Waiting.optional(), terminated: Terminated.optional() }),
  lastState: z.object({ terminated: Terminated.optional() }).default({}),
});
const Pod = z.object({
  kind: z.literal('Pod'),
  metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
  status: z.object({ conditions: z.array(Condition).default([]), containerStatuses: z.array(Container).default([]) }),
});
const Deployment = z.object({
  kind: z.literal('Deployment'),
  metadata: z.object({ name: z.string(), generation: z.int() }),
  spec: z.object({ replicas: z.int() }),
  status: z.object({
    observedGeneration: z.int().default(0),
    replicas: z.int().default(0),
    updatedReplicas: z.int().default(0),
    availableReplicas: z.int().default(0),
    conditions: z.array(Condition).default([]),
  }),
});
const DaemonSet = z.object({
  kind: z.literal('DaemonSet'),
  metadata: z.object({ name: z.string(), generation: z.int() }),
  status: z.object({
    observedGeneration: z.int().default(0),
    desiredNumberScheduled: z.int(),
    updatedNumberScheduled: z.int().default(0),
    numberAvailable: z.int().default(0),
  }),
});
const webhooks = z.array(z.object({ name: z.string(), clientConfig: z.object({ caBundle: z.string().default('') }) }));
const metadata = z.object({ name: z.string() });
const RolloutObject = z.discriminatedUnion('kind', [
  Pod,
  Deployment,
  DaemonSet,
  z.object({ kind: z.literal('Lease'), metadata, spec: z.object({ holderIdentity: z.string().default('') }) }),
  z.object({ kind: z.literal('ValidatingWebhookConfiguration'), metadata, webhooks }),
  z.object({ kind: z.literal('MutatingWebhookConfiguration'), metadata, webhooks }),
]);
type Pod = z.infer<typeof Pod>;
type Deployment = z.infer<typeof Deployment>;
type DaemonSet = z.infer<typeof DaemonSet>;

/** One sentence for everything that is missing, reasons of pods first, as they explain the rest; empty when all is in service. */
export async function missingInRollout(facts: RolloutFacts): Promise<string[]> {
  const objects = (await facts.objects()).map((object) => RolloutObject.parse(object));
  const deployments = objects.filter((object) => object.kind === 'Deployment');
  const daemonSets = objects.filter((object) => object.kind === 'DaemonSet');
  const unfinished = [...deployments.map(deploymentSentence), ...daemonSets.map(daemonSetSentence)].filter(
    (sentence) => sentence !== undefined,
  );
  if (unfinished.length > 0) {
    const pods = objects.filter((object) => object.kind === 'Pod');
    const sentences = await Promise.all(pods.map((pod) => podSentence(pod, facts)));
    return [...sentences.filter((sentence) => sentence !== undefined), ...unfinished];
  }
  // Without a replica nobody can lead, or give the webhooks their certificate authority. Agents need neither.
  const programs = deployments.filter(({ spec }) => spec.replicas > 0).map(({ metadata: { name } }) => name);
  const leaders = objects.flatMap((object) =>
    object.kind === 'Lease' && object.spec.holderIdentity !== '' ? [object.metadata.name] : [],
  );
  const untrusted = objects
    .flatMap((object) =>
      'webhooks' in object && programs.includes(servedBy(object.metadata.name)) ? object.webhooks : [],
    )
    .filter(({ clientConfig }) => clientConfig.caBundle === '');
  return [
    ...programs
      .filter((name) => !leaders.includes(name))
      .map((name) => `no replica of the ${name.replace('sallyport-', '')} leads`),
    ...untrusted.map(({ name }) => `webhook ${name} has no certificate authority`),
  ];
}

/** The Deployment behind a webhook configuration: the one of the controller has the name of the release. */
const servedBy = (name: string): string => (name === 'sallyport' ? 'sallyport-controller' : name);

/** The rule of `kubectl rollout status`: all replicas are of this generation and available, and no old one is left. */
function deploymentSentence({ metadata, spec, status }: Deployment): string | undefined {
  const isObserved = status.observedGeneration >= metadata.generation;
  const counts = [status.replicas, status.updatedReplicas, status.availableReplicas];
  if (isObserved && counts.every((count) => count === spec.replicas)) return undefined;
  const refused = status.conditions.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
  const because = refused === undefined ? '' : `: ${refused.message}`;
  return `deployment ${metadata.name} has ${status.availableReplicas} of ${spec.replicas} replicas${because}`;
}

/** The same rule for a pod on every node. */
function daemonSetSentence({ metadata, status }: DaemonSet): string | undefined {
  const isObserved = status.observedGeneration >= metadata.generation;
  const counts = [status.updatedNumberScheduled, status.numberAvailable];
  if (isObserved && counts.every((count) => count === status.desiredNumberScheduled)) return undefined;
  return `daemonset ${metadata.name} is available on ${status.numberAvailable} of ${status.desiredNumberScheduled} nodes`;
}

/** Why a pod is not ready; undefined if it is, or is on its way out. */
async function podSentence({ metadata, status }: Pod, facts: RolloutFacts): Promise<string | undefined> {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const container = status.containerStatuses.find(({ ready }) => !ready);
  if (container === undefined) {
    const unscheduled = status.conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
    return unscheduled === undefined ? undefined : `pod ${metadata.name} has no node: ${unscheduled.message}`;
  }
  const { waiting, terminated } = container.state;
  const ended = terminated ?? container.lastState.terminated;
  if (ended !== undefined) {
    const words = await facts.lastWords(metadata.name, terminated === undefined);
    return `pod ${metadata.name} ended with code ${ended.exitCode}${words === '' ? '' : `: ${words}`}`;
  }
  if (waiting !== undefined) {
    return `pod ${metadata.name} waits: ${[waiting.reason, waiting.message].filter(Boolean).join(', ')}`;
  }
  return `pod ${metadata.name} runs but is not ready`;
}
