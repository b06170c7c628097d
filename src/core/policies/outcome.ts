/**
 * What becomes of a packet that a policy is about. Agents make their maps from it and explain() tells it, so that both
 * say the same. It depends on the family: a policy with an IPv4 EIP only cannot serve IPv6.
 */

import { type Eip, ofPair, type PolicySpecView } from '../cluster/view.ts';
import type { Ip, IpFamily } from '../ip/index.ts';

/** How a packet leaves. */
export type PacketOutcome =
  /** Through a gateway node, with an EIP or the address of that node as its source. */
  | { readonly kind: 'gateway'; readonly node: string; readonly slot: number; readonly eip: Ip }
  | { readonly kind: 'drop'; readonly because: Unavailability }
  /** With the address of the node it starts on, because the policy says NodeIP. */
  | { readonly kind: 'nodeIp'; readonly because: Unavailability }
  /** As if there were no policies. */
  | { readonly kind: 'leftAlone' };

/**
 * Why a policy does not serve a packet: it has no node or slot, its node cannot be reached or is not ready, or it has no
 * address of the family.
 */
export type Unavailability = 'unbound' | 'unreachable' | 'notReady' | 'noAddress';

/** A policy and what it was given. */
export interface BoundPolicy {
  readonly spec: Pick<PolicySpecView, 'address' | 'onUnavailable'>;
  readonly eip: Eip;
  readonly node: string | undefined;
  readonly slot: number | undefined;
}

/** The node that a packet starts on, and what that node knows of gateway nodes. */
export interface SourceNode {
  /** Whether packets get to a gateway node; they always do to the node itself. */
  readonly canReach: (node: string) => boolean;
  /** Whether the tunnel of a node is in use; see isInUse in tunnels.ts. */
  readonly isReady: (node: string) => boolean;
  /** The address of a node itself that the outside sees. */
  readonly addressOf: (node: string, family: IpFamily) => Ip | undefined;
}

/**
 * What becomes of a packet of a family. A policy that says Drop keeps using a node that does not look ready: the worst
 * that can happen there is a drop, and who looks may be wrong. One that says NodeIP does not wait for that.
 */
export const outcomeOf = (
  { spec, eip, node, slot }: BoundPolicy,
  family: IpFamily,
  site: SourceNode,
): PacketOutcome => {
  const without = (because: Unavailability): PacketOutcome =>
    spec.onUnavailable === 'Drop' ? { kind: 'drop', because } : { kind: 'nodeIp', because };
  if (node === undefined || slot === undefined) return without('unbound');
  if (!site.canReach(node)) return without('unreachable');
  if (spec.onUnavailable === 'NodeIP' && !site.isReady(node)) return without('notReady');
  const isWithoutEip = eip.ipv4 === undefined && eip.ipv6 === undefined;
  const usesNodeIp = isWithoutEip && spec.address.kind === 'nodeIp';
  const source = usesNodeIp ? site.addressOf(node, family) : ofPair(eip, family);
  return source === undefined ? without('noAddress') : { kind: 'gateway', node, slot, eip: source };
};
