/**
 * The tunnel range and who else uses its addresses. The default is also that of VPCs of AWS, and of many a network at home:
 * what a node, a pod or an EIP has must not be given to a tunnel, and users must hear that their ranges overlap.
 */
import { type Finding, finding } from '../cluster/finding.ts';
import type { ClusterView } from '../cluster/view.ts';
import { count, difference, formatSet, type IntervalSet, type Ip, intersection, setOfIps, union } from '../ip/index.ts';

export interface TunnelRange {
  /** Addresses that are in use by others, by family: no tunnel gets one. */
  readonly inUse: IntervalSet;
  /** Single addresses of machines among them: a tunnel that has one gives it up. */
  readonly ofMachines: IntervalSet;
  /** What the range overlaps; undefined: nothing. */
  readonly overlap: Finding | undefined;
}

/** Looks at everything whose addresses are known. */
export const tunnelRangeOf = ({ settings, ranges, nodes, tunnels, gateways }: UsedBy): TunnelRange => {
  const own = union(settings.tunnelRanges.ipv4, settings.tunnelRanges.ipv6);
  const parents = tunnels.flatMap(({ parent }) => [parent.ipv4, parent.ipv6]).filter((ip) => ip !== undefined);
  // Some clouds list every address that they see on a node, also that of its tunnel.
  const recorded = new Map(tunnels.map((tunnel) => [tunnel.node, tunnel.recorded]));
  const isOwnTunnel = (node: string, ip: Ip): boolean =>
    ip === recorded.get(node)?.ipv4 || ip === recorded.get(node)?.ipv6;
  const listed = nodes.flatMap(({ name, addresses }) => addresses.filter((ip) => isOwnTunnel(name, ip)));
  const ofNodes = setOfIps(nodes.flatMap(({ addresses }) => addresses));
  const ofMachines = union(difference(ofNodes, setOfIps(listed)), setOfIps(parents));
  const uses: readonly (readonly [string, IntervalSet])[] = [
    ['addresses of nodes', union(ofMachines, difference(ranges.nodes, setOfIps(listed)))],
    ['addresses of API servers', ranges.apiServers],
    ['pods', ranges.pods],
    ['Services', ranges.services],
    ...gateways.flatMap(({ name, spec }): (readonly [string, IntervalSet])[] =>
      spec === undefined ? [] : [[`EIPs of gateway ${name}`, union(spec.pools.ipv4, spec.pools.ipv6)]],
    ),
  ];
  const shared = uses
    .map(([what, set]) => [what, intersection(own, set)] as const)
    .filter(([, set]) => count(set) > 0n);
  const [first] = shared;
  return {
    inUse: shared.reduce((sum, [, set]) => union(sum, set), setOfIps([])),
    ofMachines,
    overlap: first && finding('TunnelRangeOverlaps', `The tunnel range overlaps ${first[0]}: ${shown(first[1])}.`),
  };
};

type UsedBy = Pick<ClusterView, 'settings' | 'ranges' | 'nodes' | 'tunnels' | 'gateways'>;

const SHOWN = 3;

const shown = (set: IntervalSet): string => {
  const texts = formatSet(set);
  return `${texts.slice(0, SHOWN).join(', ')}${texts.length > SHOWN ? ` and ${texts.length - SHOWN} more` : ''}`;
};
