/**
 * Notices: a node that takes EIPs over tells every node of the cluster, so that packets go to it at once. A notice is
 * repeated, less and less often, until it is noted; and slowly for as long as the API does not know, for nodes that
 * start meanwhile.
 */
import type { Ip } from '../ip/index.ts';
import { type Context, EIPS_PER_MESSAGE } from './context.ts';
import type { Holding, Notice } from './message.ts';

/** One notice and who has not noted it yet. */
interface PendingNotice {
  readonly notice: Notice;
  readonly unnoted: Set<string>;
  nextAtMs: number;
  delayMs: number;
}

/** The delay doubles up to this many heartbeats. */
const SLOWEST = 200;

export class Notices {
  readonly #context: Context;
  readonly #roundBySequence = new Map<number, PendingNotice>();
  readonly #toldEpochByEip = new Map<Ip, number>();
  #sequence = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /** When the next repetition is due. */
  get nextAtMs(): number {
    let nextAtMs = Infinity;
    for (const round of this.#roundBySequence.values()) nextAtMs = Math.min(nextAtMs, round.nextAtMs);
    return nextAtMs;
  }

  /** Tells about EIPs that are owned since the last call, and repeats what is due. */
  pass(hasChanged: boolean, nowMs: number): void {
    if (hasChanged) this.#begin(nowMs);
    for (const [sequence, round] of [...this.#roundBySequence]) {
      if (nowMs < round.nextAtMs) continue;
      if (!round.notice.holdings.some((holding) => this.#isWorthTelling(holding)) || round.unnoted.size === 0) {
        this.#roundBySequence.delete(sequence);
        continue;
      }
      for (const node of round.unnoted) this.#context.send(node, round.notice);
      round.nextAtMs = nowMs + round.delayMs;
      round.delayMs = Math.min(2 * round.delayMs, SLOWEST * this.#context.timing.heartbeatMs);
    }
  }

  /** A node has noted a notice. */
  noted(node: string, sequence: number): void {
    this.#roundBySequence.get(sequence)?.unnoted.delete(node);
  }

  /** A node has started anew, and knows only what the API says. */
  started(node: string, nowMs: number): void {
    for (const round of this.#roundBySequence.values()) {
      round.unnoted.add(node);
      round.nextAtMs = Math.min(round.nextAtMs, nowMs);
    }
  }

  #begin(nowMs: number): void {
    const { holdings, node, plan, timing } = this.#context;
    const news: Holding[] = [];
    for (const { eip, epoch, state } of holdings.all) {
      if (state !== 'owned' || this.#toldEpochByEip.get(eip) === epoch) continue;
      this.#toldEpochByEip.set(eip, epoch);
      if (this.#isWorthTelling({ eip, epoch })) news.push({ eip, epoch });
    }
    const others = plan.nodes.filter((name) => name !== node);
    for (let start = 0; start < news.length && others.length > 0; start += EIPS_PER_MESSAGE) {
      this.#sequence += 1;
      const part = news.slice(start, start + EIPS_PER_MESSAGE);
      this.#roundBySequence.set(this.#sequence, {
        notice: { kind: 'notice', sequence: this.#sequence, holdings: part },
        unnoted: new Set(others),
        nextAtMs: nowMs,
        delayMs: timing.heartbeatMs,
      });
    }
  }

  /** Whether this node owns it and the API does not know: a plan of this epoch that names this node says it to everybody. */
  #isWorthTelling({ eip, epoch }: Holding): boolean {
    const own = this.#context.holdings.get(eip);
    if (own?.state !== 'owned' || own.epoch !== epoch) return false;
    const planned = this.#context.plannedByEip.get(eip);
    return planned === undefined || planned.epoch < epoch || planned.candidates[0] !== this.#context.node;
  }
}
