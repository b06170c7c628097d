/**
 * Slots: the number that packets of a binding carry through the tunnel. A slot belongs to one policy with one EIP: it
 * stays when the EIP moves to another node, and a policy that gets another EIP gets another slot, so that connections
 * which still have the old one are not sent out with the new address.
 */
import { assignDistinct } from './distinct.ts';
import { eipText, sharesAddress } from './eip-pairs.ts';
import { hashPair, hashText } from './hash.ts';
import type { Eip, PolicyKey, PolicyView } from './view.ts';

/** 14 bits without zero: kube-proxy owns the bits above in the packet mark, and zero means "no slot". */
export const SLOTS = 16_383;

/** A policy with the address it leaves with; undefined is the address of the node. */
export interface SlotClaim {
  readonly policy: PolicyView;
  readonly eip: Eip | undefined;
}

/** A slot for every binding, by policy; those for which none is left are missing. `claims` are sorted by age. */
export const assignSlots = (claims: readonly SlotClaim[]): Map<string, number> =>
  assignDistinct(
    claims.map((claim) => ({
      name: claim.policy.key satisfies PolicyKey,
      recorded: isSameBinding(claim) ? claim.policy.recorded.slot : undefined,
      hash: () => hashPair(hashText(claim.policy.uid), hashText(claim.eip === undefined ? 'node' : eipText(claim.eip))),
    })),
    { size: SLOTS, at: (place) => place + 1 },
    // Connections of a binding that changes just now still carry its old slot.
    claims.map(({ policy }) => policy.recorded.slot).filter((slot) => slot !== undefined),
  );

const isSameBinding = ({ policy, eip }: SlotClaim): boolean => {
  const { recorded } = policy;
  return eip === undefined
    ? recorded.eip.ipv4 === undefined && recorded.eip.ipv6 === undefined
    : sharesAddress(eip, recorded.eip);
};
