/**
 * A crowd of policies of a gateway of their own. They are about no pod that runs, so that what they cost others can be
 * measured; every kernel has to hold the slot of each of them all the same.
 */
import { until } from '../../lab/host/wait.ts';
import type { Lab } from '../../lab/lab.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';
import { Slots } from './slots.ts';

/** Calls that are under way at the same time: as many as many users, or one pipeline, would have. */
const width = 16;
const limitMs = 180_000;

/** Creates policies up to a number and returns when every kernel holds them all, and how long that took. */
export async function growCrowd(lab: Lab, kube: KubeClient, from: number, to: number): Promise<CrowdTimes> {
  const policies = resourceOf('EgressPolicy');
  const slots = new Slots(lab);
  try {
    await slots.open();
    const startedAtMs = performance.now();
    let next = from;
    const worker = async (): Promise<void> => {
      while (next < to) {
        next += 1;
        await kube.create(policies, policy(next));
      }
    };
    await Promise.all(Array.from({ length: width }, worker));
    const createdMs = performance.now() - startedAtMs;
    return { createdMs, inKernelsMs: (await slots.reach(to, limitMs)) - startedAtMs };
  } finally {
    await slots.close();
  }
}

/** Waits until every status says that the kernels are in step: what is measured then is beside the crowd, not its arrival. */
export async function untilCrowdIsQuiet(kube: KubeClient): Promise<void> {
  let waiting = 0;
  const wait = { what: 'every policy to be Programmed', limitMs, everyMs: 1_000, explain: () => `${waiting} are not` };
  await until(wait, async () => {
    waiting = 0;
    for await (const { items } of kube.list<Shown>(resourceOf('EgressPolicy'))) {
      waiting += items.filter(({ status }) => !status?.conditions?.some(isInStep)).length;
    }
    return waiting === 0;
  });
}

type Condition = { readonly type: string; readonly status: string };
type Shown = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };
const isInStep = ({ type, status }: Condition): boolean => type === 'Programmed' && status === 'True';

export interface CrowdTimes {
  /** From the first call until the last one was answered. */
  readonly createdMs: number;
  /** From the first call until the last kernel held the last policy. */
  readonly inKernelsMs: number;
}

function policy(number: number) {
  return {
    metadata: { name: `crowd-${number}`, namespace: 'default' },
    spec: {
      egressGatewayName: 'crowd',
      egressIP: { allocatorPolicy: 'rr' },
      appliedTo: { podSelector: { matchLabels: { crowd: String(number) } } },
    },
  };
}
