/** Policies with an EIP each, created together, and what became of them. */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { until } from '../../lab/host/wait.ts';
import type { Lab } from '../../lab/lab.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { createKubeClient } from '../../src/runtime/kube/http-client.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';
import { systemClock } from '../../src/runtime/process/clock.ts';
import { type AgentCost, costOfAgents, type Work, workOf } from './cost.ts';

/** What became of a round. */
export interface Burst {
  readonly count: number;
  readonly load: number;
  /** From the first call until the last one was answered, and until every status said Programmed. */
  readonly createdMs: number;
  readonly doneMs: number;
  /** EIPs that had more than one owner, and EIPs that just the recorded node answers for; when everybody had rested for a while. */
  readonly moved: number;
  readonly exact: number;
  /** From the first call until the end of the rest. */
  readonly work: Work;
  readonly agents: readonly AgentCost[];
}

/** Calls that are under way at the same time, as with one pipeline. */
const width = 16;
const limitMs = 300_000;
/** How long is looked at what goes on when all is done: moves that make load, and load that makes moves. */
export const restSeconds = 30;

const policies = resourceOf('EgressPolicy');
const namespace = 'default';

export class Crowd {
  readonly #lab: Lab;
  readonly #kube: KubeClient;
  #round = 0;

  private constructor(lab: Lab, kube: KubeClient) {
    this.#lab = lab;
    this.#kube = kube;
  }

  static async open(lab: Lab): Promise<Crowd> {
    const access = await loadAccess({ path: lab.kubeconfig });
    const rateLimit = { perSecond: 1_000, burst: 1_000 };
    const kube = createKubeClient({ access, userAgent: 'bench', clock: systemClock, random: Math.random, rateLimit });
    await lab.apply(gateway);
    return new Crowd(lab, kube);
  }

  /** Creates as many policies, waits until all are in force and for a rest, looks, and takes them away. */
  async burst(count: number): Promise<Burst> {
    this.#round += 1;
    const names = Array.from({ length: count }, (_, index) => `many-${this.#round}-${index}`);
    const [before, costBefore] = [await workOf(this.#lab), costOfAgents(this.#lab)];
    const startedAtMs = performance.now();
    await inParallel(names, (name) => this.#kube.create(policies, policyOf(name)));
    const createdMs = performance.now() - startedAtMs;
    let left = count;
    const wait = { what: `${count} policies in force`, limitMs, everyMs: 250, explain: () => `${left} are not` };
    await until(wait, async () => {
      left = count - (await this.#shown()).filter(isProgrammed).length;
      return left === 0;
    });
    const doneMs = performance.now() - startedAtMs;
    const costDone = costOfAgents(this.#lab);
    await sleep(restSeconds * 1_000);
    const costRested = costOfAgents(this.#lab);
    const [work, shown] = [await workOf(this.#lab), await this.#shown()];
    const burst: Burst = {
      ...{ count, createdMs, doneMs },
      load: loadavg()[0] ?? 0,
      moved: shown.filter(({ status }) => (status?.epoch ?? 0) > 1).length,
      exact: await this.#exact(shown),
      work: work.since(before),
      agents: costRested.map(({ node, cpuSeconds, rssMb }, index) => {
        const [first, done] = [costBefore[index]?.cpuSeconds ?? 0, costDone[index]?.cpuSeconds ?? 0];
        return { node, cpuSeconds: done - first, restPercent: (100 * (cpuSeconds - done)) / restSeconds, rssMb };
      }),
    };
    await inParallel(names, (name) => this.#kube.delete(policies, { namespace, name }));
    await until({ what: 'no EIP in a kernel', limitMs, everyMs: 1_000 }, async () => (await this.#held()).size === 0);
    return burst;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kube.close();
  }

  async #shown(): Promise<Shown[]> {
    const all: Shown[] = [];
    for await (const { items } of this.#kube.list<Shown>(policies)) all.push(...items);
    return all;
  }

  /** How many EIPs are answered for by the node that their policy records, and by no other. */
  async #exact(shown: readonly Shown[]): Promise<number> {
    const held = await this.#held();
    return shown.filter(({ status }) => {
      const nodes = held.get(status?.eip?.ipv4 ?? '') ?? [];
      return nodes.length === 1 && nodes[0] === status?.node;
    }).length;
  }

  /** EIP -> the nodes whose kernels answer for it. */
  async #held(): Promise<ReadonlyMap<string, readonly string[]>> {
    const held = new Map<string, string[]>();
    for (const { name, gateway: isGateway } of this.#lab.status.nodes) {
      if (!isGateway) continue;
      const text = await this.#lab.exec(name, ['nft', '-j', 'list', 'set', 'arp', 'sallyport', 'held']);
      const { nftables } = listing.parse(JSON.parse(text));
      for (const { elem } of nftables.flatMap(({ set }) => set?.elem ?? [])) {
        held.set(elem.val, [...(held.get(elem.val) ?? []), name]);
      }
    }
    return held;
  }
}

type Condition = { readonly type: string; readonly status: string };
type Shown = KubeObject & {
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly eip?: { readonly ipv4?: string };
    readonly node?: string;
    readonly epoch?: number;
  };
};
const isProgrammed = ({ status }: Shown): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Programmed' && is === 'True') === true;

const listing = z.object({
  nftables: z.array(
    z.object({
      set: z.object({ elem: z.array(z.object({ elem: z.object({ val: z.string() }) })).default([]) }).optional(),
    }),
  ),
});

async function inParallel<T>(list: readonly T[], act: (one: T) => Promise<unknown>): Promise<void> {
  const rest = list.values();
  const worker = async (): Promise<void> => {
    for (const one of rest) await act(one);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** Nobody outside asks for them, so that they need not be in the network of the nodes. */
const gateway = {
  apiVersion: 'egressgateway.spidernet.io/v1beta1',
  kind: 'EgressGateway',
  metadata: { name: 'many' },
  spec: {
    ippools: { ipv4: ['10.78.0.1-10.78.7.208'], ipv6: ['fd78::1-fd78::7d0'] },
    nodeSelector: { selector: { matchLabels: { egress: 'true' } } },
  },
};

const policyOf = (name: string) => ({
  metadata: { name, namespace },
  spec: {
    egressGatewayName: 'many',
    egressIP: { allocatorPolicy: 'rr' },
    appliedTo: { podSelector: { matchLabels: { crowd: name } } },
  },
});
