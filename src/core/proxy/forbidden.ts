/**
 * Where no name may lead. A name is resolved by somebody outside who may answer with any address, so what is local to the
 * proxy or inside the cluster must be refused after resolution. Written as CIDRs of both families; addresses that carry an
 * IPv4 address inside are in it too, so that one look tells.
 */
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
import type { ClusterRanges } from '../view.ts';
import { reservedPorts } from './served.ts';
import type { HttpRuleView, TcpRuleView } from './view.ts';

const setOfTexts = (texts: readonly string[]): IntervalSet => {
  const set = parseSet(texts, parseCidr);
  // The texts are constants of this file.
  if (!set.ok) throw new Error(set.message);
  return set.value;
};

/** The machine itself, its link and everybody at once: no rule may name them either (IANA special-purpose registries, 2026). */
const local = setOfTexts([
  '0.0.0.0/8',
  '127.0.0.0/8',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Unspecified, loopback, IPv4-compatible and IPv4-mapped addresses all begin with sixteen zero bits.
  '::/16',
  'ff00::/8',
]);

/** What no name may lead to, whatever ranges are opened. */
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
    // No server has these: ORCHID and discard.
    '2001:10::/28',
    '100::/64',
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
  return cidrCover(union(plain, throughNat64(plain)));
};

/** Why a rule may not name the address and port; undefined when it may. */
export const selfTarget = (
  rule: TcpRuleView | HttpRuleView,
  ranges: ClusterRanges,
): { readonly reason: 'AddressForbidden' | 'ProxyLoop'; readonly address: string } | undefined => {
  const ips =
    rule.kind === 'tcp'
      ? rule.to.kind === 'addresses'
        ? rule.to.ips
        : []
      : rule.host.kind === 'address'
        ? [rule.host.ip]
        : [];
  const inside = ips.find((ip) => contains(local, ip));
  if (inside !== undefined) return { reason: 'AddressForbidden', address: inside };
  if (rule.destPort < reservedPorts.first || rule.destPort > reservedPorts.last) return undefined;
  const own = clusterSet(ranges);
  const looping = ips.find((ip) => contains(own, ip));
  return looping === undefined ? undefined : { reason: 'ProxyLoop', address: looping };
};

const clusterSet = ({ services, nodes, pods, custom }: ClusterRanges): IntervalSet =>
  [nodes, pods, custom].reduce(union, services);

// 64:ff9b::/96 reaches IPv4 addresses through a NAT64 router (RFC 6052), so what is forbidden there is forbidden here.
const nat64Base = ((): bigint => {
  const base = parseIp('64:ff9b::');
  if (!base.ok) throw new Error(base.message);
  return positionOf(base.value);
})();

const throughNat64 = (set: IntervalSet): IntervalSet =>
  setOf(ofFamily(set, 4).intervals.map(({ first, last }) => ({ first: nat64Base + first, last: nat64Base + last })));
