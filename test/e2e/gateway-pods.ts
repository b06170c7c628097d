/**
 * A pod under the watched policy on each gateway node: the promises hold for them as for pods on workers, and what carries their
 * connections is different. The node of such a pod translates itself while it has the EIP, and sends through the tunnel while it has not.
 */
import { addresses, ports } from '../../lab/cluster/shape.ts';
import type { FlowKind } from '../../lab/inside/flow.ts';
import type { RunningFlow, RunningStream } from '../../lab/inside/pod-client.ts';
import type { EgressWorld, Pair, Way } from './egress-world.ts';

/** The pod on a gateway node. */
export const podOn = (node: string): string => `on-${node}`;

/** Each of them asks over two ways that together have both families and both transports. */
const asked: readonly (readonly Way[])[] = [
  [
    { transport: 'tcp', family: 4 },
    { transport: 'udp', family: 6 },
  ],
  [
    { transport: 'udp', family: 4 },
    { transport: 'tcp', family: 6 },
  ],
];
const kept: readonly (readonly [FlowKind, number])[] = [
  ['ping-pong', ports.tcp],
  ['download', ports.flows],
  ['udp', ports.udp],
];
const hosts = [addresses.outside.ipv4, addresses.outside.ipv6];

export class GatewayPods {
  readonly #egress: EgressWorld;
  readonly #nodes: readonly string[];

  constructor(egress: EgressWorld) {
    this.#egress = egress;
    this.#nodes = egress.lab.status.nodes.filter(({ gateway }) => gateway).map(({ name }) => name);
  }

  /** How many there are. */
  get size(): number {
    return this.#nodes.length;
  }

  /** Makes the pods; or finds them again, as one has other addresses after its node has booted. */
  async meet(): Promise<void> {
    const labels = { team: 'shop' };
    const pods = this.#nodes.map((node) => ({ name: podOn(node), namespace: 'shop', node, labels }));
    await this.#egress.clients(...pods);
  }

  /** New connections all the time, from the pods on these nodes. */
  async startStreams(
    nodes: readonly string[],
    options: { readonly limitMs: number; readonly everyMs: number },
  ): Promise<{ name: string; stream: RunningStream }[]> {
    const { limitMs, everyMs } = options;
    const all = nodes.flatMap((node) =>
      (asked[this.#nodes.indexOf(node) % asked.length] ?? []).map((way) => ({ node, way })),
    );
    return Promise.all(
      all.map(async ({ node, way }) => {
        const question = this.#egress.question(way, { limitMs });
        const stream = await this.#egress.client(podOn(node)).stream(question, { everyMs, isKept: false });
        return { name: `${way.transport}${way.family} on ${node}`, stream };
      }),
    );
  }

  /** One connection of each kind over each family, from the pods on these nodes. */
  async startFlows(nodes: readonly string[], everyMs: number): Promise<{ place: string; flow: RunningFlow }[]> {
    const all = nodes.flatMap((node) =>
      hosts.flatMap((host) => kept.map(([kind, port]) => ({ node, host, kind, port }))),
    );
    return Promise.all(
      all.map(async ({ node, host, kind, port }) => ({
        place: ` on ${node}`,
        flow: await this.#egress.client(podOn(node)).flow({ kind, host, port, everyMs }),
      })),
    );
  }

  /** The gateway nodes whose pods run, each seen with the EIP. Without an API server nobody starts those of a node that has booted. */
  async living(expected: Pair): Promise<readonly string[]> {
    const found: string[] = [];
    for (const node of this.#nodes) {
      const isRunning = await this.#egress.sources(podOn(node)).then(
        () => true,
        () => false,
      );
      if (!isRunning) continue;
      await this.#egress.untilSource(podOn(node), expected);
      found.push(node);
    }
    return found;
  }
}
