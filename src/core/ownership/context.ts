/** What the parts of the protocol share: the state of one node, and a way to say what is to be done. */
import type { Ip } from '../ip/index.ts';
import type { FalseAlarms } from './false-alarms.ts';
import type { Hearing } from './hearing.ts';
import { type Holdings, majorityOf, type Own } from './holdings.ts';
import type { Holding, Message } from './message.ts';
import type { Cause, Effect, OwnershipPlan, PlannedEip } from './port.ts';
import { type NetworkReach, wholeReach } from './reach.ts';
import type { Timing } from './timing.ts';
import type { Voter } from './voter.ts';

/** The most EIPs in one message, so that it fits into a packet of the tunnel. */
export const EIPS_PER_MESSAGE = 40;

export class Context {
  readonly node: string;
  readonly timing: Timing;
  readonly hearing: Hearing;
  readonly alarms: FalseAlarms;
  readonly voter: Voter;
  readonly holdings: Holdings;
  plan: OwnershipPlan = { electorate: { generation: 0, voters: [], hasApi: false }, gateways: [], nodes: [], eips: [] };
  plannedByEip: ReadonlyMap<Ip, PlannedEip> = new Map();
  /** The gateway nodes and the voters, without this node. */
  members: readonly string[] = [];
  isGateway = false;
  reach: NetworkReach = wholeReach;
  /** When more of it was lost for the last time. */
  lostAtMs = -Infinity;
  /** True when what the kernel should hold has changed. */
  hasChanged = false;
  effects: Effect[] = [];
  readonly #released = new Map<string | undefined, Holding[]>();

  constructor(node: string, timing: Timing, parts: Pick<Context, 'hearing' | 'alarms' | 'voter' | 'holdings'>) {
    this.node = node;
    this.timing = timing;
    this.hearing = parts.hearing;
    this.alarms = parts.alarms;
    this.voter = parts.voter;
    this.holdings = parts.holdings;
  }

  /** Puts a plan in force: who takes part, and which EIPs there are. */
  setPlan(plan: OwnershipPlan): void {
    this.plan = plan;
    this.plannedByEip = new Map(plan.eips.map((planned) => [planned.eip, planned]));
    this.members = [...new Set([...plan.gateways, ...plan.electorate.voters])].filter((name) => name !== this.node);
    this.isGateway = plan.gateways.includes(this.node);
  }

  emit(effect: Effect): void {
    this.effects.push(effect);
  }

  send(to: string, message: Message): void {
    this.effects.push({ kind: 'send', to, message });
  }

  /** Sends one message, or several if the list is long. */
  sendParts<T>(to: string, list: readonly T[], messageOf: (part: readonly T[]) => Message): void {
    for (let start = 0; start < list.length; start += EIPS_PER_MESSAGE) {
      this.send(to, messageOf(list.slice(start, start + EIPS_PER_MESSAGE)));
    }
  }

  /** All members will be told that this node does not want EIPs, or not any more: at the end of the step, together. */
  release(released: readonly Holding[], to: string | undefined): void {
    for (const holding of released) this.voter.release(this.node, holding, to);
    const known = this.#released.get(to);
    // A list that is made anew for each of a thousand EIPs takes a million steps.
    if (known === undefined) this.#released.set(to, [...released]);
    else known.push(...released);
  }

  /** Tells them. After the kernel was told to let go, as others may take over at once. */
  sendReleases(): void {
    for (const [to, released] of this.#released) {
      // Who is next comes last: it asks the others at once, and they should know by then.
      const members = this.members.toSorted((a, b) => Number(a === to) - Number(b === to));
      for (const member of members) {
        this.sendParts(member, released, (part) => ({ kind: 'release', released: part, to }));
      }
    }
    this.#released.clear();
  }

  /** Lets an EIP go that this node owned. */
  letGo({ eip, epoch }: Own, cause: Cause, to: string | undefined): void {
    this.holdings.drop(eip);
    this.hasChanged = true;
    this.emit({ kind: 'event', reason: 'OwnershipYielded', cause, eip, epoch, other: to });
    this.release([{ eip, epoch }], to);
  }

  /** How much slower than usual the cluster is, as this node sees it: 1 on machines that have processors to spare. */
  slowness(nowMs: number): number {
    return this.hearing.longestSilence(this.members, nowMs) / this.timing.silenceMs;
  }

  /** How many voters are heard, this node included if it is one. */
  heardVoters(nowMs: number): number {
    let count = 0;
    for (const voter of this.plan.electorate.voters) if (this.hearing.isHeard(voter, nowMs)) count += 1;
    return count;
  }

  /** Whether it makes sense to ask for votes: nobody is bothered by a node that cannot win. */
  hearsEnough(nowMs: number): boolean {
    const { electorate } = this.plan;
    return this.heardVoters(nowMs) + (electorate.hasApi ? 1 : 0) >= majorityOf(electorate);
  }

  /** What a node says about the outside; this one too. */
  reachOf(node: string): NetworkReach {
    return node === this.node ? this.reach : this.hearing.reachOf(node);
  }
}
