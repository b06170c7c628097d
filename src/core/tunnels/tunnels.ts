/**
 * The tunnel end of every node: its mark, its addresses, and the phase that follows from what is known about it. A
 * gateway uses a node only in phase Ready.
 */
import type { TunnelPhase } from '../../api/egress-tunnel.ts';
import { type Finding, finding } from '../cluster/finding.ts';
import type { ClusterView, NodeView, Settings, TunnelView } from '../cluster/view.ts';
import { compareText } from '../values/hash.ts';
import { assignTunnelAddresses, type TunnelAddresses } from './addresses.ts';
import { detectionFinding } from './detection.ts';
import { assignMarks } from './marks.ts';
import { type TunnelRange, tunnelRangeOf } from './range.ts';

/** What the EgressTunnel of a node should say. */
export interface TunnelPlan extends TunnelAddresses {
  readonly node: string;
  /** Another one than recorded when an older tunnel has that mark. A mark is immutable: the object is made anew then. */
  readonly mark: string | undefined;
  readonly phase: TunnelPhase;
  readonly allocated: Finding;
  readonly ready: Finding;
  /** Undefined while the node notices losses as quickly as configured, or says nothing. */
  readonly slowed: Finding | undefined;
  /** What the agent says of families by which EIPs do not reach the outside from the node; undefined when they do. */
  readonly uplink: Finding | undefined;
}

/** The plans of all nodes by name, and the tunnels to delete because their nodes are gone. */
export interface TunnelsPlan {
  readonly tunnels: readonly TunnelPlan[];
  readonly orphans: readonly string[];
}

/** Plans the tunnels. The marks and addresses of orphans stay taken until their objects are gone. */
export const planTunnels = (view: ClusterView): TunnelsPlan => {
  const { settings, nodes, tunnels } = view;
  const nodeNames = new Set(nodes.map(({ name }) => name));
  const tunnelByNode = new Map(tunnels.map((tunnel) => [tunnel.node, tunnel]));
  const orphans = tunnels.filter(({ node }) => !nodeNames.has(node));
  // Of two with the same record the older tunnel keeps it; a node without a tunnel has nothing to keep.
  const claims = nodes
    .map(({ name }) => claimOf(name, tunnelByNode.get(name)))
    .toSorted((a, b) => a.createdAtMs - b.createdAtMs || compareText(a.node, b.node));
  const reserved = orphans.map((tunnel) => claimOf(tunnel.node, tunnel));
  const marks = assignMarks(
    claims,
    reserved.map(({ recorded }) => recorded).filter((mark) => mark !== undefined),
  );
  const range = tunnelRangeOf(view);
  const addresses = assignTunnelAddresses(claims, settings.tunnelRanges, reserved, range);
  return {
    tunnels: nodes
      .map((node) => {
        const given = addresses.get(node.name) ?? { ipv4: undefined, ipv6: undefined, mac: undefined };
        return planOf(node, tunnelByNode.get(node.name), marks.get(node.name), given, settings, range);
      })
      .toSorted((a, b) => compareText(a.node, b.node)),
    orphans: orphans.map(({ node }) => node).toSorted(compareText),
  };
};

/**
 * True for a node that traffic may go through: in phase Ready, or one that only Kubernetes calls NotReady. Its agent goes by
 * an electorate, so other agents watch it and act if it is lost; and a silent one is in phase HeartbeatTimeout.
 */
export const isInUse = (phase: TunnelPhase | undefined, { electorate }: Pick<TunnelView, 'electorate'>): boolean =>
  phase === 'Ready' || (phase === 'NodeNotReady' && electorate !== undefined);

/** True for a node that is not Ready and may keep what it has: it is in use, and its tunnel is up. */
export const keepsOn = ({ phase }: TunnelPlan, tunnel: TunnelView | undefined): boolean =>
  phase !== 'Ready' && tunnel?.device.kind === 'up' && isInUse(phase, tunnel);

const claimOf = (node: string, tunnel: TunnelView | undefined) => ({
  node,
  createdAtMs: tunnel?.createdAtMs ?? Number.MAX_SAFE_INTEGER,
  recorded: tunnel?.recorded.mark,
  ipv4: tunnel?.recorded.ipv4,
  ipv6: tunnel?.recorded.ipv6,
  mac: tunnel?.recorded.mac,
});

const planOf = (
  node: NodeView,
  tunnel: TunnelView | undefined,
  mark: string | undefined,
  given: TunnelAddresses,
  settings: Settings,
  { overlap }: Pick<TunnelRange, 'overlap'>,
): TunnelPlan => {
  const own = allocatedFinding(node.name, mark, given, settings);
  const { phase, ready } = phaseOf(node, tunnel, own);
  // Told and no more: what overlaps may go well for years.
  const allocated = own.reason === 'TunnelAllocated' ? (overlap ?? own) : own;
  const detectionMs = phase === 'Ready' ? tunnel?.detectionMs : undefined;
  const slowed = detectionMs === undefined ? undefined : detectionFinding(node.name, detectionMs);
  return { node: node.name, mark, ...given, phase, allocated, ready, slowed, uplink: tunnel?.uplink };
};

const allocatedFinding = (
  node: string,
  mark: string | undefined,
  { ipv4, ipv6 }: TunnelAddresses,
  { hasIpv4, hasIpv6 }: Settings,
): Finding => {
  const missing = [
    ...(hasIpv4 && ipv4 === undefined ? ['IPv4 tunnel address'] : []),
    ...(hasIpv6 && ipv6 === undefined ? ['IPv6 tunnel address'] : []),
    ...(mark === undefined ? ['mark'] : []),
  ];
  return missing.length === 0
    ? finding('TunnelAllocated', `Node ${node} has mark ${mark} and ${[ipv4, ipv6].filter(Boolean).join(' and ')}.`)
    : finding('TunnelRangeExhausted', `No ${missing.join(' and no ')} is left for node ${node}.`);
};

const phaseOf = (
  { name, isReady }: NodeView,
  tunnel: TunnelView | undefined,
  allocated: Finding,
): { phase: TunnelPhase; ready: Finding } => {
  if (allocated.reason !== 'TunnelAllocated') return { phase: 'Failed', ready: allocated };
  const isSilent = tunnel?.heartbeat === 'stale';
  // Where agents watch each other, their word about a silent one comes before that of Kubernetes about its node.
  if (!isReady && !(isSilent && tunnel.electorate !== undefined)) {
    return { phase: 'NodeNotReady', ready: finding('NodeNotReady', `Kubernetes says that node ${name} is not ready.`) };
  }
  if (isSilent) {
    const silent = finding('HeartbeatLost', `The agent of node ${name} has not been heard of for too long.`);
    return { phase: 'HeartbeatTimeout', ready: silent };
  }
  switch (tunnel?.device.kind) {
    case 'up':
      return { phase: 'Ready', ready: finding('TunnelReady', `The tunnel of node ${name} is up.`) };
    case 'failed':
      return { phase: 'Failed', ready: tunnel.device.finding };
    default:
      return { phase: 'Init', ready: finding('AgentStarting', `The agent of node ${name} has not reported yet.`) };
  }
};
