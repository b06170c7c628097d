/**
 * Signatures tell our own changes of the table from those of others: each of our transactions adds one to a set of the
 * table, and whoever watches hears it with the change. A process has 65,536 of them, begins anew when it has used them
 * all, and lends half of them to other parts of the process.
 */

/** How many signatures a process has: each stays in the table for seconds only. */
const EACH = 0x10000;
/** How many of them are for others: the second half. */
export const LENT_SIGNATURES = 0x8000;

export class Signatures {
  /** The first of ours. Another process, such as the one before a restart, has other ones. */
  readonly #first: number;
  #used = 0;

  /** `random` gives a number from 0 up to 1. */
  constructor(random: () => number) {
    this.#first = Math.floor(random() * 0x10000) * EACH;
  }

  /** The first of those that are lent. */
  get firstLent(): number {
    return this.#first + LENT_SIGNATURES;
  }

  /** One that no other change has carried for a while. */
  next(): number {
    this.#used = (this.#used + 1) % (EACH - LENT_SIGNATURES);
    return this.#first + this.#used;
  }

  /** True for those of this process, also for those that it lends. */
  isOwn(signature: number): boolean {
    return signature >= this.#first && signature < this.#first + EACH;
  }
}
