/**
 * Hearing: when this node last heard which other one, and what follows from it. An agent is heard by its messages, a
 * kernel by its echoes. All times are of the own clock.
 */
import type { Timing } from './timing.ts';

interface Heard {
  agentAtMs: number;
  kernelAtMs: number;
  incarnation: number;
  hasUplink: boolean;
}

export class Hearing {
  readonly #node: string;
  readonly #timing: Timing;
  readonly #heardByNode = new Map<string, Heard>();

  constructor(node: string, timing: Timing) {
    this.#node = node;
    this.#timing = timing;
  }

  /** A message of an agent came. Returns true when it is the first one of this run of that agent. */
  hear(node: string, incarnation: number, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    if (heard === undefined) {
      this.#heardByNode.set(node, { agentAtMs: nowMs, kernelAtMs: -Infinity, incarnation, hasUplink: true });
      return true;
    }
    heard.agentAtMs = nowMs;
    if (heard.incarnation === incarnation) return false;
    heard.incarnation = incarnation;
    return true;
  }

  /** Counts a node of which we know only from hearsay as heard now, so that it has the time of a silence to speak up. */
  presume(node: string, nowMs: number): void {
    if (node !== this.#node && !this.#heardByNode.has(node)) {
      this.#heardByNode.set(node, { agentAtMs: nowMs, kernelAtMs: -Infinity, incarnation: -1, hasUplink: true });
    }
  }

  setUplink(node: string, hasUplink: boolean): void {
    const heard = this.#heardByNode.get(node);
    if (heard !== undefined) heard.hasUplink = hasUplink;
  }

  hearKernel(node: string, nowMs: number): void {
    const heard = this.#heardByNode.get(node);
    if (heard !== undefined) heard.kernelAtMs = nowMs;
  }

  /** We were held up for so long: what was sent to us meanwhile may still be unread, so nobody was silent then. */
  forgive(lateMs: number, nowMs: number): void {
    for (const heard of this.#heardByNode.values()) {
      heard.agentAtMs = Math.min(nowMs, heard.agentAtMs + lateMs);
      heard.kernelAtMs = Math.min(nowMs, heard.kernelAtMs + lateMs);
    }
  }

  /** Whether the agent was heard within the silence; we hear ourselves. */
  isHeard(node: string, nowMs: number): boolean {
    if (node === this.#node) return true;
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - heard.agentAtMs < this.#timing.silenceMs;
  }

  hasUplink(node: string): boolean {
    return this.#heardByNode.get(node)?.hasUplink ?? false;
  }

  /** Until when the node counts as there, by what was heard so far: its agent, or for the grace its kernel alone. */
  aliveUntilMs(node: string): number {
    if (node === this.#node) return Infinity;
    const heard = this.#heardByNode.get(node);
    if (heard === undefined) return -Infinity;
    const { silenceMs, graceMs } = this.#timing;
    const byKernelMs = Math.min(heard.kernelAtMs + silenceMs, heard.agentAtMs + graceMs);
    return Math.max(heard.agentAtMs + silenceMs, byKernelMs);
  }

  /** Whether the node counts as there: while it does, nobody gets a vote that it has. */
  isAlive(node: string, nowMs: number): boolean {
    return nowMs < this.aliveUntilMs(node);
  }

  /** Whether its kernel should be asked: the agent is overdue, and its grace is not over. */
  isOverdue(node: string, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - heard.agentAtMs >= this.#timing.askKernelMs && this.hasGrace(node, nowMs);
  }

  /** Whether its agent was heard so recently that its kernel still stands for it. */
  hasGrace(node: string, nowMs: number): boolean {
    const heard = this.#heardByNode.get(node);
    return heard !== undefined && nowMs - heard.agentAtMs < this.#timing.graceMs;
  }
}
