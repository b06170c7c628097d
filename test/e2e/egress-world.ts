/**
 * A lab with the chart installed, clients in pods, and a way to say: this pod, asking that server, must leave with this
 * address. Every packet that reaches the outside is counted by its source address in the kernel of the outside, so a
 * single packet with a foreign source is seen, also when nothing answers it.
 */
import assert from 'node:assert/strict';
import { addresses, type Family, ports } from '../../lab/cluster/shape.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import type { Question } from '../../lab/inside/client.ts';
import { type ClientPod, type PodClient, startClients } from '../../lab/inside/pod-client.ts';
import { install } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';

const apiVersion = 'egressgateway.spidernet.io/v1beta1';

/** Where and how to ask. */
export interface Way {
  readonly transport: 'tcp' | 'udp';
  readonly family: 4 | 6;
}

/** All four ways. */
export const ways: readonly Way[] = (['tcp', 'udp'] as const).flatMap((transport) =>
  ([4, 6] as const).map((family) => ({ transport, family })),
);

/** What is asked, where it is not one byte to the outside server over every way. */
export interface Asking {
  readonly to?: Pair;
  readonly ways?: readonly Way[];
  readonly bytes?: number;
}

/** What a world is, where it is not as usual. */
export interface WorldOptions {
  readonly gateways?: number;
  readonly workers?: number;
  readonly families?: readonly Family[];
  /** Values of the chart, as helm's --set takes them. */
  readonly set?: readonly string[];
}

/** Addresses by family. */
export interface Pair {
  readonly ipv4: string;
  readonly ipv6: string;
}

/** How long an answer that must come may take: a datagram that is lost is never sent again, however long one waits. */
export const patientMs = 10_000;

/** The EIP number N of the lab: the same digits in both families. */
export const eip = (number: number): Pair => ({ ipv4: `10.77.0.${number}`, ipv6: `fd77::${number}` });

const ofFamily = (pair: Pair, family: 4 | 6): string => (family === 4 ? pair.ipv4 : pair.ipv6);

export class EgressWorld {
  readonly lab: Lab;
  readonly #clients = new Map<string, PodClient>();

  private constructor(lab: Lab) {
    this.lab = lab;
  }

  /**
   * A lab with the chart installed: two gateways and two workers, of which worker-2 has kube-proxy with iptables, dual
   * stack; unless something else is asked for.
   */
  static async start(name: string, options: WorldOptions = {}): Promise<EgressWorld> {
    const { families = ['ipv4', 'ipv6'], set: more = [], ...shape } = options;
    const lab = await startLab({ name, families, proxyModeByNode: new Map([['worker-2', 'iptables']]), ...shape });
    try {
      const set = [
        `config.feature.enableIPv4=${families.includes('ipv4')}`,
        `config.feature.enableIPv6=${families.includes('ipv6')}`,
        ...more,
      ];
      await install({ instance: instanceOf(name), programs: lab.programs, set, progress: silent });
      return new EgressWorld(lab);
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  /** The ways that the families of the lab leave. */
  get #ways(): readonly Way[] {
    const { families } = this.lab.status;
    return ways.filter(({ family }) => families.includes(family === 4 ? 'ipv4' : 'ipv6'));
  }

  stop(): Promise<void> {
    return this.lab.down();
  }

  /** Makes client pods in namespaces that are made too, and remembers them by name. */
  async clients(...pods: readonly ClientPod[]): Promise<void> {
    const namespaces = new Set(pods.map(({ namespace }) => namespace));
    await this.lab.apply(
      ...[...namespaces].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { name } } })),
    );
    for (const client of await startClients(this.lab, pods)) this.#clients.set(client.pod.name, client);
  }

  client(name: string): PodClient {
    const client = this.#clients.get(name);
    assert.ok(client, `client ${name}`);
    return client;
  }

  /** The addresses of a node. */
  node(name: string): Pair {
    const node = this.lab.status.nodes.find((candidate) => candidate.name === name);
    assert.ok(node, `node ${name}`);
    return node;
  }

  /** Creates or changes a gateway on the nodes with the given labels. */
  async gateway(name: string, pools: { ipv4?: string[]; ipv6?: string[] }, labels: object = { egress: 'true' }) {
    const spec = { ippools: pools, nodeSelector: { selector: { matchLabels: labels } } };
    await this.lab.apply({ apiVersion, kind: 'EgressGateway', metadata: { name }, spec });
  }

  /**
   * Creates or changes a policy: `namespace/name`, or `name` for a cluster policy. Tried again for a while, as people do:
   * changes are refused until a controller answers admission reviews again after the API server was away.
   */
  async policy(key: string, spec: object): Promise<void> {
    const wait = { what: `policy ${key} to be taken`, limitMs: 30_000, everyMs: 200 };
    await until(wait, async () => {
      await this.lab.apply({ apiVersion, ...this.#reference(key), spec });
      return true;
    });
  }

  /** Deletes policies and returns when they are gone. */
  async deletePolicies(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const { kind, metadata } = this.#reference(key);
      const scope = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
      await this.lab.kubectl([...scope, 'delete', kind, metadata.name, '--timeout=180s']);
    }
  }

  /** Waits until a condition of a policy has a status; the message shows what it was instead. */
  async untilPolicy(key: string, type: string, status: string): Promise<void> {
    let seen: unknown;
    const what = `policy ${key} to be ${type}=${status}`;
    await until({ what, limitMs: 30_000, explain: () => JSON.stringify(seen) }, async () => {
      const object = await this.policyStatus(key);
      seen = object;
      return object.conditions?.some((condition) => condition.type === type && condition.status === status);
    });
  }

  /** The status of a policy as served. */
  async policyStatus(key: string): Promise<PolicyStatus> {
    const { kind, metadata } = this.#reference(key);
    const scope = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
    const text = await this.lab.kubectl([...scope, 'get', kind, metadata.name, '-o', 'json']);
    // The server has checked it against the schema of the kind.
    return (JSON.parse(text) as { status?: PolicyStatus }).status ?? {};
  }

  question({ transport, family }: Way, options: { to?: Pair; limitMs?: number; bytes?: number } = {}): Question {
    const { to = addresses.outside, limitMs = 1_000, ...rest } = options;
    return { transport, host: ofFamily(to, family), port: ports[transport], limitMs, ...rest };
  }

  /** Waits until a client is seen with the address of the pair, over all ways, and each of them says so. */
  async untilSource(client: string, expected: Pair, options: Asking = {}): Promise<void> {
    for (const way of options.ways ?? this.#ways) {
      const promised = ofFamily(expected, way.family);
      let seen = '';
      const what = `pod ${client} to leave with ${promised} (${way.transport} IPv${way.family})`;
      await until({ what, limitMs: 30_000, explain: () => `last seen: ${seen}` }, async () => {
        seen = await this.client(client).source(this.question(way, options));
        return seen === promised;
      });
    }
  }

  /** Asks once over every way, now; a failure is shown as its text in brackets. Who expects answers gives them more time. */
  async sources(client: string, options: Asking & { readonly limitMs?: number } = {}): Promise<string[]> {
    const asked = (options.ways ?? this.#ways).map((way) => this.client(client).source(this.question(way, options)));
    return Promise.all(asked);
  }

  /** Runs a program in the pod of a client, whatever its exit code. */
  inPod(client: string, ...argv: readonly string[]) {
    const { namespace, name } = this.client(client).pod;
    return this.lab.tryKubectl(['-n', namespace, 'exec', name, '--', ...argv]);
  }

  /** Source addresses that reached the outside since the last reset, without those of the given pairs and the fabric. */
  async strangers(...known: readonly Pair[]): Promise<string[]> {
    return strangersIn(await this.lab.packets(), known);
  }

  /** The same of questions only: gateway nodes send ICMP messages of their own when an EIP leaves them. */
  async strangersAsking(...known: readonly Pair[]): Promise<string[]> {
    const asked = [ports.tcp, ports.udp, ports.flows];
    const questions = (await this.lab.packets()).filter(({ port }) => asked.some((one) => one === port));
    return strangersIn(questions, known);
  }

  #reference(key: string): { kind: string; metadata: { name: string; namespace?: string } } {
    const [first = '', second] = key.split('/');
    return second === undefined
      ? { kind: 'EgressClusterPolicy', metadata: { name: first } }
      : { kind: 'EgressPolicy', metadata: { namespace: first, name: second } };
  }
}

const strangersIn = (counts: readonly { readonly source: string }[], known: readonly Pair[]): string[] => {
  const expected = [addresses.controlPlane, addresses.router, ...known].flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
  const strangers = new Set(counts.map(({ source }) => source)).difference(new Set(expected));
  // Link-local sources are neighbours that look for each other; they cannot be routed.
  return [...strangers].filter((address) => !address.startsWith('fe80:')).toSorted();
};

/** What tests look at in the status of a policy. */
export interface PolicyStatus {
  readonly eip?: Partial<Pair>;
  readonly node?: string;
  readonly slot?: number;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
}
