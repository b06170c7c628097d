/**
 * Hearing: when this node last heard which other one, and what follows from it. An agent is heard by its messages, a
 * kernel by its echoes. All times are of the own clock. How long a node may be silent before it counts as lost follows from how
 * regularly it was heard, and from how late the own timer fires: where processors are short, gaps say little.
 */
import { Jitter } from './jitter.ts';
import { NetworkReach, type Unreached, wholeReach } from './reach.ts';
import type { Timing } from './timing.ts';

/** When something was heard, and for how long we were held up since: by stops, and by being late again and again. */
interface LastHeard {
  readonly atMs: number;
  stoppedMs: number;
  lateMs: number;
}

interface PeerSignals {
  agent: LastHeard;
  kernel: LastHeard;
  /** Whether its agent was heard at all, or is known from hearsay only. */
  hasSpoken: boolean;
  incarnation: number;
  /** The silence that is granted to it now, and until when it counts as there by all that was granted so far. */
  silenceMs: number;
  grantedUntilMs: number;
  readonly jitter: Jitter;
  reach: NetworkReach;
  /** Since when it has said the same about it. */
  reachAtMs: number;
}

const signAt = (atMs: number): LastHeard => ({ atMs, stoppedMs: 0, lateMs: 0 });

export class Hearing {
  readonly #node: string;
  readonly #timing: Timing;
  readonly #heardByNode = new Map<string, PeerSignals>();
  /** How late our own timer fires. */
  readonly #lateness: Jitter;

  constructor(node: string, timing: Timing) {
    this.#node = node;
    this.#timing = timing;
    this.#lateness = new Jitter(timing.jitterMs);
  }

  /** A message of an agent came. `isRegular`: one of those that come with each heartbeat. Returns true when it is the first one of this run of that agent. */
  hear(node: string, incarnation: number, isRegular: boolean, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node) ?? this.#meet(node, incarnation, nowMs);
    const isNew = heard.incarnation !== incarnation || !heard.hasSpoken;
    const gapMs = isNew ? 0 : nowMs - heard.agent.atMs;
    const { heartbeatMs, widestMs } = this.#timing;
    // A longer one was no slowness that waiting could bear.
    if (isRegular && gapMs > heartbeatMs && gapMs < widestMs) heard.jitter.note(gapMs - heartbeatMs, nowMs);
    if (isNew) {
      heard.reach = wholeReach;
      heard.reachAtMs = nowMs;
    }
    heard.incarnation = incarnation;
    heard.agent = signAt(nowMs);
    heard.hasSpoken = true;
    heard.silenceMs = this.#silenceFor(heard, nowMs);
    // What was granted before holds: its owner may rely on it.
    heard.grantedUntilMs = Math.max(heard.grantedUntilMs, nowMs + heard.silenceMs);
    return isNew;
  }

  /** Counts a node of which we know only from hearsay as heard now, so that it has the time of a silence to speak up. */
  presume(node: string, nowMs: number): void {
    if (node !== this.#node && !this.#heardByNode.has(node)) this.#meet(node, -1, nowMs);
  }

  /** A node says which networks do not reach the outside from there. */
  setReach(node: string, unreached: readonly Unreached[], nowMs: number): void {
    const heard = this.#heardByNode.get(node);
    if (heard === undefined || heard.reach.says(unreached)) return;
    heard.reach = unreached.length === 0 ? wholeReach : new NetworkReach(unreached);
    heard.reachAtMs = nowMs;
  }

  hearKernel(node: string, nowMs: number): void {
    const heard = this.#heardByNode.get(node);
    if (heard !== undefined) heard.kernel = signAt(nowMs);
  }

  /** We were held up for so long: what was sent to us meanwhile may still be unread, so nobody was silent then. */
  forgive(lateMs: number, nowMs: number): void {
    const isStop = lateMs >= this.#timing.widestMs;
    if (!isStop) this.#lateness.note(lateMs, nowMs);
    for (const heard of this.#heardByNode.values()) {
      heard.silenceMs = this.#silenceFor(heard, nowMs);
      for (const sign of [heard.agent, heard.kernel]) {
        if (isStop) sign.stoppedMs += lateMs;
        else sign.lateMs += lateMs;
      }
    }
  }

  /** How long a node may be silent now before it counts as lost. */
  silenceOf(node: string): number {
    return this.#heardByNode.get(node)?.silenceMs ?? this.#timing.silenceMs;
  }

  /** The longest silence that is granted to any of these nodes, of those whose agents were heard within the grace. */
  longestSilence(nodes: Iterable<string>, nowMs: number): number {
    let longestMs = this.#timing.silenceMs;
    for (const node of nodes) if (this.hasGrace(node, nowMs)) longestMs = Math.max(longestMs, this.silenceOf(node));
    return longestMs;
  }

  /** Until when anybody may rely on what was granted so far. */
  get grantedUntilMs(): number {
    let untilMs = -Infinity;
    for (const heard of this.#heardByNode.values()) untilMs = Math.max(untilMs, heard.grantedUntilMs);
    return untilMs;
  }

  /** Whether the agent was heard within the silence; we hear ourselves. */
  isHeard(node: string, nowMs: number): boolean {
    if (node === this.#node) return true;
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - this.#agentAtMs(heard) < heard.silenceMs;
  }

  reachOf(node: string): NetworkReach {
    return this.#heardByNode.get(node)?.reach ?? wholeReach;
  }

  /** Whether a node has said the same about the outside for a silence: when a router goes or comes back, not everybody sees it at the same moment. */
  isReachSettled(node: string, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - heard.reachAtMs >= this.#timing.silenceMs;
  }

  /** Until when the node counts as there, by what was heard so far: its agent, or for the grace its kernel alone. */
  aliveUntilMs(node: string): number {
    if (node === this.#node) return Infinity;
    const heard = this.#heardByNode.get(node);
    if (heard === undefined) return -Infinity;
    const { silenceMs, grantedUntilMs } = heard;
    const agentAtMs = this.#agentAtMs(heard);
    const byKernelMs = Math.min(this.#countedMs(heard.kernel, heard) + silenceMs, agentAtMs + this.#timing.graceMs);
    return Math.max(grantedUntilMs, agentAtMs + silenceMs, byKernelMs);
  }

  /** Whether the node counts as there: while it does, nobody gets a vote that it has. */
  isAlive(node: string, nowMs: number): boolean {
    return nowMs < this.aliveUntilMs(node);
  }

  /** Whether its kernel should be asked: the agent is overdue, and its grace is not over. */
  isOverdue(node: string, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    if (heard === undefined) return false;
    const { askKernelMs, silenceMs } = this.#timing;
    return nowMs - this.#agentAtMs(heard) >= (askKernelMs * heard.silenceMs) / silenceMs && this.hasGrace(node, nowMs);
  }

  /** Whether its agent was heard so recently that its kernel still stands for it. */
  hasGrace(node: string, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - this.#agentAtMs(heard) < this.#timing.graceMs;
  }

  #agentAtMs(heard: PeerSignals): number {
    return this.#countedMs(heard.agent, heard);
  }

  /**
   * From when on silence counts. All of a stop does not, but of being late again and again only so much that a loss is noticed after the
   * widest silence and a usual one, whatever part of it is granted anyway.
   */
  #countedMs({ atMs, stoppedMs, lateMs }: LastHeard, { silenceMs }: PeerSignals): number {
    const { widestMs, silenceMs: usualMs } = this.#timing;
    return atMs + stoppedMs + Math.min(lateMs, widestMs + usualMs - silenceMs);
  }

  #meet(node: string, incarnation: number, nowMs: number): PeerSignals {
    const heard: PeerSignals = {
      agent: signAt(nowMs),
      kernel: signAt(-Infinity),
      hasSpoken: false,
      incarnation,
      reach: wholeReach,
      reachAtMs: nowMs,
      silenceMs: this.#timing.silenceMs,
      grantedUntilMs: -Infinity,
      jitter: new Jitter(this.#timing.jitterMs),
    };
    heard.silenceMs = this.#silenceFor(heard, nowMs);
    this.#heardByNode.set(node, heard);
    return heard;
  }

  /** As many heartbeats as usual, each as long as they come late: in steps, so that it is not another one each time. */
  #silenceFor({ jitter }: PeerSignals, nowMs: number): number {
    const { heartbeatMs, silenceMs, widestMs } = this.#timing;
    const lateMs = Math.max(jitter.expectedMs(nowMs), this.#lateness.expectedMs(nowMs));
    const steps = Math.ceil(((silenceMs / heartbeatMs) * lateMs) / heartbeatMs);
    return Math.max(silenceMs, Math.min(widestMs, steps * heartbeatMs));
  }
}
