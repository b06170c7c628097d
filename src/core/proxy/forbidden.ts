/**
 * Addresses that the proxy must not connect to. A name is resolved by somebody outside who may answer with any address, so
 * what is local to the proxy or inside the cluster is refused after resolution. An address that a rule names itself is
 * refused with the rule, unless the administrator has opened it. Written as CIDRs of both families; addresses that carry
 * an IPv4 address inside are in it too, so that one look tells.
 */
import { type Finding, finding } from '../cluster/finding.ts';
import type { ClusterRanges } from '../cluster/view.ts';
import {
  cidrCover,
  contains,
  difference,
  type IntervalSet,
  ofFamily,
  parseCidr,
  parseIp,
  parseSet,
  positionOf,
  setOf,
  union,
} from '../ip/index.ts';
import { reservedPorts } from './served.ts';
import { destinationsOf } from './tenants.ts';
import type { HttpRuleView, TcpRuleView } from './view.ts';

const setOfTexts = (texts: readonly string[]): IntervalSet => {
  const set = parseSet(texts, parseCidr);
  // The texts are constants of this file.
  if (!set.ok) throw new Error(set.message);
  return set.value;
};

/** The machine itself and everybody at once: nobody can open these (IANA special-purpose registries, 2026). */
const local = setOfTexts([
  '0.0.0.0/8',
  '127.0.0.0/8',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Unspecified, loopback, IPv4-compatible and IPv4-mapped addresses all begin with sixteen zero bits.
  '::/16',
  'ff00::/8',
]);

/** What no name may lead to, whatever ranges are opened; a rule may name it where the administrator has opened it. */
const never = union(
  local,
  setOfTexts([
    '169.254.0.0/16',
    '192.0.0.0/24',
    // Metadata services that are not link-local: Alibaba, Azure, and AWS over IPv6.
    '100.100.100.200',
    '168.63.129.16',
    'fd00:ec2::/32',
    'fe80::/10',
    'fec0::/10',
    // Tunnels that carry an IPv4 address inside: Teredo, 6to4 and NAT64 of the local network (RFC 4380, 3056, 8215).
    '2001::/32',
    '2002::/16',
    '64:ff9b:1::/48',
    // No server has these: ORCHID (both versions), discard, and identifiers of routers (RFC 4843, 7343, 6666, 9602).
    '2001:10::/28',
    '2001:20::/28',
    '100::/64',
    '5f00::/16',
    // The anycast address of 6to4 relays, which carry IPv4 back in (RFC 7526).
    '192.88.99.0/24',
  ]),
);

/** What an administrator may open with `allowedRanges`. */
const privateRanges = setOfTexts([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15',
  'fc00::/7',
]);

/** CIDRs that names may not lead to, in order. */
export const forbiddenFor = (ranges: ClusterRanges, allowedRanges: IntervalSet): string[] => {
  const plain = union(union(difference(privateRanges, allowedRanges), never), clusterSet(ranges));
  return cidrCover(withNat64(plain));
};

/** The sets that named addresses are looked up in; made once for each plan and proxy. */
export interface InsideAddresses {
  /** Nobody may name these. */
  readonly closed: IntervalSet;
  /** The cluster itself, whatever the administrator has opened of it. */
  readonly cluster: IntervalSet;
  /** False while nobody tells what is inside: then everything private counts. */
  readonly isKnown: boolean;
}

/** What rules of a proxy may not name. `allowedRanges` opens everything but what is local to the proxy. */
export const insideAddresses = (ranges: ClusterRanges, allowedRanges: IntervalSet): InsideAddresses => {
  const isKnown = areRangesTold(ranges);
  const cluster = isKnown ? clusterSet(ranges) : union(clusterSet(ranges), privateRanges);
  const opened = difference(union(never, cluster), difference(allowedRanges, local));
  return { closed: withNat64(opened), cluster: withNat64(cluster), isKnown };
};

/** Why a rule may not name its addresses, undefined when it may. */
export const addressRefusal = (
  rule: TcpRuleView | HttpRuleView,
  { closed, cluster, isKnown }: InsideAddresses,
): Finding | undefined => {
  const { ips } = destinationsOf(rule);
  const inside = ips.find((ip) => contains(closed, ip));
  if (inside !== undefined) {
    const why =
      isKnown || !contains(cluster, inside)
        ? 'which is inside the cluster or local to its nodes'
        : 'which may be inside the cluster: no EgressClusterInfo tells the ranges of its Services and pods';
    return finding(
      'AddressForbidden',
      `Rule ${rule.name} names ${inside}, ${why}; allowedRanges of the proxy does not open it.`,
    );
  }
  if (rule.destPort < reservedPorts.first || rule.destPort > reservedPorts.last) return undefined;
  const looping = ips.find((ip) => contains(cluster, ip));
  return looping === undefined
    ? undefined
    : finding('ProxyLoop', `Rule ${rule.name} names ${looping} port ${rule.destPort}, which may be the proxy itself.`);
};

/** False where the ranges of Services or pods are missing: not looked for yet, not found, or told by nobody. */
const areRangesTold = ({ isKnown, services, pods, custom }: ClusterRanges): boolean =>
  isKnown && (isSome(custom) || (isSome(services) && isSome(pods)));

const isSome = ({ intervals }: IntervalSet): boolean => intervals.length > 0;

const clusterSet = ({ services, nodes, apiServers, pods, custom }: ClusterRanges): IntervalSet =>
  [nodes, apiServers, pods, custom].reduce(union, services);

// 64:ff9b::/96 reaches IPv4 addresses through a NAT64 router (RFC 6052), so what is forbidden there is forbidden here.
const nat64Base = ((): bigint => {
  const base = parseIp('64:ff9b::');
  if (!base.ok) throw new Error(base.message);
  return positionOf(base.value);
})();

const withNat64 = (set: IntervalSet): IntervalSet =>
  union(
    set,
    setOf(ofFamily(set, 4).intervals.map(({ first, last }) => ({ first: nat64Base + first, last: nat64Base + last }))),
  );
