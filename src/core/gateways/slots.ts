/**
 * Slots: the number that packets of a binding carry through the tunnel. A slot belongs to one policy with one EIP: it
 * stays when the EIP moves to another node, and a policy that gets another EIP gets another slot, so that connections
 * which still have the old one are not sent out with the new address.
 */

import type { Eip, PolicyKey, PolicyView } from '../cluster/view.ts';
import { assignUnique, firstFree, type Space } from '../values/assign-unique.ts';
import { hashPair, hashText } from '../values/hash.ts';
import { eipText, sharesAddress } from './eip-pairs.ts';

/** 14 bits without zero: kube-proxy owns the bits above in the packet mark, and zero means "no slot". */
export const SLOTS = 16_383;

const space: Space<number> = { size: SLOTS, at: (place) => place + 1 };

/** A policy with the address it leaves with; undefined is the address of the node. */
export interface SlotClaim {
  readonly policy: PolicyView;
  readonly eip: Eip | undefined;
}

/** A slot for every binding, by policy; those for which none is left are missing. `claims` are sorted by age. */
export const assignSlots = (claims: readonly SlotClaim[]): Map<string, number> =>
  assignUnique(
    claims.map((claim) => ({
      name: claim.policy.key satisfies PolicyKey,
      recorded: recordedOf(claim),
      hash: () => hashOf(claim),
    })),
    space,
    // Connections of a binding that changes just now still carry its old slot.
    claims.map(({ policy }) => policy.recorded.slot).filter((slot) => slot !== undefined),
  );

/** What became of the claims since the last time; a claim that changed is in both lists. Both are sorted by age. */
export interface ClaimChanges {
  readonly gone: readonly SlotClaim[];
  readonly come: readonly SlotClaim[];
}

/** The slots as they stand. */
export interface Slots {
  readonly of: (policy: PolicyKey) => number | undefined;
  /** True when anybody may have another one than before, and not only those who came. */
  readonly areAnew: boolean;
}

/**
 * Makes a function that assigns slots and remembers them. `all` gives all claims; it is asked only when the changes alone
 * do not tell: as long as everybody has the slot of his record, those who come can only take what is left.
 */
export const createSlots = (): ((changes: ClaimChanges, all: () => readonly SlotClaim[]) => Slots) => {
  let slotByPolicy = new Map<string, number>();
  let taken = new Set<number>();
  /** Policies whose record does not name the slot that they have. */
  let unsettled = new Set<PolicyKey>();
  const of: Slots['of'] = (policy) => slotByPolicy.get(policy);

  const drop = ({ policy: { key } }: SlotClaim): void => {
    const slot = slotByPolicy.get(key);
    if (slot !== undefined) taken.delete(slot);
    slotByPolicy.delete(key);
    unsettled.delete(key);
  };
  const give = (claim: SlotClaim, slot: number | undefined): void => {
    const { key } = claim.policy;
    if (slot !== undefined) {
      slotByPolicy.set(key, slot);
      taken.add(slot);
    }
    if (slot === undefined || recordedOf(claim) !== slot) unsettled.add(key);
  };
  /** Gives slots to those who come; false when that may concern others. */
  const giveTo = (come: readonly SlotClaim[]): boolean => {
    if (unsettled.size > 0) return false;
    const records = come.map(recordedOf).filter((slot) => slot !== undefined);
    if (new Set(records).size < records.length || records.some((slot) => taken.has(slot))) return false;
    const isRecorded = (claim: SlotClaim): boolean => recordedOf(claim) !== undefined;
    for (const claim of come) if (isRecorded(claim)) give(claim, recordedOf(claim));
    const others = come.filter((claim) => !isRecorded(claim));
    if (others.length === 0) return true;
    const reserved = new Set(come.map(({ policy }) => policy.recorded.slot));
    const isTaken = { has: (slot: number) => taken.has(slot) || reserved.has(slot) };
    for (const claim of others) give(claim, firstFree(space, hashOf(claim), isTaken));
    return true;
  };

  return ({ gone, come }, all) => {
    for (const claim of gone) drop(claim);
    if (giveTo(come)) return { of, areAnew: false };
    const claims = all();
    slotByPolicy = new Map();
    taken = new Set();
    unsettled = new Set();
    const assigned = assignSlots(claims);
    for (const claim of claims) give(claim, assigned.get(claim.policy.key));
    return { of, areAnew: true };
  };
};

/** The slot on record, if it is for this binding. */
const recordedOf = (claim: SlotClaim): number | undefined =>
  isSameBinding(claim) ? claim.policy.recorded.slot : undefined;

const hashOf = ({ policy, eip }: SlotClaim): number =>
  hashPair(hashText(policy.uid), hashText(eip === undefined ? 'node' : eipText(eip)));

const isSameBinding = ({ policy, eip }: SlotClaim): boolean => {
  const { recorded } = policy;
  return eip === undefined
    ? recorded.eip.ipv4 === undefined && recorded.eip.ipv6 === undefined
    : sharesAddress(eip, recorded.eip);
};
