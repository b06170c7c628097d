/** Agenda: what will happen when. A heap; what is due at the same time happens in the order in which it was put in. */
interface Entry<T> {
  readonly atMs: number;
  readonly order: number;
  readonly what: T;
}

export class Agenda<T> {
  readonly #heap: Entry<T>[] = [];
  #order = 0;

  /** When the next thing happens; infinite when nothing will. */
  get nextAtMs(): number {
    return this.#heap[0]?.atMs ?? Infinity;
  }

  put(atMs: number, what: T): void {
    const entry = { atMs, order: this.#order, what };
    this.#order += 1;
    let place = this.#heap.length;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const other = this.#heap[above];
      if (other === undefined || isBefore(other, entry)) break;
      this.#heap[place] = other;
      place = above;
    }
    this.#heap[place] = entry;
  }

  take(): T | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (first === undefined || last === undefined || this.#heap.length === 0) return first?.what;
    const { length } = this.#heap;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      let other = this.#heap[below];
      if (other === undefined) break;
      const right = this.#heap[below + 1];
      if (below + 1 < length && right !== undefined && isBefore(right, other)) {
        below += 1;
        other = right;
      }
      if (isBefore(last, other)) break;
      this.#heap[place] = other;
      place = below;
    }
    this.#heap[place] = last;
    return first.what;
  }
}

const isBefore = (a: Entry<unknown>, b: Entry<unknown>): boolean =>
  a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
