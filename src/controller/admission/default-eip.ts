/**
 * The default EIP of a gateway that does not name one. It is chosen once and written into the spec, so that it stays
 * when the pools change. No chance is involved: the same gateway in the same cluster gets the same default.
 */

import type { Eip, GatewaySpecView, Settings } from '../../core/cluster/view.ts';
import {
  contains,
  count,
  emptySet,
  type IntervalSet,
  type Ip,
  isIpv4,
  isIpv6,
  nth,
  placeOf,
} from '../../core/ip/index.ts';

/** What the choice needs to know. */
export interface DefaultRequest {
  readonly spec: GatewaySpecView;
  /** The default before an update. */
  readonly old: Eip;
  readonly settings: Settings;
  /** True when a policy has the address or asks for it. */
  readonly isTaken: (ip: Ip) => boolean;
}

/** How many places are looked at; after that one that policies have is taken, and they share it. */
const PLACES_TRIED = 4096n;

/**
 * The whole default EIP: what the spec names; else what it was, since policies leave with it; else the first place of
 * the pools that no policy has. Equal places of both pools belong together, as in allocation. A family that is turned
 * off or has no pool has no default.
 */
export const chooseDefaultEip = ({ spec, old, settings, isTaken }: DefaultRequest): Eip => {
  const ipv4Pool = settings.hasIpv4 ? spec.pools.ipv4 : emptySet;
  const ipv6Pool = settings.hasIpv6 ? spec.pools.ipv6 : emptySet;
  const ipv4 = spec.defaultEip.ipv4 ?? keptIn(ipv4Pool, old.ipv4);
  const ipv6 = spec.defaultEip.ipv6 ?? keptIn(ipv6Pool, old.ipv6);
  if (ipv4 !== undefined && ipv6 !== undefined) return { ipv4, ipv6 };
  const open = [...(ipv4 === undefined ? [ipv4Pool] : []), ...(ipv6 === undefined ? [ipv6Pool] : [])];
  const beside = ipv4 !== undefined ? placeOf(ipv4Pool, ipv4) : ipv6 !== undefined ? placeOf(ipv6Pool, ipv6) : 0n;
  const place = choosePlace(open, beside, isTaken);
  const chosen = open.map((pool) => nth(pool, place)).filter((ip) => ip !== undefined);
  return { ipv4: ipv4 ?? chosen.find(isIpv4), ipv6: ipv6 ?? chosen.find(isIpv6) };
};

const keptIn = <T extends Ip>(pool: IntervalSet, ip: T | undefined): T | undefined =>
  ip !== undefined && contains(pool, ip) ? ip : undefined;

/** The preferred place if it is free in all pools, else the first that is; the preferred one when none is. */
const choosePlace = (pools: readonly IntervalSet[], preferred: bigint, isTaken: (ip: Ip) => boolean): bigint => {
  const isFree = (place: bigint): boolean => {
    const ips = pools.map((pool) => nth(pool, place)).filter((ip) => ip !== undefined);
    return ips.length > 0 && !ips.some(isTaken);
  };
  if (isFree(preferred)) return preferred;
  const sizes = pools.map(count);
  for (let place = 0n; place < PLACES_TRIED && sizes.some((size) => place < size); place += 1n) {
    if (isFree(place)) return place;
  }
  return preferred;
};
