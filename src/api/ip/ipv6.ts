/** IPv6 text and its 128-bit value. Reads every form of RFC 4291 section 2.2 and writes the one of RFC 5952. */
import { readIpv4 } from './ipv4.ts';
import { accept, type Parsed, refuse } from './reason.ts';

const GROUPS = 8;
const GROUP_FORM = /^[0-9a-f]{1,4}$/i;

/** The value of an IPv6 text without a zone. IPv4-mapped addresses are read too; address.ts decides about them. */
export const readIpv6 = (text: string): Parsed<bigint> => {
  if (text.includes('%')) {
    return refuse(text, 'ZoneId', `has a zone; write ${text.slice(0, text.indexOf('%')) || 'the address'} without it`);
  }
  const halves = text.split('::');
  const [head = '', tail] = halves;
  const isShortened = tail !== undefined;
  const before = hexGroups(head, !isShortened);
  const after = hexGroups(tail ?? '', true);
  if (halves.length > 2 || before === undefined || after === undefined) return notAnAddress(text);
  const missing = GROUPS - before.length - after.length;
  // "::" stands for at least one group of zeros; without it all eight must be there.
  if (isShortened ? missing < 1 : missing !== 0) return notAnAddress(text);
  return accept(BigInt(`0x${[...before, ...ZEROS.slice(0, missing), ...after].join('')}`));
};

/** The RFC 5952 text of a value from 0 to 2^128 - 1: lower case, no leading zeros, longest run of zeros as "::". */
export const writeIpv6 = (value: bigint): string => {
  const groups = groupsOf(value);
  const { start, length } = longestZeroRun(groups);
  // Concatenation in one pass is twice as fast here as slices and joins, and every status and script passes through it.
  let text = '';
  for (let index = 0; index < GROUPS; index += 1) {
    if (index === start && length > 1) {
      text += '::';
      index += length - 1;
    } else {
      text += text === '' || text.endsWith('::') ? '' : ':';
      text += groups[index]?.toString(16);
    }
  }
  return text;
};

const groupsOf = (value: bigint): number[] => {
  const groups: number[] = [];
  for (let shift = 96n; shift >= 0n; shift -= 32n) {
    const word = Number((value >> shift) & 0xffffffffn);
    groups.push(word >>> 16, word & 0xffff);
  }
  return groups;
};

const ZEROS: readonly string[] = Array.from({ length: GROUPS }, () => '0000');

/** The groups of one side of "::" as four hexadecimal digits each; undefined if one of them is malformed. */
const hexGroups = (side: string, mayEndInIpv4: boolean): string[] | undefined => {
  if (side === '') return [];
  const parts = side.split(':');
  const last = parts.at(-1) ?? '';
  // "64:ff9b::1.2.3.4": the last 32 bits may be written as IPv4 (RFC 4291 section 2.2.3).
  if (mayEndInIpv4 && last.includes('.')) {
    const quad = readIpv4(last);
    if (!quad.ok) return undefined;
    parts.splice(-1, 1, (quad.value >>> 16).toString(16), (quad.value & 0xffff).toString(16));
  }
  return parts.every((part) => GROUP_FORM.test(part)) ? parts.map((part) => part.padStart(4, '0')) : undefined;
};

/** The first of the longest runs of zero groups (RFC 5952 section 4.2.3). */
const longestZeroRun = (groups: readonly number[]): { start: number; length: number } => {
  const best = { start: 0, length: 0 };
  let start = 0;
  for (let index = 0; index < GROUPS; index += 1) {
    if (groups[index] !== 0) start = index + 1;
    else if (index + 1 - start > best.length) {
      best.start = start;
      best.length = index + 1 - start;
    }
  }
  return best;
};

const notAnAddress = (text: string) =>
  refuse(
    text,
    'NotAnAddress',
    'is not an IPv6 address; write eight groups of hexadecimal digits, with "::" at most once',
  );
