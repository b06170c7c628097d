/** Who owns which EIP, as the agents report it, and who votes on that. */
import { EgressClusterInfoStatus } from '../api/egress-cluster-info.ts';
import { EgressGatewayStatus } from '../api/egress-gateway.ts';
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { nodeGroupKey } from '../core/ownership/node-group.ts';
import { readStatus } from '../core/project/api-object.ts';
import type { OwnObjects } from './read.ts';

/** The owners of EIPs; undefined in a report while no nodes vote on them. */
export interface OwnershipReport {
  readonly electorate: {
    readonly generation: number;
    readonly voters: readonly string[];
    readonly apiVotes: boolean;
    /** Voters and owners whose agents go by another one; the electorate does not change while there are any. */
    readonly behind: readonly string[];
  };
  readonly owners: readonly OwnerLine[];
}

/** Where one EIP is. */
export interface OwnerLine {
  /** `10.6.1.1`, a pair as `10.6.1.1 fd00::1`, or `node IP of gateway-1` for policies that leave with the address of that node. */
  readonly eip: string;
  /** The node that reports it in the latest epoch; undefined when nobody does. */
  readonly owner: string | undefined;
  readonly epoch: number;
  /** The node that the status of its gateway names. Agents may be ahead of it for a moment. */
  readonly recorded: string;
}

/** Reads what was reported. */
export const ownershipOf = ({ clusterInfo, gateways, tunnels }: OwnObjects): OwnershipReport | undefined => {
  const electorate = clusterInfo && readStatus(EgressClusterInfoStatus, clusterInfo)?.electorate;
  if (electorate === undefined) return undefined;
  const reports = tunnels.map((object) => ({
    node: object.metadata.name,
    report: readStatus(EgressTunnelStatus, object)?.report,
  }));
  const latestByIp = new Map<string, { readonly node: string; readonly epoch: number }>();
  for (const { node, report } of reports) {
    const groups = (report?.nodeGroups ?? []).map((group) => ({ ip: nodeGroupKey(group), epoch: group.epoch }));
    for (const { ip, epoch } of [...(report?.eips ?? []), ...groups]) {
      if (epoch > (latestByIp.get(ip)?.epoch ?? -1)) latestByIp.set(ip, { node, epoch });
    }
  }
  const members = new Set([...electorate.voters, ...[...latestByIp.values()].map(({ node }) => node)]);
  const behind = reports
    .filter(({ node, report }) => members.has(node) && report?.electorate?.generation !== electorate.generation)
    .map(({ node }) => node);
  const owners = gateways.flatMap((gateway) =>
    (readStatus(EgressGatewayStatus, gateway)?.nodeList ?? []).flatMap(({ name = '', eips = [] }) =>
      eips.flatMap(({ ipv4, ipv6 }): OwnerLine[] => {
        const group = { gateway: gateway.metadata.name, node: name };
        const latest = latestByIp.get(ipv4 || ipv6 || nodeGroupKey(group));
        const eip = [ipv4, ipv6].filter(Boolean).join(' ') || `node IP of ${name}`;
        // Without a word from agents the node on record serves its group; an EIP that nobody owns goes nowhere.
        if (latest === undefined && !ipv4 && !ipv6) return [];
        return [{ eip, owner: latest?.node, epoch: latest?.epoch ?? 0, recorded: name }];
      }),
    ),
  );
  return { electorate: { ...electorate, behind: behind.toSorted() }, owners };
};
