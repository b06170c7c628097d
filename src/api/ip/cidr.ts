/** Cidr is a block of addresses as canonical text: network address, slash, prefix length, no host bits. */
import {
  familyAt,
  type Interval,
  type Ip,
  type IpFamily,
  ipAt,
  parsePosition,
  positionOf,
  widthOf,
} from './address.ts';
import { accept, type Parsed, refuse } from './reason.ts';

declare const brand: unique symbol;

/** A block such as 10.6.1.0/24 or fd00::/64. Made by parseCidr, parseCidrMasking or cidrOf. */
export type Cidr = string & { readonly [brand]: 'Cidr' };

/** parseCidr or parseCidrMasking: what a list reader does with host bits is its caller's choice. */
export type CidrParser = (text: string) => Parsed<Cidr>;

/** Reads a CIDR and refuses host bits, because 10.6.1.21/24 is often a slip for 10.6.1.21. */
export const parseCidr: CidrParser = (text) => {
  const parts = splitCidr(text);
  if (!parts.ok) return parts;
  const { position, prefixLength } = parts.value;
  const cidr = cidrOf(position, prefixLength);
  if (intervalOfCidr(cidr).first === position) return accept(cidr);
  const address = ipAt(position);
  return refuse(
    text,
    'HostBitsSet',
    `has bits set behind the prefix; write ${cidr} for the block or ${address} for the address`,
  );
};

/** Reads a CIDR and clears host bits, as Go's net.ParseCIDR does: manifests written for other programs rely on it. */
export const parseCidrMasking: CidrParser = (text) => {
  const parts = splitCidr(text);
  return parts.ok ? accept(cidrOf(parts.value.position, parts.value.prefixLength)) : parts;
};

/** The block of `prefixLength` bits that the position lies in. */
export const cidrOf = (position: bigint, prefixLength: number): Cidr => {
  const hostBits = BigInt(widthOf[familyAt(position)] - prefixLength);
  // Masked address and plain decimal number: the canonical text that the brand stands for.
  return `${ipAt((position >> hostBits) << hostBits)}/${prefixLength}` as Cidr;
};

/** The number of leading bits that all addresses of the block share. */
export const prefixLengthOf = (cidr: Cidr): number => Number(cidr.slice(cidr.indexOf('/') + 1));

/** The family of a block. */
export const familyOfCidr = (cidr: Cidr): IpFamily => (cidr.includes(':') ? 6 : 4);

/** All addresses of the block, network and broadcast included. */
export const intervalOfCidr = (cidr: Cidr): Interval => {
  // A Cidr starts with a canonical address by construction.
  const first = positionOf(cidr.slice(0, cidr.indexOf('/')) as Ip);
  return { first, last: first + (1n << BigInt(widthOf[familyOfCidr(cidr)] - prefixLengthOf(cidr))) - 1n };
};

const splitCidr = (text: string): Parsed<{ position: bigint; prefixLength: number }> => {
  const slash = text.indexOf('/');
  const position = parsePosition(slash < 0 ? text : text.slice(0, slash));
  if (!position.ok) return position;
  const family = familyAt(position.value);
  if (slash < 0)
    return refuse(text, 'PrefixMissing', `has no prefix length; write ${text}/${widthOf[family]} for this one address`);
  const prefix = text.slice(slash + 1);
  const prefixLength = Number(prefix);
  if (!/^(0|[1-9]\d{0,2})$/.test(prefix) || prefixLength > widthOf[family]) {
    return refuse(
      text,
      'PrefixInvalid',
      `needs a prefix length from 0 to ${widthOf[family]} for IPv${family}, without leading zeros`,
    );
  }
  return accept({ position: position.value, prefixLength });
};
