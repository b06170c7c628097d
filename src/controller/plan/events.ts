/** What people are told in Events when a status changes: only what moved, broke or came back, never what is as before. */
import type { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import type { ConditionType } from '../../api/reason.ts';
import { isReason, type Reason, reasons } from '../../api/reasons.ts';
import { listed } from '../../core/cluster/finding.ts';
import { nodeGroupKey } from '../../core/ownership/node-group.ts';
import type { AnyStatus } from '../../runtime/kube/owned-status.ts';

/** Something that happened to an object. */
export interface ObjectEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
  readonly note: string;
}

/** The epoch in which a node reports to hold an EIP, or what stands for a node group; undefined when it does not. */
export type ReportedEpoch = (node: string, ip: string) => number | undefined;

const nobody: ReportedEpoch = () => undefined;

/** What happened to a policy between two statuses. */
export const policyEvents = (
  before: PolicyStatus | undefined,
  after: PolicyStatus,
  held: ReportedEpoch = nobody,
): readonly ObjectEvent[] => [
  ...moves(before, after, held),
  ...transitions(before, after, ['Accepted', 'Allocated']),
  // Waiting for kernels is normal; some of what agents find is not, and people look at the policy first.
  ...transitions(before, after, ['Programmed']).filter(({ reason }) => {
    const old = before?.conditions?.find(({ type }) => type === 'Programmed')?.reason ?? '';
    return hasEvent(reason) || (isReason(old) && hasEvent(old));
  }),
];

const hasEvent = (reason: Reason): boolean => reasons[reason].places.some((place) => place === 'Event');

/** What happened to a gateway between two statuses. */
export const gatewayEvents = (
  before: EgressGatewayStatus | undefined,
  after: EgressGatewayStatus,
  held: ReportedEpoch = nobody,
): readonly ObjectEvent[] => {
  const released = [...eipsOf(before).difference(eipsOf(after))];
  const note = `${released.length === 1 ? 'An EIP is' : `${released.length} EIPs are`} free again: ${listed(released)}.`;
  return [
    ...(released.length === 0 ? [] : [{ type: 'Normal', reason: 'EipReleased', note } as const]),
    ...takeOvers(before, after, held),
    ...transitions(before, after, ['Accepted', 'Ready']),
  ];
};

/** What happened to a tunnel between two statuses. */
export const tunnelEvents = (
  before: EgressTunnelStatus | undefined,
  after: EgressTunnelStatus,
): readonly ObjectEvent[] => transitions(before, after, ['Allocated', 'Ready']);

const moves = (before: PolicyStatus | undefined, after: PolicyStatus, held: ReportedEpoch): readonly ObjectEvent[] => {
  const from = addressOf(before);
  const to = addressOf(after);
  if (!before?.node || !after.node) return [];
  if (from !== to) {
    const note = `The policy leaves with ${to || 'the node IP'} through ${after.node} now; before, it was ${from || 'the node IP'} through ${before.node}.`;
    return [{ type: 'Normal', reason: 'PolicyRebound', note }];
  }
  if (before.node === after.node) return [];
  // Policies with node addresses are in another node group now, with epochs of its own: that of the group before tells.
  const group = to === '' && before.gateway ? nodeGroupKey({ gateway: before.gateway, node: before.node }) : '';
  if ((held(after.node, group) ?? 0) > (before.epoch ?? 0)) {
    const note = `Node ${after.node} serves the policy with its own address in place of node ${before.node}.`;
    return [{ type: 'Warning', reason: 'EipTakenOver', note }];
  }
  if (isTakenOver(after.node, { ...after.eip, epoch: after.epoch }, before.epoch, held)) {
    const note = `Node ${after.node} has taken over ${to} from node ${before.node} (epoch ${after.epoch}).`;
    return [{ type: 'Warning', reason: 'EipTakenOver', note }];
  }
  const note = `${to || 'The way out'} has moved from node ${before.node} to node ${after.node}.`;
  return [{ type: 'Normal', reason: 'EipMoved', note }];
};

/** An EIP of a status, with its epoch. */
interface StatusEip {
  readonly ipv4?: string | undefined;
  readonly ipv6?: string | undefined;
  readonly epoch?: number | undefined;
}

/** A node that took an EIP over holds it in the very epoch that is recorded; one that is only named for it does not yet. */
const isTakenOver = (
  node: string,
  { ipv4, ipv6, epoch = 0 }: StatusEip,
  epochBefore: number | undefined,
  held: ReportedEpoch,
): boolean => epoch > (epochBefore ?? 0) && [ipv4, ipv6].some((ip) => Boolean(ip) && held(node, ip ?? '') === epoch);

/** One sentence for all EIPs that a node has taken over. */
const takeOvers = (
  before: EgressGatewayStatus | undefined,
  after: EgressGatewayStatus,
  held: ReportedEpoch,
): readonly ObjectEvent[] => {
  const placeByText = new Map(
    (before?.nodeList ?? []).flatMap(({ name = '', eips = [] }) =>
      eips.map((eip) => [textOf(eip), { node: name, epoch: eip.epoch }]),
    ),
  );
  return (after.nodeList ?? []).flatMap(({ name = '', eips = [] }): readonly ObjectEvent[] => {
    const taken = eips.filter((eip) => {
      const place = placeByText.get(textOf(eip));
      return place !== undefined && place.node !== name && isTakenOver(name, eip, place.epoch, held);
    });
    if (taken.length === 0) return [];
    const from = [...new Set(taken.map((eip) => placeByText.get(textOf(eip))?.node ?? ''))];
    const note = `Node ${name} has taken over ${listed(taken.map(textOf))} from ${listed(from)}.`;
    return [{ type: 'Warning', reason: 'EipTakenOver', note }];
  });
};

const textOf = ({ ipv4, ipv6 }: StatusEip): string => [ipv4, ipv6].filter(Boolean).join(' and ');

const addressOf = (status: PolicyStatus | undefined): string => textOf(status?.eip ?? {});

/** Conditions that fail for another reason than before, and conditions that hold again. A good start is no news. */
const transitions = (
  before: AnyStatus | undefined,
  after: AnyStatus,
  types: readonly ConditionType[],
): readonly ObjectEvent[] =>
  (after.conditions ?? []).flatMap(({ type, status, reason, message }): readonly ObjectEvent[] => {
    const old = before?.conditions?.find((condition) => condition.type === type);
    if (!types.some((each) => each === type) || !isReason(reason) || old?.reason === reason) return [];
    if (status === 'False') return [{ type: 'Warning', reason, note: message }];
    return old?.status === 'False' && status === 'True' ? [{ type: 'Normal', reason, note: message }] : [];
  });

const eipsOf = (status: EgressGatewayStatus | undefined): ReadonlySet<string> =>
  new Set(
    (status?.nodeList ?? [])
      .flatMap(({ eips = [] }) => eips)
      .map(textOf)
      .filter((text) => text !== ''),
  );
