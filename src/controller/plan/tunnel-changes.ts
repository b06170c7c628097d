/** What has to be done to the EgressTunnel of a node: make it, replace it, remove it, or write its status. */
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { finalizers } from '../../api/names.ts';
import { conditionsOf } from '../../core/status/conditions.ts';
import { recordTunnel } from '../../core/status/record.ts';
import type { TunnelPlan } from '../../core/tunnels/tunnels.ts';
import { type StatusOwnership, shows } from '../../runtime/kube/owned-status.ts';
import type { CachedTunnel } from '../loop/caches.ts';
import type { Change } from './change.ts';

/** The part of the status of a tunnel that the plan decides; the parent, heartbeat and report are the agent's. */
export const tunnelOwnership: StatusOwnership<EgressTunnelStatus> = {
  fieldsOf: ({ phase, mark, tunnel }) => ({
    phase,
    mark,
    tunnel: { ipv4: tunnel?.ipv4, ipv6: tunnel?.ipv6, mac: tunnel?.mac },
  }),
  conditionTypes: ['Allocated', 'Ready', 'Slowed', 'UplinkLost'],
};

/**
 * The changes to a tunnel. Without a plan its node is gone. A tunnel that is being deleted is let go at once: its
 * addresses and mark stay taken until the object is gone, and if the node is still there it is then made anew.
 */
export const tunnelChanges = (
  plan: TunnelPlan | undefined,
  tunnel: CachedTunnel | undefined,
  now: Date,
): readonly Change<EgressTunnelStatus>[] => {
  if (tunnel === undefined) return plan === undefined ? [] : [{ kind: 'create' }];
  const { identity, status } = tunnel;
  const isHeld = identity.finalizers.includes(finalizers.tunnel);
  if (identity.isDeleting) return isHeld ? [{ kind: 'release' }] : [];
  // A mark is immutable: one that cannot stay goes with its object.
  if (plan === undefined || (status?.mark && status.mark !== plan.mark)) return [{ kind: 'delete' }];
  const wanted: EgressTunnelStatus = {
    ...recordTunnel(plan),
    observedGeneration: identity.generation,
    conditions: conditionsOf(
      {
        Allocated: plan.allocated,
        Ready: plan.ready,
        ...(plan.slowed && { Slowed: plan.slowed }),
        ...(plan.uplink && { UplinkLost: plan.uplink }),
      },
      identity.generation,
      status?.conditions,
      now,
    ),
  };
  return [
    ...(isHeld ? [] : [{ kind: 'hold' } as const]),
    ...(shows(status, wanted, tunnelOwnership) ? [] : [{ kind: 'status', status: wanted } as const]),
  ];
};
