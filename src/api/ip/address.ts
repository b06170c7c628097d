/**
 * Ip is an address as canonical text (RFC 5952 for IPv6). Two addresses are equal exactly when their texts are, so an
 * Ip can be a map key, goes into JSON, logs and nft scripts as it is, and reads well in a failing test.
 *
 * For arithmetic every address has a position, a bigint on one line that holds both families: IPv4 at 0 to 2^32 - 1,
 * IPv6 from 2^128 on. One line means one kind of interval and one set of algorithms; the wide gap between the
 * families means that intervals of the two can never touch.
 */
import { readIpv4, writeIpv4 } from './ipv4.ts';
import { readIpv6, writeIpv6 } from './ipv6.ts';
import { accept, type Parsed, refuse } from './reason.ts';

declare const brand: unique symbol;

/** An IPv4 address: four decimal parts, no leading zeros. Made by parseIpv4, parseIp, ipOfBytes or ipAt. */
export type Ipv4 = string & { readonly [brand]: 'Ipv4' };
/** An IPv6 address in RFC 5952 form. Made by parseIpv6, parseIp, ipOfBytes or ipAt. */
export type Ipv6 = string & { readonly [brand]: 'Ipv6' };
/** An address of either family. */
export type Ip = Ipv4 | Ipv6;
/** The version number of the protocol. */
export type IpFamily = 4 | 6;
/** Positions from `first` to `last`, both included and both of one family. */
export interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

/** Address width in bits, by family. */
export const widthOf = { 4: 32, 6: 128 } as const satisfies Record<IpFamily, number>;

const IPV6_START = 1n << 128n;
// The longest address has 45 characters; a little more leaves room to explain a slip, and messages stay short.
const TEXT_LIMIT = 128;
const MAPPED_PREFIX = 0xffffn; // ::ffff:0:0/96, the value above the low 32 bits

/** Reads an address of either family. */
export const parseIp = (text: string): Parsed<Ip> => {
  const position = parsePosition(text);
  return position.ok ? accept(ipAt(position.value)) : position;
};

/** Reads an IPv4 address; an IPv6 address is refused as WrongFamily. */
export const parseIpv4 = (text: string): Parsed<Ipv4> => {
  const parsed = parseIp(text);
  if (!parsed.ok) return parsed;
  return isIpv4(parsed.value)
    ? accept(parsed.value)
    : refuse(text, 'WrongFamily', 'is an IPv6 address where an IPv4 address is asked for');
};

/** Reads an IPv6 address; an IPv4 address is refused as WrongFamily, an IPv4-mapped one as Ipv4Mapped. */
export const parseIpv6 = (text: string): Parsed<Ipv6> => {
  const parsed = parseIp(text);
  if (!parsed.ok) return parsed;
  return isIpv6(parsed.value)
    ? accept(parsed.value)
    : refuse(text, 'WrongFamily', 'is an IPv4 address where an IPv6 address is asked for');
};

/** True for an IPv4 address; for an Ip the answer is exact because only IPv6 text holds a colon. */
export const isIpv4 = (ip: Ip): ip is Ipv4 => !ip.includes(':');
/** True for an IPv6 address. */
export const isIpv6 = (ip: Ip): ip is Ipv6 => ip.includes(':');
/** The family of an address. */
export const familyOf = (ip: Ip): IpFamily => (isIpv4(ip) ? 4 : 6);

/** Orders addresses by number, IPv4 before IPv6: the order in which everything we emit is sorted. */
export const compareIps = (a: Ip, b: Ip): number => {
  const left = positionOf(a);
  const right = positionOf(b);
  return left < right ? -1 : left > right ? 1 : 0;
};

/** The position of a text that was typed by somebody, or why it has none. */
export const parsePosition = (text: string): Parsed<bigint> => {
  if (text === '') return refuse(text, 'Empty', 'is empty; write an address such as 10.6.1.21 or fd00::21');
  if (text.length > TEXT_LIMIT) return refuse(text, 'NotAnAddress', 'is longer than any address');
  if (/\s/.test(text)) return refuse(text, 'Space', 'holds a blank; write the address alone');
  if (text.includes('/'))
    return refuse(text, 'PrefixUnexpected', 'has a prefix length where a single address is asked for');
  if (!text.includes(':')) {
    const ipv4 = readIpv4(text);
    return ipv4.ok ? accept(BigInt(ipv4.value)) : ipv4;
  }
  const ipv6 = readIpv6(text);
  if (!ipv6.ok) return ipv6;
  if (ipv6.value >> 32n === MAPPED_PREFIX) {
    const plain = writeIpv4(Number(ipv6.value & 0xffffffffn));
    return refuse(text, 'Ipv4Mapped', `is an IPv4 address written as IPv6; write ${plain}`);
  }
  return accept(IPV6_START + ipv6.value);
};

/** The position of an address on the line. Total: an Ip that cannot be read is a bug and throws. */
export const positionOf = (ip: Ip): bigint => {
  const read = isIpv4(ip) ? readIpv4(ip) : readIpv6(ip);
  if (!read.ok) throw new Error(`not made by this module: ${read.message}`);
  return typeof read.value === 'number' ? BigInt(read.value) : IPV6_START + read.value;
};

/** The bytes of an address in the order of the network: 4 or 16. */
export const ipBytes = (ip: Ip): Uint8Array => {
  if (isIpv4(ip)) return new Uint8Array(ip.split('.').map(Number));
  // An Ip is well formed, so its groups can be taken as they are: half the time of going through its position.
  const view = new DataView(new ArrayBuffer(16));
  const [head = '', tail] = ip.split('::');
  writeGroups(view, 0, head.split(':'));
  const after = tail?.split(':') ?? [];
  writeGroups(view, 16 - 2 * after.length, after);
  return new Uint8Array(view.buffer);
};

/** An empty side of "::" is one group without digits, which is written as zero. */
const writeGroups = (view: DataView, at: number, groups: readonly string[]): void => {
  for (const [index, digits] of groups.entries()) view.setUint16(at + 2 * index, Number.parseInt(digits, 16));
};

/** The address of 4 or 16 bytes. Undefined for any other number of bytes, and for an IPv4-mapped one, which is no Ip. */
export const ipOfBytes = (bytes: Uint8Array): Ip | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length === 4) return ipAt(BigInt(view.getUint32(0)));
  if (bytes.length !== 16) return undefined;
  const value = (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
  return value >> 32n === MAPPED_PREFIX ? undefined : ipAt(IPV6_START + value);
};

/** The family that a position lies in. */
export const familyAt = (position: bigint): IpFamily => (position < IPV6_START ? 4 : 6);

/** The address at a position that lies inside one of the families. */
export const ipAt = (position: bigint): Ip =>
  // The two writers give canonical text, which is what the brands stand for: this is the only place that makes one.
  familyAt(position) === 4 ? (writeIpv4(Number(position)) as Ipv4) : (writeIpv6(position - IPV6_START) as Ipv6);
