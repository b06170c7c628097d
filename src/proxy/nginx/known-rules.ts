/**
 * InternedRules has the ids of rules by their bytes, so that a line of the log needs no text made for it. Rules come and go, and lines
 * do not tell which are gone: when it knows very many it forgets all of them, and knows those in use again at their next line.
 */

export class InternedRule {
  readonly id: string;
  readonly length: number;
  readonly #bytes: Buffer;
  /** The bytes, four at a time; the last four are told twice in part. */
  readonly #words: Int32Array;

  constructor(bytes: Buffer) {
    this.id = bytes.toString('latin1');
    this.length = bytes.length;
    this.#bytes = bytes;
    this.#words = Int32Array.from({ length: Math.ceil(bytes.length / 4) }, (_, index) =>
      bytes.length < 4 ? 0 : bytes.readInt32BE(this.#placeOf(index)),
    );
  }

  equals(bytes: Buffer): boolean {
    return this.#bytes.equals(bytes);
  }

  /** Whether the id is there, and `end` behind it. May say no of an id of less than four bytes. */
  isAt(view: DataView, at: number, end: number): boolean {
    if (this.length < 4 || at + this.length >= view.byteLength || view.getUint8(at + this.length) !== end) return false;
    const words = this.#words;
    for (let index = 0; index < words.length; index += 1) {
      if (view.getInt32(at + this.#placeOf(index)) !== words[index]) return false;
    }
    return true;
  }

  #placeOf(index: number): number {
    return Math.min(index * 4, this.length - 4);
  }
}

/** Far more than the rules that have such lines at a time (render-hosts.ts). */
export const MOST_INTERNED = 1024;

export class InternedRules {
  /** Rules by a sum of their bytes. */
  readonly #bySum = new Map<number, readonly InternedRule[]>();
  #count = 0;

  /** How many are known now. */
  get count(): number {
    return this.#count;
  }

  /** The rule whose id begins there and ends before the byte `end`, or with the bytes. */
  at(bytes: Buffer, from: number, end: number): InternedRule {
    let sum = 0;
    let to = from;
    for (; to < bytes.length && bytes[to] !== end; to += 1) sum = (sum * 31 + (bytes[to] ?? 0)) | 0;
    const own = bytes.subarray(from, to);
    const found = this.#bySum.get(sum)?.find((rule) => rule.equals(own));
    return found ?? this.#learn(sum, own);
  }

  #learn(sum: number, own: Buffer): InternedRule {
    if (this.#count >= MOST_INTERNED) {
      this.#bySum.clear();
      this.#count = 0;
    }
    // The bytes of a line belong to somebody else soon.
    const rule = new InternedRule(Buffer.from(own));
    this.#bySum.set(sum, [...(this.#bySum.get(sum) ?? []), rule]);
    this.#count += 1;
    return rule;
  }
}
