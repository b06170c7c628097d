/** A time in which questions were not answered. */
export interface Outage {
  /** When the first question that failed was asked. */
  readonly fromMs: number;
  /** When the next question that was answered was asked; absent if none was yet. */
  readonly toMs?: number;
  readonly failed: number;
}

/** What became of each question, by the time it was asked. Answers may come in any order. */
export class Outages {
  readonly #askedAtMs: number[] = [];
  readonly #failedAtMs: number[] = [];

  add(askedAtMs: number, isAnswered: boolean): void {
    (isAnswered ? this.#askedAtMs : this.#failedAtMs).push(askedAtMs);
  }

  /** The outages in the order of time. */
  list(): Outage[] {
    const answered = this.#askedAtMs.toSorted((one, other) => one - other);
    const found: { fromMs: number; toMs?: number; failed: number }[] = [];
    let next = 0;
    for (const failedAtMs of this.#failedAtMs.toSorted((one, other) => one - other)) {
      while ((answered[next] ?? Number.POSITIVE_INFINITY) <= failedAtMs) next += 1;
      const last = found.at(-1);
      const toMs = answered[next];
      // Nothing was answered between the last failure and this one: it is the same outage.
      if (last !== undefined && last.toMs === toMs) last.failed += 1;
      else found.push({ fromMs: failedAtMs, failed: 1, ...(toMs === undefined ? {} : { toMs }) });
    }
    return found;
  }
}
