/** What has to be written to a gateway: its finalizer, and the status that shows what it carries. */
import type { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import { finalizers } from '../../api/names.ts';
import type { GatewayPlan } from '../../core/gateway-plan.ts';
import { recordGateway } from '../../core/record.ts';
import type { KeptGateway } from '../caches.ts';
import { conditionsOf } from '../conditions.ts';
import { type Ownership, shows } from '../owned-status.ts';
import type { Change } from './change.ts';
import type { Decided } from './decision.ts';

/** The part of the status of a gateway that the plan decides. */
export const gatewayOwnership: Ownership<EgressGatewayStatus> = {
  fieldsOf: ({ nodeList, ipUsage }) => ({ nodeList, ipUsage }),
  conditionTypes: ['Accepted', 'Ready'],
};

/**
 * The changes to a gateway. Every gateway is held by our finalizer; one that is being deleted is let go when no policy
 * of either kind has anything from it.
 */
export const gatewayChanges = (
  { plan, generation }: Decided<GatewayPlan>,
  isInUse: boolean,
  { identity, status }: KeptGateway,
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
