/**
 * A lab in which a gateway node can be lost while everything is watched: clients that open new connections all the time,
 * clients with connections of every kind that they keep, and an observer at the router who sees which node has the EIP.
 */
import assert from 'node:assert/strict';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { stopPart } from '../../lab/faults/processes.ts';
import { until } from '../../lab/host/wait.ts';
import type { FlowReport } from '../../lab/inside/flow.ts';
import type { RunningFlow, RunningStream } from '../../lab/inside/pod-client.ts';
import type { Lab } from '../../lab/lab.ts';
import { Observer } from '../../lab/observer/observer.ts';
import { EgressWorld, eip, type Way, type WorldOptions, ways } from './egress-world.ts';
import { GatewayPods } from './gateway-pods.ts';

/** The EIP of everything that is watched. */
export const watched = eip(100);
export const policyKey = 'shop/all';
const pools = { ipv4: ['10.77.0.100-10.77.0.109'], ipv6: ['fd77::100-fd77::109'] };
const askEveryMs = 20;
// Each gateway node adds its own, and a machine has few cores.
const gatewayEveryMs = 40;
// A connection whose first packet is lost is tried again by the kernel after a second: one answered later was lost.
const lateMs = 900;
const flowEveryMs = 20;
// Successors hear of a connection some ten milliseconds after it begins, and on a busy machine later: it may be lost until then. Of UDP
// they hear after two seconds (docs/explanation/failover.md), and a port that clashes with one of the questions is changed.
const establishedMs = 3_000;
const eips = [watched.ipv4, watched.ipv6];

/** An outage as one kind of new connections suffered it. */
export interface Suffered {
  readonly way: string;
  /** All times in which questions failed, together; zero if none did. */
  readonly outageMs: number;
  readonly failed: number;
  /** Each of them: when it began, counted from what was done, and how long it was. */
  readonly outages: readonly { readonly afterMs: number; readonly ms: number }[];
}

/** What was seen of one thing that was done. */
export interface Trial {
  /** New connections, over TCP and UDP, IPv4 and IPv6. */
  readonly suffered: readonly Suffered[];
  /** All connections that were open before, each as it was at the end. */
  readonly flows: readonly FlowOutcome[];
  /** Hand-overs of the EIPs as seen at the router: IPv4 and IPv6. */
  readonly handOvers: readonly { readonly to: string; readonly afterMs: number; readonly mixedMs: number }[];
}

export interface FlowOutcome {
  readonly kind: string;
  readonly isKept: boolean;
  readonly gapMs: number;
  readonly why: string;
}

/** A trial in short: questions that failed, flows that were cut off and why, and whom the EIPs went to. */
export const told = ({ suffered, flows, handOvers }: Trial) => ({
  failed: suffered.reduce((sum, { failed }) => sum + failed, 0),
  lost: flows.filter(({ isKept }) => !isKept).map(({ kind, why }) => `${kind}: ${why}`),
  handOvers: handOvers.map(({ to }) => to),
});

export class FailoverWorld {
  readonly egress: EgressWorld;
  readonly observer: Observer;
  readonly #gatewayPods: GatewayPods;
  readonly #nodeByMac = new Map<string, string>();
  // One of its own for each trial: those of the last one may still be remembered as closing. No system chooses these.
  #localPort = 20_000;
  #hasApi = true;

  private constructor(egress: EgressWorld) {
    this.egress = egress;
    this.observer = new Observer(egress.lab);
    this.#gatewayPods = new GatewayPods(egress);
  }

  get lab(): Lab {
    return this.egress.lab;
  }

  /** A lab with a policy and its clients: two on a worker, so that their ports can clash, one on another, and one on each gateway node. */
  static async start(name: string, options: WorldOptions = {}): Promise<FailoverWorld> {
    const egress = await EgressWorld.start(name, options);
    try {
      const labels = { team: 'shop' };
      await egress.clients(
        ...['one', 'two'].map((client) => ({ name: client, namespace: 'shop', node: 'worker-1', labels })),
        { name: 'three', namespace: 'shop', node: 'worker-2', labels },
      );
      await egress.gateway('main', pools);
      await egress.policy(policyKey, {
        egressGatewayName: 'main',
        egressIP: watched,
        appliedTo: { podSelector: { matchLabels: labels } },
      });
      await egress.untilPolicy(policyKey, 'Programmed', 'True');
      for (const client of ['one', 'two', 'three']) await egress.untilSource(client, watched);
      const world = new FailoverWorld(egress);
      await world.#gatewayPods.meet();
      await world.meetNodes();
      await world.untilElected();
      await egress.lab.resetCounts();
      return world;
    } catch (error) {
      await egress.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.observer.stop();
    await this.egress.stop();
  }

  /** The node that the outside believes to have the EIP, by the last frame it saw. */
  async owner(): Promise<string> {
    await this.egress.untilSource('three', watched);
    const seen = eips.map((ip) => this.nodeOf(this.observer.spells(ip).at(-1)?.mac ?? 'nobody'));
    assert.equal(seen[0], seen[1], 'both families of a pair are on one node');
    return seen[0] ?? '';
  }

  /** Learns the MAC addresses of the nodes; a node of the lab has another one when it has booted. May be called again. */
  async meetNodes(): Promise<void> {
    for (const { name } of this.lab.status.nodes) {
      this.#nodeByMac.set((await this.lab.exec(name, ['cat', '/sys/class/net/eth0/address'])).trim(), name);
    }
  }

  nodeOf(mac: string): string {
    return this.#nodeByMac.get(mac) ?? mac;
  }

  /**
   * Does something while everything is watched, and returns what was seen. `settled` is asked until it says that what was done
   * has had its effect; then new connections have to be answered for a second and every flow to be heard, or be dead. Pods on the
   * node `without` take no part: nothing is promised to those of a node that has lost its power or all its ways.
   */
  async during(
    act: () => Promise<void>,
    settled: (sinceMs: number) => boolean | Promise<boolean>,
    { without }: { readonly without?: string | undefined } = {},
  ): Promise<Trial> {
    const gateways = (await this.meetGatewayPods()).filter((node) => node !== without);
    const streams = await this.#startStreams(gateways);
    const flows = await this.#startFlows(gateways);
    const startedAtMs = Date.now();
    try {
      await act();
      await until({ what: 'the effect', limitMs: 60_000, everyMs: 20 }, () => settled(startedAtMs));
      const settledAtMs = Date.now();
      await until({ what: 'new connections to be answered again', limitMs: 60_000, everyMs: 100 }, async () => {
        const tallies = await Promise.all(streams.map(({ stream }) => stream.tally()));
        return tallies.every(({ lastAskedAtMs = 0 }) => lastAskedAtMs > settledAtMs + lateMs + askEveryMs);
      });
      const reports = await Promise.all(flows.map(({ flow }) => ended(flow, settledAtMs)));
      const suffered: Suffered[] = [];
      for (const { stream, name } of streams) suffered.push(sufferedIn(name, await stream.stop(), startedAtMs));
      return {
        suffered,
        flows: reports.map((report, index) => outcomeOf(report, flows[index]?.place ?? '', settledAtMs)),
        handOvers: this.handOversSince(startedAtMs),
      };
    } catch (error) {
      for (const { stream } of streams) await stream.stop().catch(() => {});
      for (const { flow } of flows) await flow.stop().catch(() => {});
      throw error;
    }
  }

  /** The hand-overs of the EIPs since a time, as they are told. */
  handOversSince(sinceMs: number): Trial['handOvers'] {
    return eips.flatMap((ip) =>
      this.observer
        .handOvers(ip, sinceMs)
        .map(({ to, atMs, mixedMs }) => ({ to: this.nodeOf(to), afterMs: atMs - sinceMs, mixedMs })),
    );
  }

  /** Whether both EIPs are used by another node than the given one, as the router sees it. */
  hasLeft(node: string, sinceMs: number): boolean {
    return eips.every((ip) => {
      const last = this.observer.spells(ip).at(-1);
      return last !== undefined && last.toMs > sinceMs && this.nodeOf(last.mac) !== node;
    });
  }

  /** Waits until the pods on gateway nodes run again and leave with the EIP, as far as it can be; the nodes of those that do. */
  async meetGatewayPods(): Promise<readonly string[]> {
    const living = await this.#gatewayPods.living(watched);
    if (!this.#hasApi || living.length === this.#gatewayPods.size) return living;
    await this.#gatewayPods.meet();
    return this.#gatewayPods.living(watched);
  }

  /** New connections over both families all the time, also from pods on these gateway nodes; and how many of them have failed so far. */
  async startAsking(
    gateways: readonly string[] = [],
  ): Promise<{ failed: () => Promise<number>; stop: () => Promise<void> }> {
    const onGateways = await this.startGatewayStreams(gateways);
    const streams = onGateways.map(({ stream }) => stream);
    for (const family of [4, 6] as const) {
      const question = this.egress.question({ transport: 'tcp', family }, { limitMs: lateMs });
      streams.push(await this.egress.client('three').stream(question, { everyMs: askEveryMs, isKept: false }));
    }
    const tallies = () => Promise.all(streams.map((stream) => stream.tally()));
    await until({ what: 'answers', limitMs: 10_000 }, async () =>
      (await tallies()).every(({ lastAskedAtMs }) => lastAskedAtMs !== undefined),
    );
    return {
      failed: async () =>
        (await tallies()).flatMap(({ outages }) => outages).reduce((sum, { failed }) => sum + failed, 0),
      stop: async () => void (await Promise.all(streams.map((stream) => stream.stop()))),
    };
  }

  /** Kills the API server; until `startApi` nothing waits for what only it could tell. */
  async stopApi(): Promise<void> {
    await stopPart(this.lab, 'kube-apiserver');
    this.#hasApi = false;
  }

  async startApi(): Promise<void> {
    await this.lab.restart('kube-apiserver');
    this.#hasApi = true;
    await this.untilAgentsReady();
    await this.untilTunnelsReady();
  }

  /** Changes which nodes the gateway selects. */
  select(labels: Readonly<Record<string, string>>): Promise<void> {
    return this.egress.gateway('main', pools, labels);
  }

  /** Changes a label of a node: `name=value`, or `name-` to take it away. */
  async label(node: string, change: string): Promise<void> {
    await this.lab.kubectl(['label', 'node', node, change, '--overwrite']);
  }

  /** Waits until a node that was lost takes part again, as far as it can be seen. */
  async untilBack(node: string): Promise<void> {
    const others = this.lab.status.nodes.filter(({ name }) => name !== node);
    const { ipv4 } = this.egress.node(node);
    for (const { name } of others) {
      const wait = { what: `${name} to reach ${node}`, limitMs: 30_000 };
      await until(wait, async () => {
        await this.lab.exec(name, ['ping', '-c', '1', '-W', '1', ipv4]);
        return true;
      });
    }
    if (this.#hasApi) await this.untilTunnelsReady();
  }

  /** Waits until the controller takes all nodes for well. */
  async untilTunnelsReady(): Promise<void> {
    let seen = '';
    await until({ what: 'all tunnels to be Ready', limitMs: 60_000, everyMs: 200, explain: () => seen }, async () => {
      const path = 'jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}';
      seen = await this.lab.kubectl(['get', 'egresstunnels', '-o', path, '--request-timeout=5s']);
      const phases = seen.trim().split(' ');
      return phases.length === this.lab.status.nodes.length && phases.every((phase) => phase.endsWith('=Ready'));
    });
  }

  /** Waits until three nodes vote on owners, and all of them know it. */
  async untilElected(): Promise<void> {
    let seen = '';
    await until({ what: 'an electorate', limitMs: 60_000, everyMs: 300, explain: () => seen }, async () => {
      const inForce = 'jsonpath={.status.electorate}';
      const wanted = await this.lab.kubectl(['get', 'egressclusterinfo', 'default', '-o', inForce]);
      const reported = 'jsonpath={range .items[*]}{.metadata.name} {.status.report.electorate}{"\\n"}{end}';
      seen = `${wanted}\n${await this.lab.kubectl(['get', 'egresstunnels', '-o', reported])}`;
      // The API server has checked it against the schema of the kind.
      const { voters } = JSON.parse(wanted) as { voters: readonly string[] };
      return voters.length === 3 && voters.every((voter) => seen.includes(`${voter} ${wanted}`));
    });
  }

  /** Waits until all agents are there and ready. */
  async untilAgentsReady(): Promise<void> {
    const wait = { what: 'the agents to be ready', limitMs: 90_000, everyMs: 500 };
    await until(wait, async () => {
      await this.lab.kubectl(['-n', 'sallyport', 'rollout', 'status', 'daemonset', '--timeout=5s']);
      return true;
    });
  }

  /** New connections all the time, from pods on these gateway nodes. */
  startGatewayStreams(gateways: readonly string[]): Promise<{ name: string; stream: RunningStream }[]> {
    return this.#gatewayPods.startStreams(gateways, { limitMs: lateMs, everyMs: gatewayEveryMs });
  }

  /** Connections that are kept, of each kind over each family, from pods on these gateway nodes. */
  startGatewayFlows(gateways: readonly string[]): Promise<PlacedFlow[]> {
    return this.#gatewayPods.startFlows(gateways, gatewayEveryMs);
  }

  async #startStreams(gateways: readonly string[]): Promise<{ name: string; stream: RunningStream }[]> {
    const streams = await this.startGatewayStreams(gateways);
    for (const way of ways) {
      const question = this.egress.question(way, { limitMs: lateMs });
      const stream = await this.egress.client('three').stream(question, { everyMs: askEveryMs, isKept: false });
      streams.push({ name: nameOf(way), stream });
    }
    await until({ what: 'streams to be answered', limitMs: 10_000 }, async () => {
      const tallies = await Promise.all(streams.map(({ stream }) => stream.tally()));
      return tallies.every(({ lastAskedAtMs }) => lastAskedAtMs !== undefined);
    });
    return streams;
  }

  /** One connection of each kind over each family, and two with the same port, of which the gateway remaps one; and from gateway nodes. */
  async #startFlows(gateways: readonly string[]): Promise<PlacedFlow[]> {
    const flows: PlacedFlow[] = await this.startGatewayFlows(gateways);
    this.#localPort += 1;
    const clash = { localPort: this.#localPort };
    for (const host of [addresses.outside.ipv4, addresses.outside.ipv6]) {
      const open = async (client: string, kind: FlowReport['kind'], port: number, more: object = {}) => {
        const flow = await this.egress.client(client).flow({ kind, host, port, everyMs: flowEveryMs, ...more });
        flows.push({ place: '', flow });
      };
      await Promise.all([
        open('one', 'ping-pong', ports.tcp, clash),
        open('two', 'ping-pong', ports.tcp, clash),
        open('one', 'upload', ports.flows),
        open('two', 'download', ports.flows),
        open('one', 'udp', ports.udp),
      ]);
    }
    const openedAtMs = Date.now();
    await until({ what: 'every flow to be in use for a while', limitMs: 10_000 }, async () => {
      const reports = await Promise.all(flows.map(({ flow }) => flow.report()));
      return reports.every(({ kind, lastHeardAtMs = 0, localPort }) =>
        kind === 'upload' ? localPort > 0 : lastHeardAtMs > openedAtMs + establishedMs,
      );
    });
    return flows;
  }
}

/** A flow, and of pods on gateway nodes where it begins. */
export interface PlacedFlow {
  readonly place: string;
  readonly flow: RunningFlow;
}

const nameOf = ({ transport, family }: Way): string => `${transport}${family}`;

/** Stops a flow when it was heard after the time, or is dead, or has had long enough for either. */
async function ended(flow: RunningFlow, afterMs: number): Promise<FlowReport> {
  const isOver = async () => {
    const { kind, failure, lastHeardAtMs = 0 } = await flow.report();
    return kind === 'upload' || failure !== undefined || lastHeardAtMs > afterMs;
  };
  await until({ what: 'a flow to be heard', limitMs: 5_000, everyMs: 100 }, isOver).catch(() => {});
  return flow.stop();
}

function outcomeOf(report: FlowReport, place: string, settledAtMs: number): FlowOutcome {
  const { kind, host, localPort, seenAs, longestGap, lastHeardAtMs = 0, failure } = report;
  const isRemapped = seenAs.some((place) => !place.endsWith(`:${localPort}`));
  const name = `${isRemapped && kind === 'ping-pong' ? 'remapped' : kind}${host.includes(':') ? 6 : 4}${place}`;
  const isHeard = lastHeardAtMs > settledAtMs;
  // One that is seen under two names was cut in two: the second half is another connection to the other end.
  const isKept = failure === undefined && isHeard && seenAs.length <= 1;
  const why = failure ?? (isHeard ? `seen as ${seenAs.join(', then ')}` : 'not heard any more');
  return { kind: name, isKept, gapMs: longestGap.ms, why };
}

function sufferedIn(way: string, tally: Awaited<ReturnType<RunningStream['stop']>>, sinceMs: number): Suffered {
  // What was asked shortly before may have been on its way when it happened.
  const own = tally.outages.filter(({ toMs = Number.POSITIVE_INFINITY }) => toMs >= sinceMs);
  const outages = own.map(({ fromMs, toMs = Date.now() }) => ({ afterMs: fromMs - sinceMs, ms: toMs - fromMs }));
  return {
    way,
    outageMs: outages.reduce((sum, { ms }) => sum + ms, 0),
    failed: own.reduce((sum, { failed }) => sum + failed, 0),
    outages,
  };
}
