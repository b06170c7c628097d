/**
 * The public names of core/ip, and those of api/ip, the reader of text. Read Ip first, then IntervalSet.
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
} from '../../api/ip/address.ts';
export { type Cidr, familyOfCidr, parseCidr, parseCidrMasking, prefixLengthOf } from '../../api/ip/cidr.ts';
export { type IpReason, type IpRefusal, ipReasons, type Parsed } from '../../api/ip/reason.ts';
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
