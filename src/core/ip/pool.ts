/**
 * Pools of egress IPs. A pool is written as a list of entries, and a CIDR in it means "the hosts of this network":
 * the implementation that existing manifests were written for does not hand out the network and the broadcast
 * address of an IPv4 CIDR, and neither do we. An address that is named by itself or in a range is always kept.
 */
import { familyAt, type Interval } from './address.ts';
import { parseCidrMasking } from './cidr.ts';
import type { Entry } from './entry.ts';
import { type IntervalSet, parseEntries } from './interval-set.ts';
import type { Parsed } from './reason.ts';

/** The usable addresses of a pool. Host bits of a CIDR are cleared; the first bad entry refuses the pool. */
export const poolOf = (texts: readonly string[]): Parsed<IntervalSet> => parseEntries(texts, parseCidrMasking, usable);

const usable = ({ kind, interval }: Entry): Interval => {
  const { first, last } = interval;
  // A /31 is a link with two hosts (RFC 3021) and a /32 is a host: both have no address to lose.
  const hasBroadcast = kind === 'cidr' && familyAt(first) === 4 && last - first > 1n;
  return hasBroadcast ? { first: first + 1n, last: last - 1n } : interval;
};
