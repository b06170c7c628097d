/**
 * Which destinations are outside the cluster: what a policy without destSubnet is about. Not outside are the ranges of
 * the cluster, and addresses that mean something only on one link or one machine: the same address is another machine
 * on the gateway node. A cloud hands out the credentials of a node at such an address, and a pod would get those of the
 * gateway node. A policy that names such an address in destSubnet means it, and gets it.
 */
import { difference, emptySet, type IntervalSet, parseCidr, parseSet, union } from '../ip/index.ts';
import type { ClusterRanges } from './view.ts';

const fixedSet = (...texts: readonly string[]): IntervalSet => {
  const set = parseSet(texts, parseCidr);
  return set.ok ? set.value : emptySet;
};

/** Addresses of the machine itself and of many machines at once; the kernel never forwards to them as to one host. */
export const UNROUTED: IntervalSet = fixedSet(
  '0.0.0.0', // unspecified; Linux takes it as a broadcast
  '127.0.0.0/8', // loopback
  '224.0.0.0/4', // multicast
  '255.255.255.255', // broadcast
  '::/127', // unspecified and loopback
  'ff00::/8', // multicast
);

// "This network" (RFC 1122 section 3.2.1.3) and link-local.
const LINK_LOCAL = fixedSet('0.0.0.0/8', '169.254.0.0/16', 'fe80::/10');
const EVERYTHING = fixedSet('0.0.0.0/0', '::/0');

/** Every address that is not outside, as far as it is known: what has no meaning beyond one link, and the cluster. */
export const insideOf = (ranges: ClusterRanges | undefined): IntervalSet =>
  [
    UNROUTED,
    LINK_LOCAL,
    ...(ranges === undefined ? [] : [ranges.services, ranges.nodes, ranges.apiServers, ranges.pods, ranges.custom]),
  ].reduce(union);

/** Every address outside: what a policy without destinations is about. Nothing while the ranges are not known. */
export const outsideOf = (ranges: ClusterRanges): IntervalSet =>
  ranges.isKnown ? difference(EVERYTHING, insideOf(ranges)) : emptySet;
