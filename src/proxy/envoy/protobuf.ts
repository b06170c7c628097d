/** As much of protobuf's wire format as a question needs: fields that have a length (https://protobuf.dev/programming-guides/encoding). */

/** The values of one field of a message; what cannot be read ends it, as if nothing more had come. */
export const fieldsOf = (message: Buffer, wanted: number): Buffer[] => {
  const found: Buffer[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = message[at] ?? 0;
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.length) {
    const tag = varint();
    const kind = tag & 7;
    if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else if (kind === 2) {
      const length = varint();
      if (tag >>> 3 === wanted && at + length <= message.length) found.push(message.subarray(at, at + length));
      at += length;
    } else return found;
  }
  return found;
};

/** A field with a length. */
export const bytesField = (field: number, value: Buffer): Buffer => {
  const length: number[] = [];
  let rest = value.length;
  for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length, rest]), value]);
};
