/**
 * Reading of address text, for the checks of the schemas only. The verdicts equal those of the API server's CEL
 * functions `isIP` and `isCIDR`: no leading zeros, no zone, no IPv4-mapped IPv6 address. Arithmetic on address sets
 * lives in src/core; this folder may not import it.
 */
import { isIPv4, isIPv6 } from 'node:net';

/** The IP version. */
export type Family = 4 | 6;

/** Interval is what one entry of an address list covers; `form` is how the user wrote it. */
export interface Interval {
  readonly form: 'address' | 'range' | 'cidr';
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** Returns the family and value of an address, undefined when the text is not exactly one address. */
export function readAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { family: 4, value: join(text.split('.').map(Number), 8n) };
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const value = join(groupsOf(text), 16n);
  return value >> 32n === 0xffffn ? undefined : { family: 6, value };
}

/** Returns what an address, an `a-b` range or a CIDR covers; undefined for anything else, a reversed range too. */
export function readInterval(text: string): Interval | undefined {
  if (text.includes('-')) return readRange(text);
  if (text.includes('/')) return readCidr(text);
  const address = readAddress(text);
  return address && { form: 'address', family: address.family, first: address.value, last: address.value };
}

/** Tells whether the text is a range of two addresses of one family, whatever their order. */
export function isRangeText(text: string): boolean {
  const [from, to] = endsOf(text);
  return from !== undefined && to !== undefined && from.family === to.family;
}

function readRange(text: string): Interval | undefined {
  const [from, to] = endsOf(text);
  if (!from || !to || from.family !== to.family || from.value > to.value) return undefined;
  return { form: 'range', family: from.family, first: from.value, last: to.value };
}

function endsOf(text: string): readonly [Address | undefined, Address | undefined] {
  const dash = text.indexOf('-');
  if (dash < 0) return [undefined, undefined];
  return [readAddress(text.slice(0, dash)), readAddress(text.slice(dash + 1))];
}

function readCidr(text: string): Interval | undefined {
  const slash = text.indexOf('/');
  const address = readAddress(text.slice(0, slash));
  const length = text.slice(slash + 1);
  const bits = address?.family === 4 ? 32 : 128;
  if (!address || !/^(0|[1-9][0-9]{0,2})$/.test(length) || Number(length) > bits) return undefined;
  const hostBits = BigInt(bits - Number(length));
  const first = (address.value >> hostBits) << hostBits;
  return { form: 'cidr', family: address.family, first, last: first + (1n << hostBits) - 1n };
}

function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const left = hexGroups(head);
  const right = tail === undefined ? [] : hexGroups(tail);
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
}

function hexGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

function join(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) | BigInt(part), 0n);
}
