/** Where nodes are, for who speaks to them and for who hands packets to them. Pure. */
import type { TunnelView } from '../../core/cluster/view.ts';
import type { Hops } from '../heartbeat/gate-controller.ts';

/** The tunnel addresses of nodes, of the one family that all of them have: IPv4 where it is turned on. */
export const addressesOf = (tunnels: readonly TunnelView[]): ReadonlyMap<string, string> => {
  const addresses = new Map<string, string>();
  for (const { node, recorded } of tunnels) {
    const address = recorded.ipv4 ?? recorded.ipv6;
    if (address !== undefined) addresses.set(node, address);
  }
  return addresses;
};

/** The MAC addresses by which nodes announce EIPs: what they say of an EIP comes from no foreign machine. */
export const macsOf = (tunnels: readonly TunnelView[]): ReadonlySet<string> =>
  new Set(tunnels.flatMap(({ macs }) => macs));

/** The tunnel addresses of nodes, of all families. */
export const hopsOf = (tunnels: readonly TunnelView[]): Hops =>
  new Map(tunnels.map(({ node, recorded }) => [node, [recorded.ipv4, recorded.ipv6].filter((ip) => ip !== undefined)]));
