/** Netlink packets as the kernel sends them for a transaction of nftables, for the fake feed and the tests of the monitor. */

/** A transaction: what it changed and who made it. */
export interface Transaction {
  readonly table: string;
  /** False: only elements were changed. */
  readonly concernsChains: boolean;
  /** Marks that were added to the set of signatures. */
  readonly signatures: readonly number[];
  readonly program: string;
  readonly pid: number;
}

const INET = 1;
const NEWRULE = 0x0a06;
const NEWSETELEM = 0x0a0c;
const DELSETELEM = 0x0a0e;
const NEWGEN = 0x0a0f;

/** The packets of one transaction: its changes, then its end. */
export const packetsOf = ({ table, concernsChains, signatures, program, pid }: Transaction): readonly Buffer[] => {
  const named = attribute(1, text(table));
  const change = concernsChains
    ? message(NEWRULE, INET, [named, attribute(2, text('arrive'))])
    : message(DELSETELEM, INET, [named, attribute(2, text('pod4'))]);
  const signed = signatures.map((signature) => {
    const key = attribute(1, attribute(1, number(signature, 'LE')));
    return message(NEWSETELEM, INET, [
      named,
      attribute(2, text('signatures')),
      attribute(0x8003, attribute(0x8001, key)),
    ]);
  });
  const end = message(NEWGEN, 0, [
    attribute(1, number(1, 'BE')),
    attribute(2, number(pid, 'BE')),
    attribute(3, text(program)),
  ]);
  return [Buffer.concat([change, ...signed]), end];
};

const message = (type: number, family: number, attributes: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(attributes);
  const header = Buffer.alloc(20);
  header.writeUInt32LE(header.length + body.length, 0);
  header.writeUInt16LE(type, 4);
  header.writeUInt8(family, 16);
  return Buffer.concat([header, body]);
};

const attribute = (type: number, value: Buffer): Buffer => {
  const bytes = Buffer.alloc((4 + value.length + 3) & ~3);
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  value.copy(bytes, 4);
  return bytes;
};

const text = (value: string): Buffer => Buffer.from(`${value}\0`, 'latin1');

const number = (value: number, order: 'LE' | 'BE'): Buffer => {
  const bytes = Buffer.alloc(4);
  if (order === 'LE') bytes.writeUInt32LE(value);
  else bytes.writeUInt32BE(value);
  return bytes;
};
