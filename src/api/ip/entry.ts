/** Entry is one line of a list as users write it in pools and subnets: an address, a CIDR or a range first-last. */
import { familyAt, type Interval, ipAt, parsePosition } from './address.ts';
import { type CidrParser, intervalOfCidr } from './cidr.ts';
import { accept, type Parsed, refuse } from './reason.ts';

/** The addresses of one entry, and the form it was written in: pools treat a CIDR differently from a range. */
export interface Entry {
  readonly kind: 'address' | 'cidr' | 'range';
  readonly interval: Interval;
}

/**
 * What an entry means in a pool of egress IPs. A CIDR there is "the hosts of this network": the implementation that
 * existing manifests were written for does not hand out the network and the broadcast address of an IPv4 CIDR, and
 * neither do we. An address that is named by itself or in a range is always kept.
 */
export const usable = ({ kind, interval }: Entry): Interval => {
  const { first, last } = interval;
  // A /31 is a link with two hosts (RFC 3021) and a /32 is a host: both have no address to lose.
  const hasBroadcast = kind === 'cidr' && familyAt(first) === 4 && last - first > 1n;
  return hasBroadcast ? { first: first + 1n, last: last - 1n } : interval;
};

/** Reads an entry of any form; `cidrParser` says what happens to host bits. */
export const parseEntry = (text: string, cidrParser: CidrParser): Parsed<Entry> => {
  if (text.includes('/')) {
    const cidr = cidrParser(text);
    return cidr.ok ? accept({ kind: 'cidr', interval: intervalOfCidr(cidr.value) }) : cidr;
  }
  if (text.includes('-')) {
    const interval = parseRange(text);
    return interval.ok ? accept({ kind: 'range', interval: interval.value }) : interval;
  }
  const position = parsePosition(text);
  if (!position.ok) return position;
  return accept({ kind: 'address', interval: { first: position.value, last: position.value } });
};

/** Reads a range first-last without blanks; first and last may be the same address. */
export const parseRange = (text: string): Parsed<Interval> => {
  const [start, end, ...rest] = text.split('-');
  if (!start || !end || rest.length > 0) {
    return refuse(text, 'RangeMalformed', 'is not a range; write first-last, such as 10.6.1.21-10.6.1.30');
  }
  const first = parsePosition(start);
  if (!first.ok) return first;
  const last = parsePosition(end);
  if (!last.ok) return last;
  if (familyAt(first.value) !== familyAt(last.value)) {
    return refuse(text, 'RangeMixed', 'starts in one address family and ends in the other; write one range per family');
  }
  if (last.value < first.value) {
    const swapped = `${ipAt(last.value)}-${ipAt(first.value)}`;
    return refuse(text, 'RangeReversed', `ends before it starts; write ${swapped} if you mean these addresses`);
  }
  return accept({ first: first.value, last: last.value });
};
