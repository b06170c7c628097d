/**
 * Voter: to whom this node has given its vote, per EIP. A vote is a lease: it lasts while the node that has it counts as
 * there (hearing.ts), and is given to nobody else meanwhile. Nothing is written to disk: a voter that starts gives no
 * vote before every vote of its earlier run has run out.
 */
import type { Ip } from '../ip/index.ts';
import type { FalseAlarms } from './false-alarms.ts';
import type { Hearing } from './hearing.ts';
import type { Holding, Refusal, RequestedHolding } from './message.ts';
import type { NoticedOwner } from './planned.ts';

/** A vote. */
export interface Vote {
  readonly node: string;
  readonly epoch: number;
  /** The node does not want it any more. Its epoch still counts. */
  readonly isReleased: boolean;
  /** Known only from hearsay: we have not voted. */
  readonly isPresumed: boolean;
  /** Whom the node meant to have the EIP next. */
  readonly to: string | undefined;
}

/** What becomes of a claim. `doubted` have votes of a node that is there: it is asked whether it still wants them. */
export interface Judgement {
  readonly granted: readonly Holding[];
  readonly refused: readonly Refusal[];
  readonly doubted: ReadonlyMap<string, readonly Holding[]>;
}

/** Of this many EIPs that no longer exist the last epoch is remembered. */
const pastLimit = 65_536;

export class Voter {
  readonly #hearing: Hearing;
  readonly #alarms: FalseAlarms;
  readonly #abstainsUntilMs: number;
  readonly #voteByEip = new Map<Ip, Vote>();
  /**
   * The last epochs of EIPs that no longer exist. An address may be given again, to another node: if epochs began anew with it, nodes
   * would take the word of its new owner for an old one.
   */
  readonly #pastByEip = new Map<Ip, NoticedOwner>();
  readonly #countByHolder = new Map<string, number>();
  readonly #lossesByNode = new Map<string, number>();

  constructor(hearing: Hearing, alarms: FalseAlarms, abstainsUntilMs: number) {
    this.#hearing = hearing;
    this.#alarms = alarms;
    this.#abstainsUntilMs = abstainsUntilMs;
  }

  voteFor(eip: Ip): Vote | undefined {
    return this.#voteByEip.get(eip);
  }

  /** The last epoch that an EIP had when it existed before; 0 if it did not. */
  pastEpoch(eip: Ip): number {
    return this.#pastByEip.get(eip)?.epoch ?? 0;
  }

  /** The nodes that have a vote of ours. */
  get holders(): Iterable<string> {
    return this.#countByHolder.keys();
  }

  /** How often a vote of the node was given away unasked. */
  lossesOf(node: string): number {
    return this.#lossesByNode.get(node) ?? 0;
  }

  /**
   * Takes from hearsay, such as the API, who has an EIP of which we know nothing, or only that somebody gave it up in an
   * earlier epoch: a node that was cut off would else ask again and again for what another one owns since.
   */
  presume(eip: Ip, node: string, epoch: number): void {
    const known = this.#voteByEip.get(eip);
    if (known !== undefined && !(known.isReleased && known.epoch < epoch)) return;
    this.#set(eip, { node, epoch, isReleased: false, isPresumed: true, to: undefined });
  }

  /**
   * We have asked in vain and given our own vote back: somebody else has the EIP, and by hearsay this node. The epoch stays, so
   * that what we were given before counts no longer.
   */
  defer(eip: Ip, node: string): void {
    const known = this.#voteByEip.get(eip);
    if (known?.isReleased) this.#set(eip, { ...known, node, isReleased: false, isPresumed: true, to: undefined });
  }

  /**
   * We have asked in vain for what a node had that we did not hear. It may have its vote back with the epoch that it has: as far as we know, nobody owned
   * with a later one, and it would else be refused.
   */
  restore(eip: Ip, { node, epoch }: Vote): void {
    if (this.#voteByEip.get(eip)?.isReleased)
      this.#set(eip, { node, epoch, isReleased: false, isPresumed: true, to: undefined });
  }

  /** Whether the node that has an EIP counts as lost. If the EIP was taken from somebody too soon before, only after a longer silence. */
  isLost(eip: Ip, node: string, nowMs: number): boolean {
    const longerMs = this.#alarms.silenceMs(eip, nowMs) - this.#hearing.silenceOf(node);
    return nowMs >= this.#hearing.aliveUntilMs(node) + Math.max(0, longerMs);
  }

  /** Judges a claim. A later epoch than any that was seen is needed to get what another node had. */
  judge(from: string, wanted: readonly RequestedHolding[], nowMs: number): Judgement {
    const granted: Holding[] = [];
    const refused: Refusal[] = [];
    const doubted = new Map<string, Holding[]>();
    for (const { eip, epoch, isOwned } of wanted) {
      const vote = this.#voteByEip.get(eip);
      if (nowMs < this.#abstainsUntilMs) {
        // Better hearsay than that of the API: nobody else gets this vote while the sender is heard.
        if (isOwned && (vote === undefined || vote.epoch <= epoch)) this.#give(eip, from, epoch);
        refused.push({ eip, epoch: 0, why: 'starting' });
      } else if (this.#isPast(from, { eip, epoch })) {
        refused.push({ eip, epoch: this.pastEpoch(eip), why: 'epoch' });
      } else if (vote === undefined || (vote.node === from && vote.epoch <= epoch)) {
        this.#give(eip, from, epoch);
        granted.push({ eip, epoch });
      } else if (vote.node === from || vote.isReleased || this.isLost(eip, vote.node, nowMs)) {
        if (vote.epoch < epoch) {
          if (!vote.isReleased && vote.node !== from) {
            this.#lossesByNode.set(vote.node, this.lossesOf(vote.node) + 1);
            this.#alarms.taken(eip, vote.node, nowMs);
          }
          this.#give(eip, from, epoch);
          granted.push({ eip, epoch });
        } else {
          refused.push({ eip, epoch: vote.epoch, why: 'epoch' });
        }
      } else {
        refused.push({ eip, epoch: vote.epoch, why: this.#hearing.isOverdue(vote.node, nowMs) ? 'soon' : 'held' });
        const known = doubted.get(vote.node);
        if (known === undefined) doubted.set(vote.node, [{ eip, epoch: vote.epoch }]);
        else known.push({ eip, epoch: vote.epoch });
      }
    }
    return { granted, refused, doubted };
  }

  /** The node does not want the EIP, up to this epoch. Returns false when that is old news. */
  release(from: string, { eip, epoch }: Holding, to: string | undefined): boolean {
    const vote = this.#voteByEip.get(eip);
    // A release that says who is next may be overtaken by one that does not.
    const isKnown = vote?.isReleased && (vote.epoch !== epoch || to === undefined || vote.to !== undefined);
    // Who has asked in vain has used a later epoch than the owner: whom the owner means to follow is news all the same.
    if (vote?.isReleased && vote.node !== from && vote.epoch > epoch && vote.to === undefined && to !== undefined) {
      this.#set(eip, { ...vote, to });
      return true;
    }
    if (vote !== undefined && (vote.node !== from || isKnown || vote.epoch > epoch)) return false;
    this.#set(eip, { node: from, epoch, isReleased: true, isPresumed: false, to });
    return true;
  }

  /** Forgets EIPs that no longer exist. A vote that somebody may still rely on stays: its node may not know yet. */
  keepOnly(eips: ReadonlyMap<Ip, unknown>, nowMs: number): void {
    for (const [eip, vote] of [...this.#voteByEip]) {
      if (eips.has(eip) || (!vote.isReleased && this.#hearing.isAlive(vote.node, nowMs))) continue;
      this.#forget(eip, vote);
    }
  }

  /** An EIP exists that did not: who had it before, and whom that one meant to follow, does not matter any more. */
  begin(eip: Ip): void {
    const vote = this.#voteByEip.get(eip);
    if (vote?.isReleased) this.#forget(eip, vote);
  }

  #forget(eip: Ip, { node, epoch }: Vote): void {
    this.#uncount(eip);
    this.#voteByEip.delete(eip);
    if (epoch < this.pastEpoch(eip)) return;
    this.#pastByEip.delete(eip);
    this.#pastByEip.set(eip, { node, epoch });
    const [oldest] = this.#pastByEip.keys();
    if (oldest !== undefined && this.#pastByEip.size > pastLimit) this.#pastByEip.delete(oldest);
  }

  /** Whether a claim is of an epoch from before the EIP was given again. Who had the last one may still have it: not all hear of an end. */
  #isPast(from: string, { eip, epoch }: Holding): boolean {
    const past = this.#pastByEip.get(eip);
    return past !== undefined && (epoch < past.epoch || (epoch === past.epoch && from !== past.node));
  }

  #give(eip: Ip, node: string, epoch: number): void {
    this.#set(eip, { node, epoch, isReleased: false, isPresumed: false, to: undefined });
  }

  #set(eip: Ip, vote: Vote): void {
    this.#uncount(eip);
    this.#voteByEip.set(eip, vote);
    if (!vote.isReleased) this.#countByHolder.set(vote.node, (this.#countByHolder.get(vote.node) ?? 0) + 1);
  }

  #uncount(eip: Ip): void {
    const vote = this.#voteByEip.get(eip);
    if (vote === undefined || vote.isReleased) return;
    const left = (this.#countByHolder.get(vote.node) ?? 1) - 1;
    if (left === 0) this.#countByHolder.delete(vote.node);
    else this.#countByHolder.set(vote.node, left);
  }
}
