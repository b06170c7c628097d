/**
 * TunnelEnd: the tunnel of a node with everything that others need to send to it. A tunnel that lacks something is no
 * end yet: nothing is sent to it, and no entry is made for it.
 */
import { type Decided, decided, refusedWith } from '../cluster/finding.ts';
import type { AddressPair, TunnelView } from '../cluster/view.ts';
import { familyOf, type Ip, type IpFamily } from '../ip/index.ts';
import { distinctBits } from '../tunnels/marks.ts';
import { compareText } from '../values/hash.ts';
import type { HostView, NodeSettings, ParentView } from './input.ts';

/** The tunnel of a node. It has an address of every family that is turned on. */
export interface TunnelEnd extends AddressPair {
  readonly node: string;
  readonly mac: string;
  /** The 16 bits that tell its mark from others. */
  readonly bits: number;
  readonly parent: AddressPair;
}

/** What an end is made from. */
export interface TunnelFacts extends AddressPair {
  readonly node: string;
  readonly createdAtMs: number;
  readonly mark: string | undefined;
  readonly mac: string | undefined;
  readonly parent: AddressPair;
}

type Families = Pick<NodeSettings, 'hasIpv4' | 'hasIpv6'>;

/** The facts of a tunnel as it is recorded. */
export const factsOf = ({ node, createdAtMs, recorded, parent }: TunnelView): TunnelFacts => ({
  node,
  createdAtMs,
  ...recorded,
  parent,
});

/** The families that are turned on. */
export const familiesIn = ({ hasIpv4, hasIpv6 }: Families): readonly IpFamily[] => [
  ...(hasIpv4 ? ([4] as const) : []),
  ...(hasIpv6 ? ([6] as const) : []),
];

/**
 * The ends by node, in the order of node names. Where two tunnels have a number or an address in common, the older one
 * has it: the controller will give the younger one another.
 */
export const endsOf = (tunnels: readonly TunnelFacts[], families: Families): ReadonlyMap<string, TunnelEnd> => {
  const taken = new Set<unknown>();
  const ends: TunnelEnd[] = [];
  const byAge = tunnels.toSorted((a, b) => a.createdAtMs - b.createdAtMs || compareText(a.node, b.node));
  for (const { node, ipv4, ipv6, mac, mark, parent } of byAge) {
    const bits = distinctBits(mark);
    if (mac === undefined || bits === undefined) continue;
    if ((families.hasIpv4 && ipv4 === undefined) || (families.hasIpv6 && ipv6 === undefined)) continue;
    const own = [mac, bits, ipv4, ipv6].filter((value) => value !== undefined);
    if (own.some((value) => taken.has(value))) continue;
    for (const value of own) taken.add(value);
    ends.push({ node, mac, bits, ipv4, ipv6, parent });
  }
  return new Map(ends.toSorted((a, b) => compareText(a.node, b.node)).map((end) => [end.node, end]));
};

/** True when two results of endsOf say the same. */
export const haveSameEnds = (a: ReadonlyMap<string, TunnelEnd>, b: ReadonlyMap<string, TunnelEnd>): boolean =>
  a.size === b.size && [...a].every(([node, end]) => isSameEnd(end, b.get(node)));

const isSameEnd = (a: TunnelEnd, b: TunnelEnd | undefined): boolean =>
  a.mac === b?.mac &&
  a.bits === b.bits &&
  a.ipv4 === b.ipv4 &&
  a.ipv6 === b.ipv6 &&
  a.parent.ipv4 === b.parent.ipv4 &&
  a.parent.ipv6 === b.parent.ipv6;

/** The address that tunnel packets of a node have: IPv4 where it can be, because that costs 20 bytes less. */
export const underlayOf = ({ ipv4, ipv6 }: AddressPair): Ip | undefined => ipv4 ?? ipv6;

/** True when tunnel packets of both nodes are of one family. */
export const canReach = (from: AddressPair, to: AddressPair): boolean => {
  const [here, there] = [underlayOf(from), underlayOf(to)];
  return here !== undefined && there !== undefined && familyOf(here) === familyOf(there);
};

/** The tunnel of this node: what its device is made from. */
export interface OwnTunnel {
  readonly end: TunnelEnd;
  readonly parent: ParentView;
  readonly local: Ip;
  readonly mtu: number;
}

// VXLAN adds 8 bytes, UDP 8, the inner Ethernet header 14, and the outer IP header 20 or 40 (RFC 7348 section 5).
const OVERHEAD = { 4: 50, 6: 70 } as const satisfies Record<IpFamily, number>;
// Below this the kernel turns IPv6 off on a device (RFC 8200 section 5).
const LEAST_IPV6_MTU = 1280;

/** The tunnel of this node, or why it has none. */
export const ownTunnelOf = (
  node: string,
  host: HostView,
  ends: ReadonlyMap<string, TunnelEnd>,
  families: Families,
): Decided<OwnTunnel> => {
  const { parent } = host;
  if ('finding' in parent) return { ok: false, finding: parent.finding };
  const end = ends.get(node);
  if (end === undefined) {
    return refusedWith('TunnelAddressMissing', `Node ${node} has no tunnel address, mark and MAC address yet.`);
  }
  const local = underlayOf(parent);
  if (local === undefined) {
    return refusedWith('ParentAddressMissing', `Interface ${parent.name} of node ${node} has no usable address.`);
  }
  const mtu = tunnelMtu(parent.mtu, familyOf(local));
  if (families.hasIpv6 && mtu < LEAST_IPV6_MTU) {
    return refusedWith(
      'TunnelTooNarrow',
      `Interface ${parent.name} of node ${node} has MTU ${parent.mtu}, which leaves ${mtu} bytes for the tunnel; IPv6 needs ${LEAST_IPV6_MTU}.`,
    );
  }
  return decided({ end, parent, local, mtu });
};

/** The MTU of a tunnel over an interface. */
export const tunnelMtu = (parentMtu: number, underlay: IpFamily): number => parentMtu - OVERHEAD[underlay];
