/**
 * Keeper keeps one node in step: what is known is gathered, decided on and applied, and the outcome is told. One pass
 * does all of it once, and may be repeated at will.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../api/config.ts';
import { EgressError } from '../api/error.ts';
import { isReason, type Reason } from '../api/reasons.ts';
import { finding } from '../core/finding.ts';
import type { NodeDesired, NodeProblem } from '../core/node/desired.ts';
import { createNodePlanner } from '../core/node/desired-for.ts';
import type { HostView, NodeInput, NodeSettings } from '../core/node/input.ts';
import type { PolicyView } from '../core/view.ts';
import type { ParentChoice } from '../dataplane/ip/host.ts';
import type { Network } from '../dataplane/ip/network.ts';
import type { PassResult } from '../runtime/control/loop.ts';
import type { Applier } from './applier.ts';
import type { Claims } from './claims.ts';
import type { Gathered, Gathering, Revisions } from './gather.ts';
import type { Isolation } from './isolate.ts';
import type { KernelPart } from './kernel.ts';
import { nodeSettingsOf, parentChoiceOf } from './settings.ts';

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

/** What a keeper needs. */
export interface KeeperDeps {
  readonly node: string;
  readonly config: { readonly current: Config };
  readonly gathering: Gathering;
  readonly network: Pick<Network, 'readHost'>;
  readonly applier: Applier;
  readonly claims: Claims;
  readonly isolation: Isolation;
  /** The numbers of gateway nodes that the kernel uses when the agent starts. */
  readonly gatewayNumbers: ReadonlyMap<string, number>;
  readonly onOutcome: (outcome: Outcome) => void;
}

/** One node. Never run two passes at once. */
export class Keeper {
  readonly #deps: KeeperDeps;
  readonly #plan = createNodePlanner();
  #gatewayNumbers: ReadonlyMap<string, number>;
  #settings: NodeSettings | undefined;
  #host: { readonly view: HostView; readonly choice: ParentChoice } | undefined;
  #isHostStale = true;
  #last: { readonly input: NodeInput; readonly desired: NodeDesired } | undefined;
  #inForce: InForce = nothingInForce;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
    this.#gatewayNumbers = deps.gatewayNumbers;
  }

  /** Says that somebody else may have changed a part of the kernel: the next pass reads it. */
  distrust(part: KernelPart): void {
    this.#deps.applier.distrust(part);
    if (part === 'network') this.#isHostStale = true;
  }

  /** Gathers, decides, applies, tells. Rejects only for bugs. */
  async pass(): Promise<PassResult> {
    try {
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
    const { desired, problems, isDone } = await applier.apply(decided, async (wanted) => {
      refusal = await applier.applyTable(wanted.table);
      return refusal === undefined ? wanted : await this.#isolate(refusal, gathered, host);
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
    this.#tell(host, [...desired.problems, ...problems, ...isolation.problems()], true);
    return isDone ? 'done' : 'again';
  }

  #tell(host: HostView | undefined, problems: readonly NodeProblem[], isWhole: boolean): void {
    const { desired, revisions } = this.#inForce;
    this.#deps.onOutcome({ desired, revisions, isWhole, host, problems });
  }

  /**
   * Decides. When there are EIPs about which the network has to be asked first, it is asked and decided again: all of it
   * waits for the answer, milliseconds, because applying twice takes longer.
   */
  async #decide(gathered: Gathered, host: HostView): Promise<NodeDesired> {
    const { claims, isolation } = this.#deps;
    const policies = isolation.cover(gathered.policies);
    const desired = this.#desiredFor(gathered, host, policies);
    if (!claims.judge(desired, gathered.tunnels)) return desired;
    await claims.settled();
    return this.#desiredFor(gathered, host, policies);
  }

  /** Puts all policies in force but those that the kernel refuses; undefined when they are not the cause. */
  async #isolate(refusal: EgressError, gathered: Gathered, host: HostView): Promise<NodeDesired | undefined> {
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

  #desiredFor(gathered: Gathered, host: HostView, policies: readonly PolicyView[]): NodeDesired {
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
    };
    // The very same input has the very same answer, so that whoever applies it sees that nothing has changed.
    if (this.#last === undefined || !isSameInput(this.#last.input, input)) {
      this.#last = { input, desired: this.#plan(input) };
    }
    return this.#last.desired;
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
interface InForce extends Pick<Outcome, 'desired' | 'revisions'> {
  readonly policies: readonly PolicyView[] | undefined;
}

const nothingInForce: InForce = {
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
  a.gatewayNumbers === b.gatewayNumbers;
