/** What people are told in Events when a status changes: only what moved, broke or came back, never what is as before. */
import type { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import type { ConditionType } from '../../api/reason.ts';
import { isReason, type Reason, reasons } from '../../api/reasons.ts';
import { listed } from '../../core/finding.ts';
import type { AnyStatus } from '../../runtime/kube/owned-status.ts';

/** Something that happened to an object. */
export interface Happening {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
  readonly note: string;
}

/** What happened to a policy between two statuses. */
export const policyHappenings = (before: PolicyStatus | undefined, after: PolicyStatus): readonly Happening[] => [
  ...moves(before, after),
  ...transitions(before, after, ['Accepted', 'Allocated']),
  // Waiting for kernels is normal; some of what agents find is not, and people look at the policy first.
  ...transitions(before, after, ['Programmed']).filter(({ reason }) => isToldInEvents(reason)),
];

const isToldInEvents = (reason: Reason): boolean => reasons[reason].places.some((place) => place === 'Event');

/** What happened to a gateway between two statuses. */
export const gatewayHappenings = (
  before: EgressGatewayStatus | undefined,
  after: EgressGatewayStatus,
): readonly Happening[] => {
  const released = [...eipsOf(before).difference(eipsOf(after))];
  const note = `${released.length === 1 ? 'An EIP is' : `${released.length} EIPs are`} free again: ${listed(released)}.`;
  return [
    ...(released.length === 0 ? [] : [{ type: 'Normal', reason: 'EipReleased', note } as const]),
    ...transitions(before, after, ['Accepted', 'Ready']),
  ];
};

/** What happened to a tunnel between two statuses. */
export const tunnelHappenings = (
  before: EgressTunnelStatus | undefined,
  after: EgressTunnelStatus,
): readonly Happening[] => transitions(before, after, ['Allocated', 'Ready']);

const moves = (before: PolicyStatus | undefined, after: PolicyStatus): readonly Happening[] => {
  const from = addressOf(before);
  const to = addressOf(after);
  if (!before?.node || !after.node) return [];
  if (from !== to) {
    const note = `The policy leaves with ${to || 'the node IP'} through ${after.node} now; before, it was ${from || 'the node IP'} through ${before.node}.`;
    return [{ type: 'Normal', reason: 'PolicyRebound', note }];
  }
  if (before.node === after.node) return [];
  const note = `${to || 'The way out'} has moved from node ${before.node} to node ${after.node}.`;
  return [{ type: 'Normal', reason: 'EipMoved', note }];
};

const addressOf = (status: PolicyStatus | undefined): string =>
  [status?.eip?.ipv4, status?.eip?.ipv6].filter(Boolean).join(' and ');

/** Conditions that fail for another reason than before, and conditions that hold again. A good start is no news. */
const transitions = (
  before: AnyStatus | undefined,
  after: AnyStatus,
  types: readonly ConditionType[],
): readonly Happening[] =>
  (after.conditions ?? []).flatMap(({ type, status, reason, message }): readonly Happening[] => {
    const old = before?.conditions?.find((condition) => condition.type === type);
    if (!types.some((each) => each === type) || !isReason(reason) || old?.reason === reason) return [];
    if (status === 'False') return [{ type: 'Warning', reason, note: message }];
    return old?.status === 'False' && status === 'True' ? [{ type: 'Normal', reason, note: message }] : [];
  });

const eipsOf = (status: EgressGatewayStatus | undefined): ReadonlySet<string> =>
  new Set(
    (status?.nodeList ?? [])
      .flatMap(({ eips = [] }) => eips)
      .map(({ ipv4, ipv6 }) => [ipv4, ipv6].filter(Boolean).join(' and '))
      .filter((text) => text !== ''),
  );
