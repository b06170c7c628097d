/**
 * Reporter writes what the node has come to into the status of its EgressTunnel: which interface carries the tunnel, up
 * to which versions of policies the kernel is in step, which EIPs it holds, what could not be done, and that the agent
 * is alive. The controller reads it; nothing on the node waits for it.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { resourceOf } from '../../api/kinds.ts';
import type { EipConflict, Electorate } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { ParentView } from '../../core/node/input.ts';
import { ApiError, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { ServedGroup } from '../failover/record.ts';
import type { Revisions } from '../inputs/gather.ts';
import type { Outcome } from '../reconcile/node-reconciler.ts';

/** The part of the status that the agent owns, without the heartbeat. */
export type AgentReport = Required<Pick<EgressTunnelStatus, 'tunnel' | 'report'>>;
type NodeReport = NonNullable<EgressTunnelStatus['report']>;

/** What a reporter needs. */
export interface ReporterDeps {
  readonly node: string;
  readonly client: Pick<KubeClient, 'applyStatus'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Between two signs of life. */
  readonly heartbeatMs: () => number;
  /** The versions that the kernel reflects at this moment. */
  readonly revisions: () => Revisions;
}

const fieldManager = 'sallyport-agent';
/** Writes are at least this far apart, whatever happens. */
const restMs = 1_000;
/** How long a report waits for EIPs that are about to come: else they would be told a whole rest later. */
const patienceMs = 500;
/** More problems than this are a flood that nobody reads, and the object has to stay small. The rest is counted. */
const mostProblems = 50;

/** The report of one node. Call `set` for every outcome and `run` once. */
export class Reporter {
  readonly #deps: ReporterDeps;
  #wanted: AgentReport | undefined;
  #written: AgentReport | undefined;
  #revisions: Revisions | undefined;
  /** Until when more is awaited; undefined when all is told. */
  #patientUntilMs: number | undefined;
  #wake = new AbortController();

  constructor(deps: ReporterDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a new report, which is written at once if the last write was long enough ago; one that is not settled a moment
   * later, if no other comes before. Nothing happens when it says the same as the last one about the same versions of policies.
   */
  set(report: AgentReport, revisions: Revisions, isSettled: boolean): void {
    const wasSettled = this.#patientUntilMs === undefined;
    if (isSettled) this.#patientUntilMs = undefined;
    else this.#patientUntilMs ??= this.#deps.clock.monotonicMs() + patienceMs;
    const isSame = revisions === this.#revisions && isDeepStrictEqual(report, this.#wanted);
    if (isSame && isSettled === wasSettled) return;
    this.#revisions = revisions;
    if (!isSame) this.#wanted = report;
    this.#wake.abort();
  }

  /** Writes again soon: the EgressTunnel is another object than the one that was written to. */
  repeat(): void {
    this.#written = undefined;
    this.#wake.abort();
  }

  /** Writes until the signal is aborted. Rejects only for bugs. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, heartbeatMs } = this.#deps;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const patientMs = (this.#patientUntilMs ?? 0) - clock.monotonicMs();
      if (patientMs > 0) {
        await wait(clock, patientMs, AbortSignal.any([signal, this.#wake.signal]));
        continue;
      }
      if (this.#wanted !== undefined) {
        await this.#write(this.#wanted, signal);
        await wait(clock, restMs, signal);
        if (this.#wanted !== this.#written) continue;
      }
      await wait(clock, heartbeatMs() - restMs, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  async #write(wanted: AgentReport, signal: AbortSignal): Promise<void> {
    const { node, client, clock, log, revisions } = this.#deps;
    const report = { ...wanted.report, ...appliedOf(revisions()) };
    const object = {
      metadata: { name: node },
      status: { ...wanted, report, lastHeartbeatTime: clock.now().toISOString() },
    };
    try {
      await client.applyStatus(resourceOf('EgressTunnel'), object, {
        fieldManager,
        force: true,
        signal,
        timeoutMs: 5_000,
        retries: 0,
      });
      this.#written = wanted;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      // Without an EgressTunnel there is nobody to report to yet: the controller makes it.
      if (!isNotFound(error))
        log.warn({ component: 'report', reason: error.reason }, `cannot report: ${error.message}`);
    }
  }
}

/** What the agent knows of owning. */
export interface Owning {
  readonly electorate: Electorate | undefined;
  /** The addresses that the gate lets answer; undefined where there is none, and all claims do. */
  readonly opened: ReadonlySet<Ip> | undefined;
  /** The node groups that the node serves. */
  readonly nodeGroups: readonly ServedGroup[];
  /**
   * Whether the node owns EIPs, or did since its agent was started: it may still speak in their name. Any other node that claims one
   * is a foreign machine.
   */
  readonly isGateway: boolean;
  /** EIPs that the node answers for and another machine claims. */
  readonly conflicts: readonly EipConflict[];
  /** After how long the node notices a loss, while that is longer than configured. */
  readonly detectionMs: number | undefined;
}

/** The report of an outcome. An EIP is reported when whoever asks the network for it is answered, and not before. */
export const reportOf = ({ desired, host, problems }: Outcome, owning: Owning): AgentReport => {
  const { electorate, opened, nodeGroups, isGateway, conflicts, detectionMs } = owning;
  const macs = new Set(isGateway ? host?.interfaces.map(({ mac }) => mac) : []);
  const parent = host?.parent;
  // The interface is named when the tunnel device stands on it: that is how the controller knows that it does.
  const hasTunnel = desired?.network.links.some(({ kind }) => kind === 'vxlan') === true;
  return {
    tunnel: hasTunnel && parent !== undefined && 'name' in parent ? { parent: parentStatus(parent) } : {},
    report: {
      eips: (desired?.claims ?? [])
        .filter(({ ip }) => opened === undefined || opened.has(ip))
        .map(({ ip }) => ({ ip, epoch: desired?.epochs.get(ip) ?? 0 })),
      ...(nodeGroups.length === 0 ? {} : { nodeGroups: [...nodeGroups] }),
      ...(electorate === undefined ? {} : { electorate: electorateStatus(electorate) }),
      ...(macs.size === 0 ? {} : { macAddresses: [...macs].sort() }),
      ...(conflicts.length === 0 ? {} : { conflicts: [...conflicts] }),
      ...(detectionMs === undefined ? {} : { detectionMilliseconds: detectionMs }),
      ...problemsStatus(problems),
    },
  };
};

/** Problems of the whole node come first: they concern every policy, and are not to be lost among those of some. */
const problemsStatus = (problems: Outcome['problems']): Pick<NodeReport, 'problems' | 'unlistedProblems'> => {
  const ordered = [
    ...problems.filter(({ policy }) => policy === undefined),
    ...problems.filter(({ policy }) => policy !== undefined),
  ];
  const unlisted = Math.max(0, ordered.length - mostProblems);
  return {
    problems: ordered.slice(0, mostProblems).map(({ finding: { reason, sentence }, policy }) => ({
      reason,
      message: sentence,
      ...(policy === undefined ? {} : { policy }),
    })),
    ...(unlisted === 0 ? {} : { unlistedProblems: unlisted }),
  };
};

const electorateStatus = ({ generation, voters, hasApi }: Electorate) => ({
  generation,
  voters: [...voters],
  apiVotes: hasApi,
});

const parentStatus = ({ name, ipv4, ipv6 }: ParentView) => ({
  name,
  ...(ipv4 === undefined ? {} : { ipv4 }),
  ...(ipv6 === undefined ? {} : { ipv6 }),
});

const appliedOf = ({ policies, clusterPolicies }: Revisions) => ({
  ...(policies === undefined ? {} : { appliedRevision: policies }),
  ...(clusterPolicies === undefined ? {} : { appliedClusterRevision: clusterPolicies }),
});
