/**
 * RolloutTracker tells how far kernels are with each policy: which change of it agents have to act on, which nodes that
 * concerns, and what their agents have reported. Agents act on the spec and on the binding in the status. A write of
 * ours that changes neither asks nothing of them, so a condition that is written never leads to another one.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import type { NodeView, PolicyKey, PolicyView } from '../../core/cluster/view.ts';
import {
  anyRevision,
  hasReached,
  type NodeProgress,
  type Progress,
  type ReportedProblem,
} from '../../core/status/programmed.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { CachedPolicy, CachedTunnel, ControllerCaches } from '../loop/caches.ts';
import { ChangedKeys } from '../loop/changed-keys.ts';
import type { Members } from '../membership/members.ts';
import type { Heartbeats } from './heartbeats.ts';

/** What the book is kept from. */
export interface RolloutTrackerDeps {
  readonly caches: {
    readonly policies: Pick<ControllerCaches['policies'], 'subscribe'>;
    readonly clusterPolicies: Pick<ControllerCaches['clusterPolicies'], 'subscribe'>;
    readonly tunnels: Pick<ControllerCaches['tunnels'], 'subscribe' | 'store'>;
    readonly nodes: Pick<ControllerCaches['nodes'], 'subscribe' | 'store'>;
  };
  readonly members: Pick<Members, 'nodes'>;
  readonly heartbeats: Pick<Heartbeats, 'stateOf'>;
  readonly clock: Clock;
}

type StatusBinding = Pick<PolicyStatus, 'eip' | 'node' | 'slot'>;
type ReportedEips = readonly { readonly ip: string }[];

/** What agents have to act on in a policy, as text, and the revision of the object that was the first to say it. */
interface Order {
  readonly uid: string;
  readonly text: string;
  readonly revision: string;
  readonly binding: StatusBinding;
}

/** Reports of many nodes that come together are looked at together. */
const windowMs = 100;
/** How old the names may be of the nodes that a policy waits for. */
const namesAgeMs = 5_000;

/** The book of one process. Make it before the caches run. */
export class RolloutTracker {
  readonly #deps: RolloutTrackerDeps;
  readonly #orderByKey = new Map<PolicyKey, Order>();
  /** key -> policy with a slot whose status does not say that all kernels hold it */
  readonly #awaited = new Map<PolicyKey, PolicyView>();
  /** Nodes with a new report: to look at soon, to look at for names only, and those with other problems or another readiness. */
  readonly #reported: ChangedKeys<string>;
  readonly #reportedLately: ChangedKeys<string>;
  readonly #troubled: ChangedKeys<string>;
  readonly #heldIn = new WeakMap<ReportedEips, ReadonlySet<string>>();

  constructor(deps: RolloutTrackerDeps) {
    this.#deps = deps;
    this.#reported = new ChangedKeys(deps.clock, windowMs);
    this.#reportedLately = new ChangedKeys(deps.clock, namesAgeMs);
    this.#troubled = new ChangedKeys(deps.clock, windowMs);
    deps.caches.policies.subscribe((change) => this.#takePolicy(change));
    deps.caches.clusterPolicies.subscribe((change) => this.#takePolicy(change));
    deps.caches.tunnels.subscribe((change) => this.#takeTunnel(change));
    deps.caches.nodes.subscribe((change) => this.#takeNode(change));
  }

  /** How far kernels are with a policy that was decided on at this generation and should have this binding. */
  of({ key, kind }: PolicyView, generation: number, binding: StatusBinding): Progress {
    const order = this.#orderByKey.get(key);
    return {
      // As long as the object does not show what was decided, no kernel can hold it.
      revision: order?.text === textOf(generation, binding) ? order.revision : undefined,
      nodes: this.#nodesOf(key, binding).map((node) => this.#progressOf(node, kind)),
      unreadyGatewayNode: this.#unreadyGatewayNode(binding),
      conflicts: this.#deps.caches.tunnels.store.get(binding.node ?? '')?.view.conflicts ?? [],
      isHeld: this.#isHeld(binding),
    };
  }

  /** Calls back with policies about which there may be something new to say after reports of agents. */
  subscribe(listener: (policies: readonly PolicyKey[]) => void): () => void {
    const subscriptions = [
      this.#reported.subscribe(() => listener(this.#arrived())),
      this.#reportedLately.subscribe(() => listener([...this.#awaited.keys()])),
      this.#troubled.subscribe((nodes) => listener(this.#policiesOn(new Set(nodes)))),
    ];
    return () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
  }

  #takePolicy(change: StoreChange<CachedPolicy>): void {
    const { view, identity, status = {} } = change.kind === 'put' ? change.value : change.previous;
    const { key, uid } = view;
    this.#awaited.delete(key);
    if (change.kind === 'delete') {
      this.#orderByKey.delete(key);
      return;
    }
    const isInStep = showsInStep(status, identity.generation);
    if (status.slot !== undefined && !isInStep) this.#awaited.set(key, view);
    const known = this.#orderByKey.get(key);
    const text = textOf(identity.generation, status);
    if (known?.uid === uid && known.text === text) return;
    // What an earlier controller has seen in all kernels need not be shown to this one.
    const revision = known === undefined && isInStep ? anyRevision : identity.resourceVersion;
    this.#orderByKey.set(key, { uid, text, revision, binding: status });
  }

  #takeTunnel(change: StoreChange<CachedTunnel>): void {
    const [before, after] = [change.previous?.status, change.kind === 'put' ? change.value.status : undefined];
    const isNewlyHeard = !before?.lastHeartbeatTime && Boolean(after?.lastHeartbeatTime);
    const troublesOf = (report: EgressTunnelStatus['report']) => [problemsOf(report), report?.conflicts ?? []];
    if (isNewlyHeard || !isDeepStrictEqual(troublesOf(before?.report), troublesOf(after?.report))) {
      this.#troubled.add([change.key]);
    }
    if (isDeepStrictEqual(before?.report, after?.report)) return;
    this.#reported.add([change.key]);
    this.#reportedLately.add([change.key]);
  }

  #takeNode(change: StoreChange<NodeView>): void {
    const isReady = change.kind === 'put' && change.value.isReady;
    if (change.previous !== undefined && change.previous.isReady !== isReady) this.#troubled.add([change.key]);
  }

  /** Policies that all kernels have come to hold. */
  #arrived(): readonly PolicyKey[] {
    const arrived: PolicyKey[] = [];
    for (const [key, { kind }] of this.#awaited) {
      const order = this.#orderByKey.get(key);
      const nodes = order === undefined ? [] : this.#nodesOf(key, order.binding);
      const isHeld = order === undefined || this.#isHeld(order.binding);
      if (isHeld && nodes.every((node) => hasReached(this.#progressOf(node, kind), order?.revision))) arrived.push(key);
    }
    return arrived;
  }

  #policiesOn(nodes: ReadonlySet<string>): readonly PolicyKey[] {
    return [...this.#orderByKey]
      .filter(([key, { binding }]) => this.#nodesOf(key, binding).some((node) => nodes.has(node)))
      .map(([key]) => key);
  }

  /** The gateway node first: what is wrong there concerns all traffic of the policy. */
  #nodesOf(key: PolicyKey, { node: gatewayNode }: StatusBinding): readonly string[] {
    const nodes = this.#deps.members.nodes(key);
    return gatewayNode ? [gatewayNode, ...nodes.filter((node) => node !== gatewayNode)] : nodes;
  }

  /** A node comes to hold both addresses of a pair in one step, so that either stands for both. */
  #isHeld({ eip, node = '' }: StatusBinding): boolean {
    const addresses = [eip?.ipv4 ?? '', eip?.ipv6 ?? ''].filter((ip) => ip !== '');
    if (addresses.length === 0) return true;
    const eips = this.#deps.caches.tunnels.store.get(node)?.status?.report?.eips ?? noEips;
    // Many policies ask about the same report.
    const held = this.#heldIn.get(eips) ?? new Set(eips.map(({ ip }) => ip));
    this.#heldIn.set(eips, held);
    return addresses.some((ip) => held.has(ip));
  }

  #progressOf(node: string, kind: PolicyView['kind']): NodeProgress {
    const report = this.#deps.caches.tunnels.store.get(node)?.status?.report;
    const heartbeat = this.#deps.heartbeats.stateOf(node);
    return {
      node,
      // An agent that only ever wrote reports was heard of, too.
      isHeard: heartbeat === 'fresh' || (heartbeat === 'never' && report !== undefined),
      applied: kind === 'EgressPolicy' ? report?.appliedRevision : report?.appliedClusterRevision,
      ...problemsOf(report),
    };
  }

  #unreadyGatewayNode({ node }: StatusBinding): string | undefined {
    return node && this.#deps.caches.nodes.store.get(node)?.isReady !== true ? node : undefined;
  }
}

const noProblems: readonly ReportedProblem[] = [];
const noEips: ReportedEips = [];

/** How many are not listed says nothing about any policy, so it may grow and fall without anybody being asked. */
const problemsOf = (report: EgressTunnelStatus['report']): Pick<NodeProgress, 'problems' | 'hasMoreProblems'> => ({
  problems: report?.problems ?? noProblems,
  hasMoreProblems: (report?.unlistedProblems ?? 0) > 0,
});

const textOf = (generation: number, { eip, node, slot }: StatusBinding): string =>
  `${generation} ${eip?.ipv4 ?? ''} ${eip?.ipv6 ?? ''} ${node ?? ''} ${slot ?? ''}`;

/** True when the status says that all kernels hold this generation. */
const showsInStep = ({ conditions }: PolicyStatus, generation: number): boolean =>
  conditions?.some(
    ({ type, status, observedGeneration }) =>
      type === 'Programmed' && status === 'True' && observedGeneration === generation,
  ) ?? false;
