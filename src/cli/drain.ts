/** Drain is what `drain` does: it writes on a Node that it is to carry no EIPs, and waits until it carries none. */
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { annotations } from '../api/names.ts';
import { PolicyStatus } from '../api/policy.ts';
import { readStatus } from '../core/project/api-object.ts';
import type { OwnObjects } from './read.ts';

/** What `drain` and `undrain` did. */
export interface DrainReport {
  readonly isFine: boolean;
  readonly node: string;
  /** True when the node is to carry no EIPs from now on. */
  readonly isDraining: boolean;
  /** What is left on it after the time that a person waits; undefined when nothing is. */
  readonly remaining: string | undefined;
}

/** The change of a Node. */
export const drainPatch = (isDraining: boolean): object => ({
  metadata: { annotations: { [annotations.drain]: isDraining ? 'true' : null } },
});

/** What the node still carries; undefined when nothing. */
export const leftOn = (node: string, { policies, clusterPolicies, tunnels }: OwnObjects): string | undefined => {
  const records = [...policies, ...clusterPolicies].map((object) => readStatus(PolicyStatus, object)?.node);
  const count = records.filter((name) => name === node).length;
  if (count > 0) return `${count} ${count === 1 ? 'policy leaves' : 'policies leave'} through it`;
  const tunnel = tunnels.find(({ metadata }) => metadata.name === node);
  const held = (tunnel && readStatus(EgressTunnelStatus, tunnel)?.report?.eips) ?? [];
  return held.length === 0 ? undefined : `it reports that it holds ${held.map(({ ip }) => ip).join(', ')}`;
};
