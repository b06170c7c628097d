/** Which node carries an EIP: the three modes of `nodeSelector.policy`. The choice is among the nodes of one gateway. */
import type { NodePolicy } from '../../api/egress-gateway.ts';
import { byRendezvous, type Contender } from '../values/hash.ts';

/** A node that can carry EIPs, and what it carries already for this gateway. */
export interface Carrier extends Contender {
  /** EIPs, and policies that leave with the address of the node. */
  readonly eips: number;
  readonly policies: number;
}

/** What the gateway asks for. */
export interface Selection {
  readonly nodePolicy: NodePolicy;
  readonly nodeLimit: number;
}

/**
 * The node for something that `policies` policies use. Between equals the rendezvous hash of `subjectHash` decides.
 * - `average`: the node with the fewest EIPs.
 * - `minimum`: the node that has most already.
 * - `limit`: the fullest node with room for all policies below the limit; where none has room, any node.
 * Undefined without carriers.
 */
export const selectNode = <T extends Carrier>(
  carriers: readonly T[],
  { nodePolicy, nodeLimit }: Selection,
  policies: number,
  subjectHash: number,
): T | undefined => {
  const order = byRendezvous(subjectHash);
  const firstBy = (candidates: readonly T[], score: (carrier: T) => number): T | undefined =>
    candidates.reduce<T | undefined>((best, next) => {
      if (best === undefined) return next;
      return (score(next) - score(best) || order(next, best)) < 0 ? next : best;
    }, undefined);
  switch (nodePolicy) {
    case 'average':
      return firstBy(carriers, ({ eips }) => eips);
    case 'minimum':
      return firstBy(carriers, ({ eips }) => -eips);
    case 'limit': {
      const withRoom = carriers.filter((carrier) => carrier.policies + policies <= nodeLimit);
      return firstBy(withRoom, (carrier) => -carrier.policies) ?? firstBy(carriers, () => 0);
    }
    default:
      return nodePolicy satisfies never;
  }
};
