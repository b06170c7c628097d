/**
 * Holdings: the EIPs that this node owns, asks for, carries on or prepares, and which voters back each of them. An EIP is
 * owned while a majority of the voters has voted for it and has answered a message that was sent less than holdMs ago, or less than what
 * the voter has promised to wait.
 * When agents of voters are down, it is kept without a majority for as long as every voter can be reached, be it only
 * its kernel, and none has voted for another: then there is no side of the network on which somebody else could win.
 */
import type { Electorate } from '../cluster/view.ts';
import type { Ip } from '../ip/index.ts';
import type { Hearing } from './hearing.ts';
import { PROMISES_FROM } from './message.ts';
import type { EipHold, HoldMode } from './port.ts';
import { holdFor, type Timing } from './timing.ts';

/** What this node has to do with an EIP. */
export interface Own {
  readonly eip: Ip;
  epoch: number;
  state: 'asking' | HoldMode;
  /** What the kernel does for it while we ask for it. */
  readonly keeps: 'carried' | 'prepared' | undefined;
  /** One bit per voter that has voted for us, that has refused, and that has just started and says neither. */
  granted: number;
  refused: number;
  abstained: number;
  /** When a majority last backed it; when the state began if none did. */
  backedAtMs: number;
  /** Owned: held until then whatever the voters say. Others: given up then. */
  untilMs: number;
  /**
   * Set when it is held longer because this node was held up, and voters have not renewed its time since: how much more of such
   * time does not count.
   */
  excuseMs: number | undefined;
  /** The other node of a move by plan, and until when it matters. */
  other: { readonly node: string; readonly untilMs: number } | undefined;
}

/** Send times are kept for as many messages as can be under way. */
const REMEMBERED = 1_024;

/** How many votes there are, that of the API server included. */
export const votesOf = ({ voters, hasApi }: Electorate): number => voters.length + (hasApi ? 1 : 0);

/** How many of them are needed. */
export const majorityOf = (electorate: Electorate): number => Math.floor(votesOf(electorate) / 2) + 1;

export class Holdings {
  readonly #node: string;
  readonly #timing: Timing;
  readonly #hearing: Hearing;
  readonly #ownByEip = new Map<Ip, Own>();
  readonly #sentAtMs = new Float64Array(REMEMBERED);
  #sequence = PROMISES_FROM;
  readonly #times = new Float64Array(32);
  #electorate: Electorate = { generation: 0, voters: [], hasApi: false };
  readonly #usedEpochByEip = new Map<Ip, number>();
  /** By the place of the voter: when the last message was sent that it answered, and its count of losses. */
  #answeredAtMs: number[] = [];
  /** By the place of the voter: until when we may hold by all that it promised. */
  #backsUntilMs: number[] = [];
  #losses: number[] = [];
  /** By the place of the voter: when we sent what proves that it is reached; and the last echo request it answered. */
  #reachedAtMs: number[] = [];
  #echoedAtMs: number[] = [];
  /** By the place of the voter: when we sent the last claim on which it abstained. */
  #abstainedAtMs: number[] = [];
  /** Until when the vote of the API server is ours, and the epoch that is recorded there. */
  tieUntilMs = -Infinity;
  tieEpoch = 0;

  constructor(node: string, timing: Timing, hearing: Hearing) {
    this.#node = node;
    this.#timing = timing;
    this.#hearing = hearing;
  }

  get all(): Iterable<Own> {
    return this.#ownByEip.values();
  }

  get size(): number {
    return this.#ownByEip.size;
  }

  get(eip: Ip): Own | undefined {
    return this.#ownByEip.get(eip);
  }

  put(eip: Ip, epoch: number, state: Own['state'], nowMs: number, untilMs: number): Own {
    const before = this.#ownByEip.get(eip);
    const mode = before?.state === 'asking' ? before.keeps : before?.state;
    const keeps = state === 'asking' && mode !== 'owned' ? mode : undefined;
    const votes = { granted: 0, refused: 0, abstained: 0, backedAtMs: nowMs };
    const other = keeps === undefined ? undefined : before?.other;
    const own: Own = { eip, epoch, state, keeps, ...votes, untilMs, excuseMs: undefined, other };
    this.#ownByEip.set(eip, own);
    this.noteEpoch(eip, epoch);
    return own;
  }

  /** Another node moves an EIP here, or gets it from here: until then it may know connections that this node does not. */
  meet(eip: Ip, node: string, untilMs: number): void {
    const own = this.#ownByEip.get(eip);
    if (own !== undefined) own.other = { node, untilMs };
  }

  drop(eip: Ip): void {
    this.#ownByEip.delete(eip);
  }

  /** The highest epoch that this node has used, or that voters have named. None is used twice: an old release is then known as such. */
  usedEpoch(eip: Ip): number {
    return this.#usedEpochByEip.get(eip) ?? 0;
  }

  noteEpoch(eip: Ip, epoch: number): void {
    if (epoch > this.usedEpoch(eip)) this.#usedEpochByEip.set(eip, epoch);
  }

  /** What the kernel should hold. */
  held(): readonly EipHold[] {
    const held: EipHold[] = [];
    for (const { eip, epoch, state, keeps, other } of this.#ownByEip.values()) {
      const mode = state === 'asking' ? keeps : state;
      if (mode !== undefined) held.push({ eip, epoch, mode, ...(other && { other: other.node }) });
    }
    return held.toSorted((a, b) => (a.eip < b.eip ? -1 : 1));
  }

  /**
   * Another electorate comes, one step away. What the voters of this one have promised still holds for its time: any majority of the next
   * one has one of them in it. Else an owner would let go whenever a vote is added.
   */
  keepPromises(nowMs: number): void {
    for (const own of this.#ownByEip.values()) {
      if (own.state !== 'owned') continue;
      // Not by the vote of the API server: where it counts no longer, it is given back.
      own.untilMs = Math.max(own.untilMs, Math.min(this.backedUntilMs(own, false), nowMs + this.#timing.holdMs));
    }
  }

  /** Goes by other voters; those that stay keep their votes. */
  setElectorate(electorate: Electorate): void {
    const places = electorate.voters.map((voter) => this.voters.indexOf(voter));
    const moved = (bits: number): number =>
      places.reduce((sum, place, index) => sum | (place >= 0 && bits & (1 << place) ? 1 << index : 0), 0);
    for (const own of this.#ownByEip.values()) {
      own.granted = moved(own.granted);
      own.refused = moved(own.refused);
      own.abstained = moved(own.abstained);
    }
    this.#answeredAtMs = places.map((place) => this.#answeredAtMs[place] ?? -Infinity);
    this.#backsUntilMs = places.map((place) => this.#backsUntilMs[place] ?? -Infinity);
    this.#losses = places.map((place) => this.#losses[place] ?? -1);
    this.#reachedAtMs = places.map((place) => this.#reachedAtMs[place] ?? -Infinity);
    this.#echoedAtMs = places.map((place) => this.#echoedAtMs[place] ?? -Infinity);
    this.#abstainedAtMs = places.map((place) => this.#abstainedAtMs[place] ?? -Infinity);
    this.#electorate = electorate;
  }

  get voters(): readonly string[] {
    return this.#electorate.voters;
  }

  /** The number of a message that is about to be sent. */
  nextSequence(nowMs: number): number {
    this.#sequence += 1;
    this.#sentAtMs[this.#sequence % REMEMBERED] = nowMs;
    return this.#sequence;
  }

  /**
   * A voter has started anew: what it said before does not count. It has a moment to vote again, in which it votes for nobody else. What
   * was held by the votes of others as well is not held beyond their time for that.
   */
  forgetVoter(voter: string, nowMs: number): void {
    const place = this.voters.indexOf(voter);
    if (place < 0) return;
    const { revoteMs, widestMs } = this.#timing;
    const backed: Own[] = [];
    for (const own of this.#ownByEip.values()) {
      if (own.state !== 'owned') continue;
      if (this.backedUntilMs(own) > nowMs) backed.push(own);
      else if (this.heldUntilMs(own, nowMs) > nowMs) own.untilMs = Math.max(own.untilMs, nowMs + revoteMs);
    }
    this.#backsUntilMs[place] = Math.max(this.#backsUntilMs[place] ?? -Infinity, nowMs + revoteMs);
    for (const own of backed) {
      const untilMs = Math.min(this.backedUntilMs(own), nowMs + holdFor(widestMs, this.#timing));
      own.untilMs = Math.max(own.untilMs, untilMs);
    }
    this.#clear(place);
    this.#losses[place] = -1;
  }

  /** A voter has answered a message of ours. Returns false when the answer is too old to mean anything. */
  answered(voter: string, sequence: number, losses: number, promisedMs = this.#timing.silenceMs): boolean {
    const place = this.voters.indexOf(voter);
    const known = this.#losses[place];
    if (known === undefined || sequence > this.#sequence || sequence <= this.#sequence - REMEMBERED) return false;
    if (losses < known) return false;
    // It has given away a vote of ours because it had not heard us: which one will be known when it is asked again.
    if (known >= 0 && losses > known) this.#clear(place);
    this.#losses[place] = losses;
    const sentAtMs = this.#sentAtMs[sequence % REMEMBERED] ?? -Infinity;
    if (sentAtMs > (this.#answeredAtMs[place] ?? 0)) this.#answeredAtMs[place] = sentAtMs;
    const untilMs = sentAtMs + holdFor(promisedMs, this.#timing);
    if (untilMs > (this.#backsUntilMs[place] ?? 0)) this.#backsUntilMs[place] = untilMs;
    if (sentAtMs > (this.#reachedAtMs[place] ?? 0)) this.#reachedAtMs[place] = sentAtMs;
    return true;
  }

  /** Whether a voter has left the last heartbeat unanswered. */
  isUnanswered(voter: string, nowMs: number): boolean {
    const unansweredMs = nowMs - (this.#answeredAtMs[this.voters.indexOf(voter)] ?? nowMs);
    const { askKernelMs, silenceMs } = this.#timing;
    return unansweredMs > (askKernelMs * this.#hearing.silenceOf(voter)) / silenceMs;
  }

  /** The kernel of a voter has answered. One echo may be luck on a bad path: only the one before it counts. */
  echoed(voter: string, sequence: number): void {
    const place = this.voters.indexOf(voter);
    const beforeMs = this.#echoedAtMs[place];
    if (beforeMs === undefined || sequence <= this.#sequence - REMEMBERED) return;
    const sentAtMs = this.#sentAtMs[sequence % REMEMBERED] ?? -Infinity;
    if (sentAtMs <= beforeMs) return;
    this.#echoedAtMs[place] = sentAtMs;
    if (beforeMs > (this.#reachedAtMs[place] ?? 0)) this.#reachedAtMs[place] = beforeMs;
  }

  /** A voter has said something about an EIP, in answer to the message of this number. */
  count(voter: string, sequence: number, own: Own, verdict: 'granted' | 'refused' | 'abstained' | 'undecided'): void {
    const place = this.voters.indexOf(voter);
    const bit = 1 << place;
    if (verdict === 'abstained') this.#abstainedAtMs[place] = this.#sentAtMs[sequence % REMEMBERED] ?? -Infinity;
    own.granted = verdict === 'granted' ? own.granted | bit : own.granted & ~bit;
    own.refused = verdict === 'refused' ? own.refused | bit : own.refused & ~bit;
    own.abstained = verdict === 'abstained' ? own.abstained | bit : own.abstained & ~bit;
  }

  /** Whether the voter at this place has not voted for us. */
  lacks(own: Own, place: number): boolean {
    return (own.granted & (1 << place)) === 0;
  }

  /** Whether so many voters have refused that no majority is left. */
  isHopeless(own: Own): boolean {
    return votesOf(this.#electorate) - bitsIn(own.refused) < majorityOf(this.#electorate);
  }

  /** Until when the votes for an EIP last: those of nodes alone, and with that of the API server where it counts. */
  backedUntilMs(own: Own, withTie = true): number {
    // What those who voted for us promised, in falling order: insertion into a few places beats a sorted list.
    const times = this.#times;
    let count = 0;
    for (let place = 0; place < this.voters.length; place += 1) {
      if (this.lacks(own, place)) continue;
      // Our own vote needs no message.
      const timeMs = this.voters[place] === this.#node ? Infinity : (this.#backsUntilMs[place] ?? 0);
      let at = count;
      for (; at > 0 && (times[at - 1] ?? 0) < timeMs; at -= 1) times[at] = times[at - 1] ?? 0;
      times[at] = timeMs;
      count += 1;
    }
    times.fill(-Infinity, count);
    const needed = majorityOf(this.#electorate);
    const byNodesMs = times[needed - 1] ?? -Infinity;
    if (!withTie || !this.#electorate.hasApi || own.epoch > this.tieEpoch) return byNodesMs;
    // What is new to us needs the very epoch that was recorded: those before may have used any lower one.
    if (own.state === 'asking' && own.epoch < this.tieEpoch) return byNodesMs;
    const others = needed === 1 ? Infinity : (times[needed - 2] ?? -Infinity);
    return Math.max(byNodesMs, Math.min(others, this.tieUntilMs));
  }

  /** Until when an EIP of ours is held: by votes, or because every voter is reached and none can have voted for another. */
  heldUntilMs(own: Own, nowMs: number): number {
    const { holdMs, graceMs } = this.#timing;
    let reachedAtMs = Infinity;
    for (const [place, voter] of this.voters.entries()) {
      if (voter === this.#node) continue;
      // Its answers may be lost while other words of it come through: then it is no agent that is down.
      const isAnswering = nowMs - (this.#answeredAtMs[place] ?? 0) < this.#hearing.silenceOf(voter);
      const isSpeaking = isAnswering || this.#hearing.isHeard(voter, nowMs);
      const hasAbstained = (own.abstained & (1 << place)) !== 0;
      if (isSpeaking && this.lacks(own, place) && !hasAbstained) return this.backedUntilMs(own);
      // A voter that has just started has taken note of us, but that is no vote: it has to say so again and again.
      const atMs = hasAbstained ? this.#abstainedAtMs[place] : this.#reachedAtMs[place];
      reachedAtMs = Math.min(reachedAtMs, atMs ?? -Infinity);
    }
    const untilMs = Math.min(reachedAtMs + holdMs, own.backedAtMs + 0.9 * graceMs);
    return Math.max(this.backedUntilMs(own), untilMs);
  }

  /**
   * Whether all that is owned is held by the word of others. What is only kept while they are asked, at a start or because this node
   * was held up, the kernel holds for its present lease and no longer.
   */
  areConfirmed(nowMs: number): boolean {
    for (const own of this.all) if (own.state === 'owned' && this.heldUntilMs(own, nowMs) <= nowMs) return false;
    return true;
  }

  #clear(place: number): void {
    for (const own of this.#ownByEip.values()) {
      own.granted &= ~(1 << place);
      own.refused &= ~(1 << place);
      own.abstained &= ~(1 << place);
    }
    this.#answeredAtMs[place] = -Infinity;
    this.#backsUntilMs[place] = -Infinity;
  }
}

const bitsIn = (bits: number): number => {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1;
  return count;
};
