/** Asks agents what their kernels hold, through the pod proxy of the API server. */
import { z } from 'zod';
import type { Ip } from '../core/ip/index.ts';
import type { KernelView } from '../core/node/kernel-view.ts';
import { ApiError } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { pathOf } from '../runtime/kube/resource.ts';
import { readerAudience, tokenHeader } from '../runtime/serve/readers.ts';
import { readAll, resources, type ServedPod } from './read.ts';

/** What to ask: about a source, a slot, or both. */
export interface Question {
  readonly node: string;
  readonly ip?: Ip | undefined;
  readonly slot?: number | undefined;
}

/** What a kernel holds, or one sentence that says why nobody knows. */
export type KernelAnswer =
  | { readonly ok: true; readonly view: KernelView }
  | { readonly ok: false; readonly sentence: string };

const agentLabels = 'app.kubernetes.io/name=sallyport,app.kubernetes.io/component=agent';
/** The name of the port of an agent that answers, as the chart calls it. */
const portName = 'health';
const limitMs = 5_000;
/** Whom the chart lets read metrics and pages. */
const readerAccount = 'sallyport-reader';
const tokenSchema = z.object({ status: z.object({ token: z.string() }) });

const verdictSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('slot'), slot: z.int() }),
  z.object({ kind: z.literal('drop') }),
  z.object({ kind: z.literal('leftAlone') }),
]);
const viewSchema = z.object({
  node: z.string(),
  hasTable: z.boolean(),
  source: z
    .object({
      ip: z.string(),
      class: z.string(),
      destinations: z.array(z.object({ range: z.string(), verdict: verdictSchema })),
      otherwise: verdictSchema,
    })
    .optional(),
  slot: z
    .object({
      slot: z.int(),
      gateway: z.string().optional(),
      eip: z.object({ ipv4: z.string().optional(), ipv6: z.string().optional() }),
    })
    .optional(),
});

/**
 * Makes a function that asks the agent of a node. `home` is the namespace of the agents; the list of them is read once.
 * The function rejects for bugs only.
 */
export const agentsOf = (
  client: KubeClient,
  home: string | undefined,
  signal: AbortSignal,
): ((question: Question) => Promise<KernelAnswer>) => {
  const scope = { namespace: home, labelSelector: agentLabels, signal };
  const agents = home === undefined ? Promise.resolve([]) : readAll<ServedPod>(client, resources.pods, scope);
  // Whoever asks sees the failure; until then it is nobody's unhandled one.
  agents.catch(() => {});
  const token = home === undefined ? Promise.resolve(undefined) : tokenOf(client, home, signal);
  token.catch(() => {});
  return async (question) => {
    try {
      const agent = (await agents).find((pod) => pod.spec?.nodeName === question.node && isReady(pod));
      if (agent === undefined) return unanswered(`No agent is ready on node ${question.node}.`);
      const shown = await token;
      const headers: Record<string, string> = shown === undefined ? {} : { [tokenHeader]: `Bearer ${shown}` };
      const path = pathTo(agent, question);
      const answer = await client.raw({ path, headers, signal, timeoutMs: limitMs, retries: 0 });
      const view = viewSchema.safeParse(answer);
      if (view.success) return { ok: true, view: view.data };
      return unanswered(`This version does not understand the answer of the agent of node ${question.node}.`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return unanswered(`Cannot query the agent of node ${question.node}: ${error.message}.`);
    }
  };
};

/**
 * A token that is good for the pages of agents and for nothing else; undefined for those who may not have one, whom only
 * agents with open pages answer.
 */
const tokenOf = async (client: KubeClient, home: string, signal: AbortSignal): Promise<string | undefined> => {
  const spec = { audiences: [readerAudience], expirationSeconds: 600 };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const path = `/api/v1/namespaces/${home}/serviceaccounts/${readerAccount}/token`;
  try {
    const answer = await client.raw({ method: 'POST', path, body, signal, timeoutMs: limitMs, retries: 0 });
    const read = tokenSchema.safeParse(answer);
    return read.success ? read.data.status.token : undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return undefined;
  }
};

const unanswered = (sentence: string): KernelAnswer => ({ ok: false, sentence });

const isReady = ({ status }: ServedPod): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

const pathTo = ({ metadata, spec }: ServedPod, { ip, slot }: Question): string => {
  const ports = (spec?.containers ?? []).flatMap((container) => container.ports ?? []);
  const port = ports.find(({ name }) => name === portName)?.containerPort;
  const name = port === undefined ? metadata.name : `${metadata.name}:${port}`;
  const query = new URLSearchParams();
  if (ip !== undefined) query.set('ip', ip);
  if (slot !== undefined) query.set('slot', String(slot));
  const path = pathOf(resources.pods, { namespace: metadata.namespace, name, subresource: 'proxy/kernel' });
  return `${path}?${query}`;
};
