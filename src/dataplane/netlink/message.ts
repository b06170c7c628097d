/** Messages of netlink(7), written and read as bytes. Read Message and `message` first. */

// From linux/netlink.h; alike on x86_64 and arm64.
/** Bits that say what is wanted of the kernel. */
export const flags = { request: 0x1, ack: 0x4, replace: 0x100, exclusive: 0x200, create: 0x400, dump: 0x300 } as const;
const ERROR = 2;
const DONE = 3;
/** An attribute that holds others may say so in a bit of its type. */
export const NESTED = 0x8000;
/** The rest of a type; the top two bits are flags. */
export const TYPE_MASK = 0x3fff;

/** Bytes before the body of a message. */
export const HEADER_BYTES = 16;
/** Bytes before the first attribute of a message about netfilter, which begins with family, version and resource. */
export const NETFILTER_BYTES = HEADER_BYTES + 4;
/** Bytes before the value of an attribute. */
export const ATTRIBUTE_BYTES = 4;

/** The place after so many bytes at which a message or an attribute may begin: a multiple of four. */
export const aligned = (length: number): number => (length + 3) & ~3;

/** A message to the kernel, with the sequence number zero. */
export const message = (type: number, wanted: number, parts: readonly Uint8Array[]): Buffer => {
  const bytes = Buffer.concat([Buffer.alloc(HEADER_BYTES), ...parts]);
  bytes.writeUInt32LE(bytes.length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt16LE(wanted, 6);
  return bytes;
};

/** What the body of a message about netfilter begins with (linux/netfilter/nfnetlink.h). */
export const netfilterHead = (family: number, resource = 0): Buffer =>
  Buffer.from([family, 0, resource >> 8, resource & 0xff]);

/** One attribute. */
export const attribute = (type: number, value: Uint8Array): Buffer => {
  const length = ATTRIBUTE_BYTES + value.length;
  const bytes = Buffer.alloc(aligned(length));
  bytes.writeUInt16LE(length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(value, ATTRIBUTE_BYTES);
  return bytes;
};

/** An attribute that holds others. */
export const nested = (type: number, parts: readonly Buffer[]): Buffer =>
  attribute(type | NESTED, Buffer.concat(parts));

/** An attribute with a text, which ends with a zero byte. */
export const text = (type: number, value: string): Buffer => attribute(type, Buffer.from(`${value}\0`, 'latin1'));

/** A message in a piece that the kernel sent. */
export interface NetlinkMessage {
  readonly type: number;
  readonly sequence: number;
  /** Where it begins in the piece, and where it ends. */
  readonly start: number;
  readonly end: number;
}

/** Calls back for each whole message in a piece that the kernel sent. */
export const eachMessage = (bytes: Buffer, visit: (message: NetlinkMessage) => void): void => {
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < HEADER_BYTES || at + length > bytes.length) return;
    visit({ type: bytes.readUInt16LE(at + 4), sequence: bytes.readUInt32LE(at + 8), start: at, end: at + length });
    at += aligned(length);
  }
};

/** The error number, without the kernel's minus, of a message that answers a request; zero means that all is well, undefined that it is another message. */
export const answerIn = (bytes: Buffer, { type, start, end }: NetlinkMessage): number | undefined => {
  if (type === DONE) return 0;
  return type === ERROR && end - start >= HEADER_BYTES + 4
    ? Math.abs(bytes.readInt32LE(start + HEADER_BYTES))
    : undefined;
};

/**
 * Calls back for each attribute between two places, with its type and where its value begins and ends. False when one is cut;
 * then those before it have been told.
 */
export const eachAttribute = (
  bytes: Buffer,
  start: number,
  end: number,
  visit: (type: number, value: number, valueEnd: number) => void,
): boolean => {
  for (let at = start; at + ATTRIBUTE_BYTES <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < ATTRIBUTE_BYTES || at + length > end) return false;
    visit(bytes.readUInt16LE(at + 2) & TYPE_MASK, at + ATTRIBUTE_BYTES, at + length);
    at += aligned(length);
  }
  return true;
};
