/**
 * Agent is everything that runs on a node, joined: caches tell the loop that something changed, a pass makes the kernel
 * so, drift asks for another pass, and the outcome is reported. Nothing reaches the kernel before all caches are filled,
 * and nothing is taken back when the agent stops.
 */
import { EgressError } from '../api/error.ts';
import { failoverNames } from '../api/names.ts';
import type { EipConflict, PolicyView } from '../core/cluster/view.ts';
import { type UplinkLoss, uplinkFinding } from '../core/node/uplink.ts';
import type { ConfigSource } from '../runtime/config/source.ts';
import { kubeLeaseStore } from '../runtime/control/lease-record.ts';
import { Loop } from '../runtime/control/loop.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import type { EventRecorder } from '../runtime/kube/event-recorder.ts';
import type { Informer } from '../runtime/kube/informer.ts';
import { problemLog } from '../runtime/kube/problem-log.ts';
import type { StoreChange } from '../runtime/kube/store.ts';
import type { Metrics } from '../runtime/metrics/metrics.ts';
import { type Clock, wait } from '../runtime/process/clock.ts';
import type { Log } from '../runtime/process/log.ts';
import type { Tasks } from '../runtime/process/tasks.ts';
import type { Page } from '../runtime/serve/health.ts';
import { ApiVote } from './failover/api-vote.ts';
import { FailoverClient, type FailoverEvent, type StartHeartbeat } from './failover/failover-client.ts';
import { followKeys, type Keys, keyBytes } from './failover/keys.ts';
import { type AgentCaches, allOf, createAgentCaches, missingOf } from './inputs/caches.ts';
import { type ClusterInputReader, createClusterInputReader, policyBySlot } from './inputs/gather.ts';
import { type Kernel, type KernelPart, THREAD_SIGNATURES } from './kernel/kernel.ts';
import { MirrorSupervisor, type StartMirror } from './mirror/mirror-supervisor.ts';
import { Applier } from './reconcile/applier.ts';
import { EipClaims } from './reconcile/claims.ts';
import { watchDrift } from './reconcile/drift.ts';
import { Isolation } from './reconcile/isolate.ts';
import { NodeReconciler, type Outcome } from './reconcile/node-reconciler.ts';
import { nothingToRestore, type RestoredState, readRestoredState } from './reconcile/restore.ts';
import { Detection, type Silence } from './report/detection.ts';
import { kernelPage } from './report/kernel-page.ts';
import { type AgentMetrics, createAgentMetrics } from './report/metrics.ts';
import { NodeEvents } from './report/node-events.ts';
import { Reporter, reportOf } from './report/report.ts';

/** What an agent needs. */
export interface AgentDeps {
  readonly node: string;
  /** Where the Secret and the Lease of owners are. */
  readonly namespace: string;
  readonly config: ConfigSource;
  readonly client: KubeClient;
  readonly kernel: Kernel;
  readonly startHeartbeat: StartHeartbeat;
  readonly startMirror: StartMirror;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly spawn: Tasks['spawn'];
  /** Called once, when the kernel holds what it should for the first time in this run. */
  readonly onHeld: () => void;
  /** Called after every pass. */
  readonly onPass: () => void;
}

/** The agent of one node. Make one per process and `run` it once. */
export class Agent {
  /** What the kernel holds about a source or a slot. */
  readonly kernelPage: Page;
  /** Where others tell what they hear about this node. */
  readonly nodeEvents: NodeEvents;
  readonly #deps: AgentDeps;
  readonly #caches: AgentCaches;
  readonly #gathering: ClusterInputReader;
  readonly #loop: Loop;
  readonly #metrics: AgentMetrics;
  readonly #reporter: Reporter;
  readonly #keys: Informer<Keys>;
  readonly #failoverClient: FailoverClient;
  readonly #vote: ApiVote;
  #reconciler: NodeReconciler | undefined;
  #outcome: Outcome | undefined;
  #networkChangedAtMs: number | undefined;
  #conflicts: readonly EipConflict[] = [];
  readonly #detection = new Detection();
  #uplinkLosses: readonly UplinkLoss[] = [];
  /** True from the time on that this node may own EIPs. */
  #isGateway = false;

  constructor(deps: AgentDeps) {
    const { node, namespace, client, kernel, clock, random, log, metrics, config } = deps;
    this.#deps = deps;
    const mirrorSupervisor = new MirrorSupervisor({ startMirror: deps.startMirror, clock, log });
    const following = { client, clock, random, onProblem: problemLog(log, clock) };
    this.#caches = createAgentCaches({ node, ...following });
    this.#keys = followKeys(following, namespace);
    this.#keys.subscribe(() => this.#loop.touch());
    for (const [name, cache] of allOf(this.#caches)) metrics.observeInformer(name, cache);
    const onChange = (canWait: boolean): void => (canWait ? this.#loop.touchWithin(answerMs) : this.#loop.touch());
    this.#gathering = createClusterInputReader(this.#caches, onChange, node);
    this.#metrics = createAgentMetrics({
      instruments: metrics.instruments,
      kernel,
      clock,
      log,
      policyBySlot: () => policyBySlot(this.#gathering.gather().policies),
      outcome: () => this.#outcome,
      conflicts: () => this.#conflicts,
      silenceMs: () => this.#detection.silenceMs,
      uplinkLosses: () => this.#uplinkLosses,
      mirror: () => mirrorSupervisor.stats,
    });
    this.nodeEvents = new NodeEvents({ node, events: deps.events, metrics: this.#metrics, clock, log });
    this.#loop = new Loop({ clock, pass: () => this.#pass(), hooks: this.#metrics.loop });
    this.#reporter = new Reporter({
      node,
      client,
      clock,
      log,
      heartbeatMs: () => config.current.feature.gatewayFailover.tunnelUpdatePeriod * 1_000,
      revisions: () => this.#revisions(),
    });
    this.#vote = new ApiVote({
      node,
      store: kubeLeaseStore(client, { namespace, name: failoverNames.lease }),
      clock,
      onVote: (untilMs, epoch) => this.#failoverClient.vote(untilMs, epoch),
    });
    this.#failoverClient = new FailoverClient({
      node,
      config,
      facts: () => this.#gathering.ownershipFacts(),
      keys: () => keyBytes([...this.#keys.store.values()].flat()),
      gate: kernel.gate,
      firstSignature: kernel.nftables.lentSignatures + THREAD_SIGNATURES,
      startHeartbeat: deps.startHeartbeat,
      mirrorSupervisor,
      clock,
      log,
      onChange: () => this.#follow(),
      onOpened: () => {
        this.#report();
        this.#switch();
      },
      onHappening: (happening) => this.#hear(happening),
      onEvents: (events) => this.nodeEvents.ownership(events, (eip) => this.#failoverClient.nameOf(eip)),
    });
    const foresee = (change: StoreChange<PolicyView>): void => {
      if (change.kind === 'put') this.#reconciler?.foresee(change.value);
    };
    this.#caches.policies.subscribe(foresee);
    this.#caches.clusterPolicies.subscribe(foresee);
    this.#caches.tunnels.subscribe((change) => {
      if (change.key === node && change.previous === undefined) this.#reporter.repeat();
    });
    const gatewayNumbers = () => this.#outcome?.desired?.gatewayNumbers ?? new Map<string, number>();
    this.kernelPage = kernelPage({ node, nftables: kernel.nftables, gatewayNumbers });
  }

  /** What is not done yet of what was found at the start; empty when the node is ready. */
  missing(): string[] {
    const caches = missingOf(this.#caches);
    if (caches.length > 0) return caches;
    if (this.#outcome?.desired === undefined) return ['the kernel'];
    return this.#failoverClient.isListening() ? [] : ['heartbeats'];
  }

  /** Works until the signal is aborted, then finishes what it began. Rejects only for bugs. */
  async run(signal: AbortSignal): Promise<void> {
    const following = [...allOf(this.#caches).map(([, cache]) => cache.run(signal)), this.#keys.run(signal)];
    const work = this.#work(signal);
    await Promise.all([...following, work]);
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { kernel, clock, config } = this.#deps;
    const filled = Promise.all(allOf(this.#caches).map(([, cache]) => cache.synced));
    // The caches reject when they end before they are filled, which is no failure of ours.
    if (!(await filled.then(() => true).catch(() => false)) || signal.aborted) return;
    // Else the first pass would go by the record. Without a Secret that is right.
    const keysRead = this.#keys.synced.catch(() => {});
    await Promise.race([keysRead, wait(clock, keysMs, signal)]);
    const close = this.#open(await this.#find());
    const unfollow = config.changed(() => this.#loop.touch());
    this.#loop.touch();
    const onDrift = (part: KernelPart): void => {
      this.#reconciler?.distrust(part);
      this.#loop.touch();
    };
    const sysctls = () => this.#outcome?.desired?.sysctls;
    await Promise.all([
      this.#loop.run(signal),
      this.#reporter.run(signal),
      this.#vote.run(signal),
      watchDrift({ kernel, clock, sysctls, networkChangedAtMs: () => this.#networkChangedAtMs, onDrift }, signal),
    ]);
    unfollow();
    close();
    await this.#failoverClient.close();
    this.nodeEvents.close();
    kernel.announcer.close();
    kernel.gate.close();
  }

  async #find(): Promise<RestoredState> {
    const { kernel, log } = this.#deps;
    try {
      return await readRestoredState(kernel, this.#gathering.gather().tunnels);
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      // Whatever is wrong will be told by the first pass, with its reason.
      log.warn({ component: 'start', reason: error.code }, `the kernel cannot be read: ${error.message}`);
      return nothingToRestore;
    }
  }

  /** Makes what needs to know what was found; returns how to close it. */
  #open(found: RestoredState): () => void {
    const { node, config, kernel, clock, log, spawn } = this.#deps;
    const onChange = (): void => this.#loop.touch();
    const claims = new EipClaims(
      {
        node,
        announcer: kernel.announcer,
        clock,
        spawn,
        isOpen: (ip) => this.#failoverClient.opened()?.has(ip) === true,
        onChange,
        hooks: { conflict: (ip, found) => this.nodeEvents.inUse(ip, found) },
      },
      found.eips,
    );
    const hooks = {
      changed: (part: KernelPart, count: number): void => {
        this.#metrics.applier.changed(part, count);
        if (part === 'network') this.#networkChangedAtMs = clock.monotonicMs();
      },
      repaired: (part: KernelPart, count: number): void => this.nodeEvents.repaired(part, count),
      replaced: (): void => this.#failoverClient.renew(),
      cut: (connections: number): void => {
        this.#metrics.applier.cut(connections);
        log.info(
          { component: 'conntrack' },
          `cut ${connections} connections that began without the policies of their pods`,
        );
      },
      forgetFailed: ({ code, message }: EgressError): void =>
        log.warn({ component: 'conntrack', reason: code }, message),
    };
    const isolation = new Isolation({ clock, onChange });
    this.#reconciler = new NodeReconciler({
      node,
      config,
      gathering: this.#gathering,
      network: kernel.network,
      applier: new Applier(kernel, hooks, found, {
        isOpen: (ip) => this.#failoverClient.opened()?.has(ip) ?? true,
        isCarried: (ip) => this.#failoverClient.ownership()?.holds.get(ip)?.mode === 'carried',
      }),
      claims,
      isolation,
      failoverClient: this.#failoverClient,
      eips: found.eips,
      gatewayNumbers: found.gatewayNumbers,
      onOutcome: (outcome) => this.#take(outcome),
    });
    return () => {
      claims.close();
      isolation.close();
    };
  }

  /** Owners are others: their packets go there at once, the rest is for a pass. */
  #follow(): void {
    this.#loop.touch();
    this.#switch();
  }

  #switch(): void {
    const { clock, spawn } = this.#deps;
    const startedAtMs = clock.monotonicMs();
    const following = this.#reconciler?.follow().then((hasSwitched) => {
      if (hasSwitched) this.#metrics.switched(clock.monotonicMs() - startedAtMs);
    });
    if (following !== undefined) spawn('follow owners', following);
  }

  /** Something has become of an EIP, or of what owning it takes. */
  #hear(happening: FailoverEvent): void {
    switch (happening.kind) {
      case 'tie':
        this.#vote.want(happening.isWanted, happening.epoch);
        break;
      case 'conflicts':
        this.nodeEvents.conflicts(
          happening.conflicts,
          this.#conflicts,
          (ip) => this.#failoverClient.opened()?.has(ip) === true,
        );
        this.#conflicts = happening.conflicts;
        this.#report();
        break;
      case 'uplink':
        this.nodeEvents.uplink(happening.losses, this.#uplinkLosses);
        this.#uplinkLosses = happening.losses;
        this.#report();
        break;
      case 'silence':
        this.#slow(happening);
        break;
      default:
        happening satisfies never;
    }
  }

  /** Losses are noticed later than before, or as quickly as configured again. */
  #slow(silence: Silence): void {
    const { isWidened, isNews } = this.#detection.take(silence);
    if (isWidened) this.#metrics.widened();
    if (!isNews) return;
    this.nodeEvents.detection(this.#detection.reportedMs);
    this.#report();
  }

  async #pass() {
    return (await this.#reconciler?.pass()) ?? 'done';
  }

  #take(outcome: Outcome): void {
    this.nodeEvents.problems(outcome.problems, this.#outcome?.problems ?? []);
    if (this.#outcome?.desired === undefined && outcome.desired !== undefined) {
      this.#deps.log.info({ component: 'node' }, 'the kernel holds what it should');
      this.#deps.onHeld();
    }
    this.#outcome = outcome;
    this.#report();
    this.#deps.onPass();
  }

  #report(): void {
    const outcome = this.#outcome;
    if (outcome === undefined) return;
    const [electorate, opened] = [this.#failoverClient.electorate(), this.#failoverClient.opened()];
    const [nodeGroups, conflicts] = [this.#failoverClient.nodeGroups(), this.#conflicts];
    this.#isGateway ||= this.#failoverClient.isGateway();
    const { reportedMs: detectionMs } = this.#detection;
    const owning = { electorate, opened, nodeGroups, isGateway: this.#isGateway, conflicts, detectionMs };
    const unreached = this.#uplinkLosses.map((loss) => ({
      finding: uplinkFinding(this.#deps.node, loss),
      policy: undefined,
    }));
    const told = { ...outcome, problems: [...outcome.problems, ...unreached] };
    this.#reporter.set(reportOf(told, owning), outcome.revisions, this.#failoverClient.isSettled());
  }

  /** While nothing is under way, all that the caches hold is in the kernel, also what made no difference to it. */
  #revisions() {
    const isInStep = this.#outcome?.isWhole === true && this.#loop.isIdle;
    if (isInStep) return this.#gathering.revisions();
    return this.#outcome?.revisions ?? { policies: undefined, clusterPolicies: undefined };
  }
}

/** How long a new policy waits for the answer of the controller, which then takes one pass instead of two. */
const answerMs = 40;
/** How long the first pass waits for the keys, if they are slow. */
const keysMs = 2_000;
