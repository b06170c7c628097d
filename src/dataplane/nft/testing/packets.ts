/** Netlink packets as the kernel sends them for a transaction of nftables, for the fake feed and the tests of the monitor. */

import { attribute, message, netfilterHead, text } from '../../netlink/message.ts';

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
  const named = text(1, table);
  const change = concernsChains
    ? message(NEWRULE, 0, [netfilterHead(INET), named, text(2, 'arrive')])
    : message(DELSETELEM, 0, [netfilterHead(INET), named, text(2, 'pod4')]);
  const signed = signatures.map((signature) => {
    const key = attribute(1, attribute(1, number(signature, 'LE')));
    return message(NEWSETELEM, 0, [
      netfilterHead(INET),
      named,
      text(2, 'signatures'),
      attribute(0x8003, attribute(0x8001, key)),
    ]);
  });
  const end = message(NEWGEN, 0, [
    netfilterHead(0),
    attribute(1, number(1, 'BE')),
    attribute(2, number(pid, 'BE')),
    text(3, program),
  ]);
  return [Buffer.concat([change, ...signed]), end];
};

const number = (value: number, order: 'LE' | 'BE'): Buffer => {
  const bytes = Buffer.alloc(4);
  if (order === 'LE') bytes.writeUInt32LE(value);
  else bytes.writeUInt32BE(value);
  return bytes;
};
