/**
 * LineSplitter cuts the byte stream of a watch into lines. A line that lies within one chunk is decoded straight
 * from it; only a line that crosses chunks is joined first. UTF-8 never has a newline byte inside a character,
 * so lines can be cut before they are decoded.
 */
const newline = 0x0a;

export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #partsBytes = 0;

  /** A line longer than `maxBytes` makes push() throw a RangeError. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Yields the lines that this chunk completes, without empty ones. Read all of them before the next push. */
  *push(chunk: Buffer): Generator<string, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const line = this.#partsBytes === 0 ? chunk.toString('utf8', start, end) : this.#join(chunk.subarray(start, end));
      start = end + 1;
      if (line !== '') yield line;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #keep(rest: Buffer): void {
    this.#parts.push(rest);
    this.#partsBytes += rest.length;
    if (this.#partsBytes > this.#maxBytes) throw new RangeError(`a line is longer than ${this.#maxBytes} bytes`);
  }

  #join(end: Buffer): string {
    const line = Buffer.concat([...this.#parts, end], this.#partsBytes + end.length).toString('utf8');
    this.#parts = [];
    this.#partsBytes = 0;
    return line;
  }
}
