/** A window over the packet numbers of one sender: each is let through once, and none that is much older than the newest. */

/** Packets may overtake each other by this many. Numbers grow by some hundreds a second, so that is tens of milliseconds. */
const WIDTH = 32;

export class ReplayWindow {
  #highest: number;
  /** Bit n is set when `#highest - n` was seen. */
  #seen = 1;

  /** Begins with a packet that was seen. */
  constructor(first: number) {
    this.#highest = first;
  }

  /** Whether the number is new; it counts as seen from now on. */
  isNew(number: number): boolean {
    const ahead = number - this.#highest;
    if (ahead > 0) {
      this.#seen = ahead < WIDTH ? (this.#seen << ahead) | 1 : 1;
      this.#highest = number;
      return true;
    }
    const bit = -ahead < WIDTH ? 1 << -ahead : 0;
    if (bit === 0 || (this.#seen & bit) !== 0) return false;
    this.#seen |= bit;
    return true;
  }
}
