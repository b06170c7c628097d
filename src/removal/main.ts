/** `sallyport await-clean`: waits until every node is clean, and says what it waits for. */
import { refuseFlag } from '../runtime/config/flag.ts';
import { ApiError } from '../runtime/kube/api-error.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { loadAccess } from '../runtime/kube/load-access.ts';
import { coreResource, type KubeObject, type Resource } from '../runtime/kube/resource.ts';
import { type Clock, systemClock, wait } from '../runtime/process/clock.ts';
import { type ExitCode, exitCodes } from '../runtime/process/lifecycle.ts';
import { type DaemonSet, judgeNodes, type Node, type Nodes, type Pod } from './nodes.ts';

/** What the flags ask for. */
export interface AwaitCleanOptions {
  readonly namespace: string;
  readonly daemonset: string;
  /** Seconds until it gives up. */
  readonly limit: number;
  readonly kubeconfig?: string;
}

/** What waiting needs. */
export interface AwaitCleanDeps extends Omit<AwaitCleanOptions, 'kubeconfig'> {
  readonly client: Pick<KubeClient, 'get' | 'list'>;
  readonly clock: Clock;
  readonly print: (line: string) => void;
}

const PERIOD_MS = 1000;
/** What is read. */
export const daemonSets: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'daemonsets',
  kind: 'DaemonSet',
  namespaced: true,
};
export const pods = coreResource('pods', 'Pod', true);
export const nodes = coreResource('nodes', 'Node', false);

/** Runs the command against the cluster of the pod, or of a kubeconfig. */
export const runAwaitClean = async (options: AwaitCleanOptions, version: string): Promise<ExitCode> => {
  const { kubeconfig, ...rest } = options;
  if (!(rest.limit > 0)) refuseFlag('--limit', `${rest.limit}`, 'a number of seconds');
  const access = await loadAccess(kubeconfig === undefined ? {} : { path: kubeconfig });
  const client = createKubeClient({
    access,
    userAgent: `sallyport-removal/${version}`,
    clock: systemClock,
    random: Math.random,
  });
  try {
    return await awaitClean({ ...rest, client, clock: systemClock, print: (line) => console.log(line) });
  } finally {
    await client.close();
  }
};

/** Waits until there is nothing to wait for, or the time is over. Prints what it waits for whenever that changes. */
export const awaitClean = async (deps: AwaitCleanDeps): Promise<ExitCode> => {
  const { clock, print, limit } = deps;
  const endsAtMs = clock.monotonicMs() + limit * 1000;
  let said = '';
  for (;;) {
    const judged = await look(deps);
    const now = linesOf(judged).join('\n');
    if (now !== said) print(now);
    said = now;
    if (judged.isDone) return exitCodes.stopped;
    if (clock.monotonicMs() >= endsAtMs) {
      print(`gave up after ${limit} s; run \`sallyport agent --clean\` on what is left, or reboot it`);
      return exitCodes.failure;
    }
    await wait(clock, PERIOD_MS);
  }
};

const look = async ({ client, namespace, daemonset }: AwaitCleanDeps): Promise<Nodes> => {
  try {
    const found = await client.get<DaemonSet>(daemonSets, { namespace, name: daemonset });
    return judgeNodes(found, await all<Pod>(client, pods, namespace), await all<Node>(client, nodes, undefined));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { isDone: false, clean: [], unreachable: [], missing: [`the API server does not answer: ${error.message}`] };
  }
};

const all = async <T extends KubeObject>(
  client: AwaitCleanDeps['client'],
  resource: Resource,
  namespace: string | undefined,
): Promise<T[]> => {
  const items: T[] = [];
  for await (const page of client.list<T>(resource, { namespace })) items.push(...page.items);
  return items;
};

const linesOf = ({ clean, unreachable, missing }: Nodes): string[] => [
  `nodes that are clean: ${clean.length}`,
  ...unreachable.map((node) => `${node} is not ready and is passed over: a reboot takes off what is there`),
  ...missing,
];
