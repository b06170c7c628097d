/**
 * Bytes of a DNS message (RFC 1035 section 4), read with every bound checked and written without compression. Only this
 * file touches offsets. Bytes that break a rule end in Malformed, which message.ts turns into a value.
 */

/** Thrown inside the codec only; the two decode functions of message.ts catch it. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}

/** A name on the wire has at most 255 bytes, length bytes included (RFC 1035 section 3.1). */
const MAX_NAME_BYTES = 255;
const MAX_LABEL_BYTES = 63;
const POINTER = 0xc0;

/** Reads from front to back; nothing is read twice except through a name's pointers, which only lead back. */
export class WireReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.length;
  }

  number(size: 1 | 2 | 4): number {
    const start = this.#advance(size);
    return this.#bytes.readUIntBE(start, size);
  }

  bytes(size: number): Buffer {
    const start = this.#advance(size);
    return this.#bytes.subarray(start, start + size);
  }

  /** A name in lower case with dots between labels and none at the end; the root is the empty text. */
  domain(): string {
    const labels: string[] = [];
    let cursor = this.#offset;
    let end: number | undefined;
    // A pointer must lead to before everything that was read of this name, so a loop is impossible.
    let floor = cursor;
    let total = 1;
    for (;;) {
      const length = this.#at(cursor);
      if (length === 0) break;
      if ((length & POINTER) === POINTER) {
        const target = ((length & ~POINTER) << 8) | this.#at(cursor + 1);
        end ??= cursor + 2;
        if (target >= floor) throw new Malformed('a pointer in a name leads forward');
        floor = target;
        cursor = target;
        continue;
      }
      if (length > MAX_LABEL_BYTES) throw new Malformed('a label has an unknown kind');
      total += length + 1;
      if (total > MAX_NAME_BYTES) throw new Malformed('a name is longer than 255 bytes');
      if (cursor + 1 + length > this.#bytes.length) throw new Malformed('the message ends inside a name');
      labels.push(labelText(this.#bytes.subarray(cursor + 1, cursor + 1 + length)));
      cursor += length + 1;
    }
    this.#offset = end ?? cursor + 1;
    return labels.join('.');
  }

  /** A reader of the next `size` bytes whose names may still point back into the whole message. */
  slice(size: number): WireReader {
    const start = this.#advance(size);
    const reader = new WireReader(this.#bytes.subarray(0, start + size));
    reader.#offset = start;
    return reader;
  }

  #advance(size: number): number {
    const start = this.#offset;
    if (start + size > this.#bytes.length) throw new Malformed('the message is too short');
    this.#offset = start + size;
    return start;
  }

  #at(offset: number): number {
    const byte = this.#bytes[offset];
    if (byte === undefined) throw new Malformed('the message ends inside a name');
    return byte;
  }
}

/** Collects the parts of a message. */
export class WireWriter {
  readonly #parts: Uint8Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  number(value: number, size: 1 | 2 | 4): this {
    const part = Buffer.alloc(size);
    part.writeUIntBE(value, 0, size);
    return this.bytes(part);
  }

  bytes(part: Uint8Array): this {
    this.#parts.push(part);
    this.#size += part.length;
    return this;
  }

  /** A name as the reader gives it. One that does not fit on the wire is a bug of the caller and throws. */
  domain(name: string): this {
    if (name !== '') {
      for (const label of name.split('.')) {
        const part = labelBytes(label);
        if (part.length < 1 || part.length > MAX_LABEL_BYTES) throw new Malformed(`the name ${name} has a bad label`);
        this.number(part.length, 1).bytes(part);
      }
    }
    return this.number(0, 1);
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

const PLAIN_LABEL = /^[A-Za-z0-9_-]+$/;

/**
 * Bytes that no host name has become \DDD as in zone files, dots inside a label too: such a text equals no name of a rule,
 * and it can be written back.
 */
const labelText = (label: Buffer): string => {
  const text = label.toString('latin1');
  if (PLAIN_LABEL.test(text)) return text.toLowerCase();
  return [...label]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return PLAIN_LABEL.test(character) ? character.toLowerCase() : `\\${String(byte).padStart(3, '0')}`;
    })
    .join('');
};

const labelBytes = (label: string): Buffer =>
  Buffer.from(
    label.replace(/\\(\d{3})/g, (_all, digits: string) => String.fromCharCode(Number(digits))),
    'latin1',
  );
