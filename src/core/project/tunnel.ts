/** TunnelView from an EgressTunnel. */
import { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import { isReason, reasons } from '../../api/reasons.ts';
import { type Finding, finding } from '../cluster/finding.ts';
import type { DeviceView, TunnelView } from '../cluster/view.ts';
import { nodeGroupKey } from '../ownership/node-group.ts';
import { ipOrNone, ipv4OrNone, ipv6OrNone } from './address.ts';
import { type ApiObject, createdAtMsOf, readStatus } from './api-object.ts';
import { electorateOf } from './cluster.ts';

/** The view of a tunnel; the caller has a clock and says how the heartbeat stands. */
export const projectTunnel = (object: ApiObject, heartbeat: TunnelView['heartbeat']): TunnelView => {
  const status = readStatus(EgressTunnelStatus, object);
  return {
    node: object.metadata.name,
    createdAtMs: createdAtMsOf(object.metadata),
    isDeleting: object.metadata.deletionTimestamp !== undefined,
    recorded: {
      mark: status?.mark || undefined,
      ipv4: ipv4OrNone(status?.tunnel?.ipv4),
      ipv6: ipv6OrNone(status?.tunnel?.ipv6),
      mac: status?.tunnel?.mac || undefined,
      phase: status?.phase,
    },
    parent: {
      ipv4: ipv4OrNone(status?.tunnel?.parent?.ipv4),
      ipv6: ipv6OrNone(status?.tunnel?.parent?.ipv6),
    },
    heartbeat,
    device: deviceOf(status),
    held: [
      ...(status?.report?.eips ?? []).flatMap(({ ip, epoch }) => {
        const parsed = ipOrNone(ip);
        return parsed === undefined ? [] : [{ ip: parsed, epoch }];
      }),
      ...(status?.report?.nodeGroups ?? []).map((group) => ({ ip: nodeGroupKey(group), epoch: group.epoch })),
    ],
    conflicts: (status?.report?.conflicts ?? []).flatMap(({ ip, mac, interface: name }) => {
      const parsed = ipOrNone(ip);
      return parsed === undefined ? [] : [{ ip: parsed, mac, interface: name }];
    }),
    detectionMs: status?.report?.detectionMilliseconds,
    uplink: uplinkOf(status),
    macs: status?.report?.macAddresses ?? [],
    electorate: electorateOf(status?.report?.electorate),
  };
};

const uplinkOf = (status: EgressTunnelStatus | undefined): Finding | undefined => {
  const lost = (status?.report?.problems ?? []).filter(({ reason }) => reason === 'UplinkLost');
  // Each ends with what to do, which is told once.
  const told = lost.map(({ message }) => message.replace(reasons.UplinkLost.remedy, '').trim());
  return told.length === 0 ? undefined : finding('UplinkLost', told.join(' '));
};

// The agent names its parent interface once the device stands on it, and reports what keeps the device down.
const deviceOf = (status: EgressTunnelStatus | undefined): DeviceView => {
  for (const { reason, message, policy } of status?.report?.problems ?? []) {
    if (policy === undefined && isReason(reason) && reasons[reason].places.some((place) => place === 'Ready')) {
      return { kind: 'failed', finding: { reason, sentence: message } };
    }
  }
  return status?.tunnel?.parent?.name ? { kind: 'up' } : { kind: 'unreported' };
};
