/**
 * Tunnel addresses: one per node and family, from the configured ranges. A node keeps what it has while that is in the
 * range; where two nodes have the same address, the older tunnel keeps it and the younger gets another.
 */

import {
  contains,
  count,
  difference,
  emptySet,
  type IntervalSet,
  type Ip,
  type Ipv4,
  type Ipv6,
  isIpv4,
  isIpv6,
  nth,
} from '../ip/index.ts';
import { assignUnique } from '../values/assign-unique.ts';
import { hashText } from '../values/hash.ts';
import type { TunnelRange } from './range.ts';

/** A node and what is on record for it. Claims come in the order of their right. */
export interface TunnelClaim {
  readonly node: string;
  readonly ipv4: Ipv4 | undefined;
  readonly ipv6: Ipv6 | undefined;
  readonly mac: string | undefined;
}

/** What a node gets; an address is missing when its range is empty (the family is off) or exhausted. */
export interface TunnelAddresses {
  readonly ipv4: Ipv4 | undefined;
  readonly ipv6: Ipv6 | undefined;
  readonly mac: string | undefined;
}

// Places in an IPv6 range are counted up to here; no cluster has as many nodes.
const PLACES = 2 ** 32;

/**
 * Addresses for every node, by name. Those of `reserved` tunnels, whose nodes are gone, are not given anew yet. What others use
 * is given to nobody; a tunnel that has such an address keeps it, as packets go by it, unless it is that of a machine.
 */
export const assignTunnelAddresses = (
  claims: readonly TunnelClaim[],
  ranges: { readonly ipv4: IntervalSet; readonly ipv6: IntervalSet },
  reserved: readonly TunnelClaim[] = [],
  others: Pick<TunnelRange, 'inUse' | 'ofMachines'> = { inUse: emptySet, ofMachines: emptySet },
): Map<string, TunnelAddresses> => {
  const places = (range: IntervalSet) => ({
    kept: difference(range, others.ofMachines),
    free: difference(range, others.inUse),
  });
  const ipv4 = assignIps(claims, reserved, places(ranges.ipv4), isIpv4, (claim) => claim.ipv4);
  const ipv6 = assignIps(claims, reserved, places(ranges.ipv6), isIpv6, (claim) => claim.ipv6);
  const macs = assignUnique(
    claims.map(({ node, mac }) => ({ name: node, recorded: isMac(mac) ? mac : undefined, hash: () => hashText(node) })),
    { size: PLACES, at: macAt },
    reserved.map(({ mac }) => mac).filter(isMac),
  );
  return new Map(claims.map(({ node }) => [node, { ipv4: ipv4.get(node), ipv6: ipv6.get(node), mac: macs.get(node) }]));
};

const assignIps = <T extends Ip>(
  claims: readonly TunnelClaim[],
  reserved: readonly TunnelClaim[],
  { kept, free }: { readonly kept: IntervalSet; readonly free: IntervalSet },
  isOfFamily: (ip: Ip) => ip is T,
  ipOf: (claim: TunnelClaim) => T | undefined,
): Map<string, T> => {
  const size = count(free);
  const at = (place: number): T | undefined => {
    const ip = nth(free, BigInt(place));
    return ip !== undefined && isOfFamily(ip) ? ip : undefined;
  };
  return assignUnique<T>(
    claims.map((claim) => {
      const ip = ipOf(claim);
      const recorded = ip !== undefined && contains(kept, ip) ? ip : undefined;
      return { name: claim.node, recorded, hash: () => hashText(claim.node) };
    }),
    { size: size < BigInt(PLACES) ? Number(size) : PLACES, at },
    reserved.map(ipOf).filter((ip) => ip !== undefined),
  );
};

// 0x66 marks a unicast address that is locally administered (IEEE 802, second-lowest bit of the first byte).
const macAt = (place: number): string =>
  ['66', '65', ...[24, 16, 8, 0].map((shift) => ((place >>> shift) & 0xff).toString(16).padStart(2, '0'))].join(':');

const isMac = (text: string | undefined): text is string =>
  text !== undefined && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(text);
