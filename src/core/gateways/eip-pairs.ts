/**
 * The EIPs of one gateway while a plan is being made. An EIP of a gateway with both families is a pair; once formed,
 * its two addresses stay together as long as a policy uses one of them. This file keeps the book; allocation.ts
 * decides. The book is filled once per plan and thrown away with it.
 */

import type { Eip, PolicyView } from '../cluster/view.ts';
import {
  addresses,
  contains,
  containsAll,
  count,
  emptySet,
  type IntervalSet,
  type Ip,
  type Ipv4,
  type Ipv6,
  isIpv4,
  isIpv6,
  nth,
  placeOf,
  setOfIps,
} from '../ip/index.ts';
import { hashPair, hashText } from '../values/hash.ts';
import type { GatewayPools } from './pools.ts';

/** An EIP with its policies. `keepers` had it before this plan; they say on which node it is. */
export interface Pair {
  ipv4: Ipv4 | undefined;
  ipv6: Ipv6 | undefined;
  /** Stands for the pair where a hash decides. */
  readonly hash: number;
  readonly policies: PolicyView[];
  readonly keepers: PolicyView[];
}

/** Who holds an address, over all gateways: no address is ever given out by two. */
export type Holders = Map<Ip, string>;

/** The book of one gateway. */
export interface PairTable {
  /** In the order in which they were formed. */
  readonly pairs: readonly Pair[];
  readonly hasIpv4: boolean;
  readonly hasIpv6: boolean;
  /** The pair that an address is in. */
  readonly of: (ip: Ip | undefined) => Pair | undefined;
  /** The addresses of a record that may be kept; the others are left out. */
  readonly usableOf: (recorded: Eip) => Eip;
  /** True when the address may be given to a new EIP. */
  readonly isFree: (ip: Ip) => boolean;
  /** Makes a pair of addresses that are in none; a missing half is left open. */
  readonly form: (eip: Eip) => Pair;
  /** Gives a half pair the other half that is named, unless that is in another pair. */
  readonly extend: (pair: Pair, eip: Eip) => void;
  /** Gives a half pair its other half, if the gateway has both families and one is left. */
  readonly complete: (pair: Pair) => void;
  /** The lowest free address with a free partner; undefined when no whole EIP is left. */
  readonly nextFree: () => Eip | undefined;
  /** A whole EIP at a place that the hash decides, in use or not; undefined when that place has no free partner. */
  readonly drawn: (hash: number) => Pair | undefined;
}

/** Opens the book of a gateway. */
export const openPairTable = (gateway: string, pools: GatewayPools, holders: Holders): PairTable => {
  const { written, usable, offered } = pools;
  const hasIpv4 = written.ipv4.intervals.length > 0;
  const hasIpv6 = written.ipv6.intervals.length > 0;
  const pairs: Pair[] = [];
  const pairByIp = new Map<Ip, Pair>();
  const poolFor = (ip: Ip, { ipv4, ipv6 }: GatewayPools['usable']): IntervalSet => (isIpv4(ip) ? ipv4 : ipv6);
  const isKept = (ip: Ip, pool: IntervalSet, set: IntervalSet): boolean =>
    (holders.get(ip) ?? gateway) === gateway && containsAll(pool, set);
  const isFree = (ip: Ip): boolean => !holders.has(ip) && contains(poolFor(ip, offered), ip);

  const hold = (ip: Ip | undefined, pair: Pair): void => {
    if (ip === undefined) return;
    pairByIp.set(ip, pair);
    holders.set(ip, gateway);
  };
  const lowest = { ipv4: lowestFree(offered.ipv4, holders), ipv6: lowestFree(offered.ipv6, holders) };

  // Equal places in both pools belong together, so that 10.6.1.21 goes with fd00::21 where the user wrote them so.
  const partnerOf = (ip: Ip): Ip | undefined => {
    const [mine, theirs] = isIpv4(ip) ? [written.ipv4, written.ipv6] : [written.ipv6, written.ipv4];
    const opposite = nth(theirs, placeOf(mine, ip));
    if (opposite !== undefined && isFree(opposite)) return opposite;
    return isIpv4(ip) ? lowest.ipv6() : lowest.ipv4();
  };
  const withPartner = (ip: Ip): Eip => {
    const partner = hasIpv4 && hasIpv6 ? partnerOf(ip) : undefined;
    return eipOf(ip, partner);
  };
  const isWhole = ({ ipv4, ipv6 }: Eip): boolean =>
    (ipv4 !== undefined) === hasIpv4 && (ipv6 !== undefined) === hasIpv6;

  const extend = (pair: Pair, { ipv4, ipv6 }: Eip): void => {
    if (ipv4 !== undefined && !pairByIp.has(ipv4)) pair.ipv4 ??= ipv4;
    if (ipv6 !== undefined && !pairByIp.has(ipv6)) pair.ipv6 ??= ipv6;
    hold(pair.ipv4, pair);
    hold(pair.ipv6, pair);
  };

  const book: PairTable = {
    pairs,
    hasIpv4,
    hasIpv6,
    of: (ip) => (ip === undefined ? undefined : pairByIp.get(ip)),
    usableOf: (recorded) => {
      const { ipv4, ipv6 } = recorded;
      const sets = setsOf(recorded);
      return {
        ipv4: ipv4 !== undefined && isKept(ipv4, usable.ipv4, sets.ipv4) ? ipv4 : undefined,
        ipv6: ipv6 !== undefined && isKept(ipv6, usable.ipv6, sets.ipv6) ? ipv6 : undefined,
      };
    },
    isFree,
    form: ({ ipv4, ipv6 }) => {
      const pair: Pair = { ipv4, ipv6, hash: hashText(ipv4 ?? ipv6 ?? ''), policies: [], keepers: [] };
      pairs.push(pair);
      hold(ipv4, pair);
      hold(ipv6, pair);
      return pair;
    },
    extend,
    complete: (pair) => {
      const half = pair.ipv4 ?? pair.ipv6;
      if (half !== undefined && !isWhole(pair)) extend(pair, withPartner(half));
    },
    nextFree: () => {
      const first = hasIpv4 ? lowest.ipv4() : lowest.ipv6();
      const eip = first && withPartner(first);
      return eip !== undefined && isWhole(eip) ? eip : undefined;
    },
    drawn: (hash) => {
      const pool = hasIpv4 ? offered.ipv4 : offered.ipv6;
      const size = count(pool);
      if (size === 0n) return undefined;
      const ip = nth(pool, wideHash(hash) % size);
      if (ip === undefined) return undefined;
      const known = pairByIp.get(ip);
      if (known !== undefined) return known;
      const eip = withPartner(ip);
      return isFree(ip) && isWhole(eip) ? book.form(eip) : undefined;
    },
  };
  return book;
};

/** The text that stands for an EIP in orders and hashes. */
export const eipText = ({ ipv4, ipv6 }: Eip): string => `${ipv4 ?? ''},${ipv6 ?? ''}`;

/** True when both name the same address of a family. */
export const sharesAddress = (a: Eip, b: Eip): boolean =>
  (a.ipv4 !== undefined && a.ipv4 === b.ipv4) || (a.ipv6 !== undefined && a.ipv6 === b.ipv6);

interface AddressSets {
  readonly ipv4: IntervalSet;
  readonly ipv6: IntervalSet;
}

const setsByEip = new WeakMap<Eip, AddressSets>();

/** The addresses of an EIP as one set per family. Every plan asks for those of every policy, and texts would be read anew each time. */
const setsOf = (eip: Eip): AddressSets => {
  let sets = setsByEip.get(eip);
  if (sets === undefined) {
    const setOf = (ip: Ip | undefined): IntervalSet => (ip === undefined ? emptySet : setOfIps([ip]));
    sets = { ipv4: setOf(eip.ipv4), ipv6: setOf(eip.ipv6) };
    setsByEip.set(eip, sets);
  }
  return sets;
};

const eipOf = (ip: Ip, partner: Ip | undefined): Eip => {
  const both = [ip, partner].filter((one) => one !== undefined);
  return { ipv4: both.find(isIpv4), ipv6: both.find(isIpv6) };
};

/** A look at the lowest address that nobody holds. Nothing is released within a plan, so it never has to look back. */
const lowestFree = (pool: IntervalSet, holders: Holders): (() => Ip | undefined) => {
  const walk = addresses(pool);
  let next = walk.next();
  return () => {
    while (next.done !== true && holders.has(next.value)) next = walk.next();
    return next.value;
  };
};

const wideHash = (hash: number): bigint => (BigInt(hash) << 32n) | BigInt(hashPair(hash, hashText('wide')));
