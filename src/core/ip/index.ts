/**
 * The public names of core/ip; README.md says what the module is and what it refuses. Read Ip first, then IntervalSet.
 */
export {
  compareIps,
  familyOf,
  type Interval,
  type Ip,
  type IpFamily,
  type Ipv4,
  type Ipv6,
  ipBytes,
  ipOfBytes,
  isIpv4,
  isIpv6,
  parseIp,
  parseIpv4,
  parseIpv6,
  positionOf,
} from './address.ts';
export { type Cidr, familyOfCidr, parseCidr, parseCidrMasking, prefixLengthOf } from './cidr.ts';
export {
  addresses,
  cidrCover,
  contains,
  containsAll,
  count,
  equals,
  firstFree,
  formatSet,
  nth,
  nthFree,
  overlaps,
  placeOf,
} from './interval-query.ts';
export {
  difference,
  emptySet,
  type IntervalSet,
  intersection,
  ofFamily,
  parseSet,
  setOf,
  setOfIps,
  union,
} from './interval-set.ts';
export { poolOf } from './pool.ts';
export { type IpReason, type IpRefusal, ipReasons, type Parsed } from './reason.ts';
