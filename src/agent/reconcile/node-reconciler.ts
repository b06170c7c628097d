/**
 * NodeReconciler keeps one node in step: what is known is gathered, decided on and applied, and the outcome is told. One pass
 * does all of it once, and may be repeated at will.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../api/config.ts';
import { EgressError } from '../../api/error.ts';
import { isReason, type Reason } from '../../api/reasons.ts';
import { finding } from '../../core/cluster/finding.ts';
import { ofPair, type PolicyView } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import { asRecorded, type Owners } from '../../core/node/bindings.ts';
import { announcingInterfaces } from '../../core/node/claims.ts';
import type { NodeDesired, NodeProblem, TableDesired } from '../../core/node/desired.ts';
import { createNodePlanner } from '../../core/node/desired-for.ts';
import type { HostView, NodeInput, NodeOwnership, NodeSettings } from '../../core/node/input.ts';
import { movedBetween, switchedTo } from '../../core/node/switching.ts';
import { familiesIn } from '../../core/node/tunnel-ends.ts';
import { createUplinkPlaces } from '../../core/node/uplink.ts';
import type { ParentChoice } from '../../dataplane/ip/host.ts';
import type { Network } from '../../dataplane/ip/network.ts';
import type { PassResult } from '../../runtime/control/loop.ts';
import type { FailoverClient } from '../failover/failover-client.ts';
import type { ClusterInput, ClusterInputReader, Revisions } from '../inputs/gather.ts';
import { nodeSettingsOf, parentChoiceOf } from '../inputs/settings.ts';
import type { KernelPart } from '../kernel/kernel.ts';
import type { Applier } from './applier.ts';
import type { EipClaims } from './claims.ts';
import type { Isolation } from './isolate.ts';

/** What a pass came to. */
export interface Outcome {
  /** What the kernel holds; undefined until a pass has got that far. */
  readonly desired: NodeDesired | undefined;
  /** Up to which versions of policies it does; another value only when policies have changed. */
  readonly revisions: Revisions;
  /** True when the last pass has made it so: that is all that was known when the pass began. */
  readonly isWhole: boolean;
  /** The node as it was found; undefined when it could not be read. */
  readonly host: HostView | undefined;
  readonly problems: readonly NodeProblem[];
}

/** What a reconciler needs. */
export interface NodeReconcilerDeps {
  readonly node: string;
  readonly config: { readonly current: Config };
  readonly gathering: ClusterInputReader;
  readonly network: Pick<Network, 'readHost'>;
  readonly applier: Applier;
  readonly claims: EipClaims;
  readonly isolation: Isolation;
  readonly failoverClient: Pick<FailoverClient, 'begin' | 'ownership' | 'applied'>;
  /** EIPs that the kernel holds when the agent starts. */
  readonly eips: ReadonlySet<Ip>;
  /** The numbers of gateway nodes that the kernel uses when the agent starts. */
  readonly gatewayNumbers: ReadonlyMap<string, number>;
  readonly onOutcome: (outcome: Outcome) => void;
}

/** One node. Never run two passes at once. */
export class NodeReconciler {
  readonly #deps: NodeReconcilerDeps;
  readonly #plan = createNodePlanner();
  readonly #uplinkOf = createUplinkPlaces();
  #gatewayNumbers: ReadonlyMap<string, number>;
  #settings: NodeSettings | undefined;
  #host: { readonly view: HostView; readonly choice: ParentChoice } | undefined;
  #isHostStale = true;
  #last: { readonly input: NodeInput; readonly desired: NodeDesired } | undefined;
  /** Owners as the kernel has them. */
  #owners: Owners = asRecorded;
  #inForce: AppliedState = nothingInForce;
  /** What this node does for EIPs, as connections were told of it. */
  #holds: NodeOwnership['holds'] | undefined;

  constructor(deps: NodeReconcilerDeps) {
    this.#deps = deps;
    this.#gatewayNumbers = deps.gatewayNumbers;
  }

  /** Says that somebody else may have changed a part of the kernel: the next pass reads it. */
  distrust(part: KernelPart): void {
    this.#deps.applier.distrust(part);
    if (part === 'network') this.#isHostStale = true;
  }

  /** Says that a policy is recorded with this node: its EIP is asked about at once, beside whatever is under way. */
  foresee({ recorded }: PolicyView): void {
    const { node, claims, gathering } = this.#deps;
    const [host, settings] = [this.#host?.view, this.#settings];
    // Without a node to go by the next pass asks, as it does for all that was not foreseen.
    if (recorded.node !== node || this.#inForce.desired === undefined) return;
    if (host === undefined || settings === undefined) return;
    const interfacesOf = (ip: Ip) => announcingInterfaces(host, settings)(ip);
    for (const family of familiesIn(settings)) {
      const ip = ofPair(recorded.eip, family);
      if (ip !== undefined) claims.foresee(ip, interfacesOf, gathering.tunnels());
    }
  }

  /**
   * Sends packets to owners that are others than a moment ago, at once and without a pass; the next one finds it done. Then what is open from
   * pods of this node goes there too: each moment in which it does not may cost one of their packets.
   * True when packets go elsewhere now. Rejects only for bugs; what the kernel refuses is left to the pass.
   */
  async follow(): Promise<boolean> {
    const { applier, gathering, failoverClient } = this.#deps;
    const { desired } = this.#inForce;
    const holds = failoverClient.ownership()?.holds;
    if (holds !== this.#holds) {
      this.#holds = holds;
      applier.owns(new Set(holds?.values().flatMap(({ eip, mode }) => (mode === 'owned' ? [eip] : []))));
    }
    if (desired === undefined) return false;
    const table = this.#tableNow(desired, gathering.gather().policies, this.#owners);
    if (table !== desired.table) {
      const refused = await applier.applyTable(table).catch((error: unknown) => {
        if (!(error instanceof EgressError)) throw error;
        return error;
      });
      if (refused !== undefined) return false;
      this.#inForce = { ...this.#inForce, desired: { ...desired, table } };
    }
    await applier.settleConnections();
    return table !== desired.table;
  }

  /** The table of what was decided with these owners, but with the owners of this moment. */
  #tableNow(desired: NodeDesired, policies: readonly PolicyView[], owners: Owners): TableDesired {
    const { node, failoverClient } = this.#deps;
    const now = failoverClient.ownership()?.owners ?? asRecorded;
    const moved = movedBetween(owners, now);
    this.#owners = now;
    if (moved.size === 0) return desired.table;
    const { settings, elements } = desired.table;
    const facts = { node, policies, owners: now, numbers: desired.gatewayNumbers };
    return { settings, elements: switchedTo(elements, moved, facts) };
  }

  /** Gathers, decides, applies, tells. Rejects only for bugs. */
  async pass(): Promise<PassResult> {
    try {
      const { failoverClient, eips } = this.#deps;
      const claims = this.#inForce.desired?.claims;
      await failoverClient.begin(claims === undefined ? eips : new Set(claims.map(({ ip }) => ip)));
      const host = await this.#readHost();
      return await this.#passOn(host);
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#tell(
        this.#host?.view,
        [problemOf(error, error.code.startsWith('NFT_') ? 'NftRefused' : 'RouteRefused')],
        false,
      );
      return 'again';
    }
  }

  async #passOn(host: HostView): Promise<PassResult> {
    const { gathering, applier, isolation } = this.#deps;
    const gathered = gathering.gather();
    const revisions = gathering.revisions();
    const decided = await this.#decide(gathered, host);
    let refusal: EgressError | undefined;
    const owners = this.#last?.input.ownership?.owners ?? asRecorded;
    const { desired, problems, isDone } = await applier.apply(decided, async (wanted) => {
      // Owners may have changed while the network was made ready.
      const table = this.#tableNow(wanted, gathered.policies, owners);
      refusal = await applier.applyTable(table);
      return refusal === undefined ? { ...wanted, table } : await this.#isolate(refusal, gathered, host);
    });
    if (desired === undefined) {
      const refused = refusal === undefined ? [] : [problemOf(refusal, 'NftRefused')];
      this.#tell(host, [...decided.problems, ...problems, ...refused], false);
      return 'again';
    }
    if (refusal === undefined) isolation.taken(isolation.cover(gathered.policies));
    this.#gatewayNumbers = desired.gatewayNumbers;
    const isSame = gathered.policies === this.#inForce.policies;
    this.#inForce = isSame ? { ...this.#inForce, desired } : { desired, revisions, policies: gathered.policies };
    // First, so that what is told waits for EIPs that this lets come.
    this.#deps.failoverClient.applied(desired, this.#uplinkOf(host, desired));
    this.#tell(host, [...desired.problems, ...problems, ...isolation.problems()], true);
    return isDone ? 'done' : 'again';
  }

  #tell(host: HostView | undefined, problems: readonly NodeProblem[], isWhole: boolean): void {
    const { desired, revisions } = this.#inForce;
    this.#deps.onOutcome({ desired, revisions, isWhole, host, problems });
  }

  /**
   * Decides. When there are EIPs about which the network has to be asked first, it is asked and decided again. Behind a gate
   * all but their addresses is made meanwhile, and nodes agree on their owner; without one everything waits for the answer.
   */
  async #decide(gathered: ClusterInput, host: HostView): Promise<NodeDesired> {
    const { claims, isolation } = this.#deps;
    const policies = isolation.cover(gathered.policies);
    const desired = this.#desiredFor(gathered, host, policies);
    const isOther = claims.judge(desired, gathered.tunnels);
    // Some may have been foreseen, so that nothing is other now.
    if (!desired.table.settings.isGated) await claims.settled();
    else if (!isOther) return desired;
    return this.#desiredFor(gathered, host, policies);
  }

  /** Puts all policies in force but those that the kernel refuses; undefined when they are not the cause. */
  async #isolate(refusal: EgressError, gathered: ClusterInput, host: HostView): Promise<NodeDesired | undefined> {
    const { applier, isolation } = this.#deps;
    // A kernel without nftables, or one that we may not change, takes no table at all.
    if (refusal.data.reason !== 'NftRefused') return undefined;
    let inForce: NodeDesired | undefined;
    await isolation.isolate(gathered.policies, async (policies) => {
      const desired = this.#desiredFor(gathered, host, policies);
      const refused = await applier.applyTable(desired.table);
      if (refused === undefined) inForce = desired;
      return refused?.message;
    });
    return inForce;
  }

  #desiredFor(gathered: ClusterInput, host: HostView, policies: readonly PolicyView[]): NodeDesired {
    const { node, config, claims } = this.#deps;
    const settings = nodeSettingsOf(config.current);
    if (!isDeepStrictEqual(settings, this.#settings)) this.#settings = settings;
    const input: NodeInput = {
      ...gathered,
      node,
      settings: this.#settings ?? settings,
      host,
      policies,
      unclaimable: claims.unclaimable,
      gatewayNumbers: this.#gatewayNumbers,
      ownership: this.#ownership(),
    };
    // The very same input has the very same answer, so that whoever applies it sees that nothing has changed.
    if (this.#last === undefined || !isSameInput(this.#last.input, input)) {
      this.#last = { input, desired: this.#plan(input) };
    }
    return this.#last.desired;
  }

  /** Who owns what; the same value as in the last input while it says the same. */
  #ownership(): NodeOwnership | undefined {
    const before = this.#last?.input.ownership;
    const now = this.#deps.failoverClient.ownership();
    const isSame =
      before !== undefined &&
      before.owners === now?.owners &&
      before.holds === now.holds &&
      before.standbys === now.standbys &&
      before.gateways === now.gateways;
    return isSame ? before : now;
  }

  async #readHost(): Promise<HostView> {
    const { config, gathering, network } = this.#deps;
    const choice = parentChoiceOf(config.current, gathering.labels());
    const before = this.#host;
    if (before !== undefined && !this.#isHostStale && isDeepStrictEqual(choice, before.choice)) return before.view;
    this.#isHostStale = false;
    const view = await network.readHost(choice);
    const isSame = before !== undefined && isDeepStrictEqual(view, before.view);
    this.#host = { view: isSame ? before.view : view, choice };
    return this.#host.view;
  }
}

/** What the kernel holds, and the policies that its versions stand for. */
interface AppliedState extends Pick<Outcome, 'desired' | 'revisions'> {
  readonly policies: readonly PolicyView[] | undefined;
}

const nothingInForce: AppliedState = {
  desired: undefined,
  revisions: { policies: undefined, clusterPolicies: undefined },
  policies: undefined,
};

/** What it means for the node that the kernel refuses, or cannot be asked. Some errors say it themselves. */
const problemOf = ({ data, message }: EgressError, fallback: Reason): NodeProblem => {
  const reason = typeof data.reason === 'string' && isReason(data.reason) ? data.reason : fallback;
  return { finding: finding(reason, `${message}.`), policy: undefined };
};

const isSameInput = (a: NodeInput, b: NodeInput): boolean =>
  a.settings === b.settings &&
  a.host === b.host &&
  a.ranges === b.ranges &&
  a.tunnels === b.tunnels &&
  a.policies === b.policies &&
  a.namespaces === b.namespaces &&
  a.pods === b.pods &&
  a.unclaimable === b.unclaimable &&
  a.gatewayNumbers === b.gatewayNumbers &&
  a.ownership === b.ownership;
