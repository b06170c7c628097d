/**
 * False alarms: an EIP was taken from a node that was heard again a moment later. It had only been slow. Each of them within a minute
 * doubles the silence before the next take-over of that EIP, up to the widest one, so that it does not go to and fro.
 */
import type { Ip } from '../ip/index.ts';
import type { Timing } from './timing.ts';

export class FalseAlarms {
  readonly #timing: Timing;
  /** node -> what was taken from it a moment ago, and when */
  readonly #takenByNode = new Map<string, Map<Ip, number>>();
  readonly #alarmsByEip = new Map<Ip, number[]>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** An EIP has gone from a node that was not heard. */
  taken(eip: Ip, node: string, nowMs: number): void {
    const taken = this.#takenByNode.get(node) ?? new Map<Ip, number>();
    taken.set(eip, nowMs);
    this.#takenByNode.set(node, taken);
  }

  /** The same run of a node that was known is heard. */
  heard(node: string, nowMs: number): void {
    const taken = this.#takenByNode.get(node);
    if (taken === undefined) return;
    this.#takenByNode.delete(node);
    for (const [eip, atMs] of taken) {
      if (nowMs - atMs < this.#timing.falseAlarmMs) this.#alarmsByEip.set(eip, [...this.#recent(eip, nowMs), nowMs]);
    }
  }

  /** How long the owner of an EIP has to be silent before somebody else asks for it. */
  silenceMs(eip: Ip, nowMs: number): number {
    const { silenceMs, widestMs } = this.#timing;
    return this.#alarmsByEip.has(eip)
      ? Math.min(widestMs, silenceMs * 2 ** this.#recent(eip, nowMs).length)
      : silenceMs;
  }

  /** Forgets EIPs that no longer exist. */
  keepOnly(eips: ReadonlyMap<Ip, unknown>): void {
    for (const eip of this.#alarmsByEip.keys()) if (!eips.has(eip)) this.#alarmsByEip.delete(eip);
  }

  #recent(eip: Ip, nowMs: number): readonly number[] {
    const all = this.#alarmsByEip.get(eip) ?? [];
    const recent = all.filter((atMs) => nowMs - atMs < this.#timing.dampingMs).slice(-MOST);
    if (recent.length === 0) this.#alarmsByEip.delete(eip);
    return recent;
  }
}

/** More of them make no difference: the silence is as wide as it gets. */
const MOST = 10;
