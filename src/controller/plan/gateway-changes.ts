/** What has to be written to a gateway: its finalizer, and the status that shows what it carries. */
import type { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import { finalizers } from '../../api/names.ts';
import type { GatewayPlan } from '../../core/plan/gateway-plan.ts';
import { conditionsOf } from '../../core/status/conditions.ts';
import { recordGateway } from '../../core/status/record.ts';
import { isSame, type StatusOwnership, shows } from '../../runtime/kube/owned-status.ts';
import type { CachedGateway } from '../loop/caches.ts';
import type { Change } from './change.ts';
import type { PlannedObject } from './decision.ts';

/** The part of the status of a gateway that the plan decides. */
export const gatewayOwnership: StatusOwnership<EgressGatewayStatus> = {
  fieldsOf: ({ nodeList, ipUsage }) => ({ nodeList, ipUsage }),
  conditionTypes: ['Accepted', 'Ready'],
};

/**
 * The changes to a gateway. Every gateway is held by our finalizer; one that is being deleted is let go when no policy
 * of either kind has anything from it.
 */
export const gatewayChanges = (
  { plan, generation }: PlannedObject<GatewayPlan>,
  isInUse: boolean,
  { identity, status }: CachedGateway,
  now: Date,
): readonly Change<EgressGatewayStatus>[] => {
  const isHeld = identity.finalizers.includes(finalizers.gateway);
  if (identity.isDeleting && !isInUse) return isHeld ? [{ kind: 'release' }] : [];
  const wanted: EgressGatewayStatus = {
    ...recordGateway(plan),
    observedGeneration: generation,
    conditions: conditionsOf({ Accepted: plan.accepted, Ready: plan.ready }, generation, status?.conditions, now),
  };
  return [
    // The API server takes no new finalizer on an object that is being deleted.
    ...(isHeld || identity.isDeleting ? [] : [{ kind: 'hold' } as const]),
    ...(shows(status, wanted, gatewayOwnership) ? [] : [{ kind: 'status', status: wanted } as const]),
  ];
};

/** How many EIPs a status lists. */
export const eipsIn = ({ nodeList = [] }: EgressGatewayStatus): number =>
  nodeList.reduce((sum, { eips = [] }) => sum + eips.length, 0);

/** True when the new status only lists other EIPs: the nodes, their phases and the conditions are as they were. */
export const canWaitLonger = (before: EgressGatewayStatus | undefined, after: EgressGatewayStatus): boolean => {
  const healthOf = ({ nodeList = [], conditions = [], observedGeneration }: EgressGatewayStatus) => ({
    observedGeneration,
    nodes: nodeList.map(({ name, status }) => `${name} ${status}`),
    conditions: conditions.map(({ type, reason, message }) => `${type} ${reason} ${message}`),
  });
  return before !== undefined && isSame(healthOf(before), healthOf(after));
};
