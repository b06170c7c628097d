/**
 * LineTime gives a line of the log its time. nginx tells the end of a request in seconds, and a line tells when it began, in words
 * of the same length. Lines come in order of time, more or less, so both are known but for the last digits: four bytes are compared
 * and written at a time.
 */

const SECOND_DIGITS = 10;
const ZERO = 0x30;
const DOT = 0x2e;
const Z = 0x5a;
/** Words of four bytes in a time, but for the last one, which has the thousandths. */
const WORDS = 5;

export class LineTime {
  /** The second in which the last line ended, and the bytes that tell it. */
  #endSecond = 0;
  readonly #endWords = new Int32Array(3);
  /** The second in which the last line began, and the words that tell it. */
  #second = Number.NaN;
  readonly #words = new Int32Array(WORDS);

  /** Writes the begin of a request that took `ms` in the place of its end; false if there is no end. */
  write(view: DataView, at: number, ms: number): boolean {
    if (view.getUint8(at + SECOND_DIGITS) !== DOT) return false;
    this.#readEnd(view, at);
    const fraction = at + SECOND_DIGITS + 1;
    const endMs = digit(view, fraction) * 100 + digit(view, fraction + 1) * 10 + digit(view, fraction + 2);
    let second = this.#endSecond;
    let rest = endMs - ms;
    if (rest < 0) {
      const borrowed = Math.ceil(-rest / 1000);
      second -= borrowed;
      rest += borrowed * 1000;
    }
    if (second !== this.#second) this.#begin(second);
    for (let index = 0; index < WORDS; index += 1) view.setInt32(at + index * 4, this.#words[index] ?? 0);
    const hundreds = Math.floor(rest / 100);
    const tens = Math.floor((rest - hundreds * 100) / 10);
    const ones = rest - hundreds * 100 - tens * 10;
    view.setInt32(at + WORDS * 4, ((ZERO + hundreds) << 24) | ((ZERO + tens) << 16) | ((ZERO + ones) << 8) | Z);
    return true;
  }

  #readEnd(view: DataView, at: number): void {
    const words = this.#endWords;
    const last = at + SECOND_DIGITS - 4;
    if (view.getInt32(at) === words[0] && view.getInt32(at + 4) === words[1] && view.getInt32(last) === words[2])
      return;
    words[0] = view.getInt32(at);
    words[1] = view.getInt32(at + 4);
    words[2] = view.getInt32(last);
    let second = 0;
    for (let index = 0; index < SECOND_DIGITS; index += 1) second = second * 10 + digit(view, at + index);
    this.#endSecond = second;
  }

  #begin(second: number): void {
    this.#second = second;
    const text = Buffer.from(new Date(second * 1000).toISOString(), 'latin1');
    for (let index = 0; index < WORDS; index += 1) this.#words[index] = text.readInt32BE(index * 4);
  }
}

const digit = (view: DataView, at: number): number => view.getUint8(at) - ZERO;
