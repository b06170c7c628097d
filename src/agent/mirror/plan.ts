/** What the mirror is to do, from what is known about owning EIPs. Pure. */
import type { Ip } from '../../core/ip/index.ts';
import { type RecordedEip, type Roster, rosterOf } from '../../core/ownership/planned.ts';
import type { EipHold, OwnershipPlan } from '../../core/ownership/port.ts';
import { type MirroredEip, type MirrorPlan, SUCCESSORS } from './port.ts';

export interface MirrorFacts {
  readonly node: string;
  /** EIP -> what this node does for it. */
  readonly holds: ReadonlyMap<Ip, EipHold>;
  readonly plan: OwnershipPlan;
  readonly recorded: ReadonlyMap<Ip, RecordedEip>;
  readonly rosters: readonly Roster[];
  readonly addresses: ReadonlyMap<string, string>;
  readonly replyMark: number | undefined;
}

/** An EIP is told about to the first that would take it over, if its gateway keeps connections. */
export const mirrorPlanOf = (facts: MirrorFacts): MirrorPlan => {
  const { node, holds, plan, recorded, rosters, addresses, replyMark } = facts;
  const isKept = (eip: Ip): boolean => {
    const record = recorded.get(eip);
    return record !== undefined && rosterOf(rosters, record)?.keepsConnections === true;
  };
  const ipsOf = (eip: Ip): Ip[] => {
    const { ipv4, ipv6 } = recorded.get(eip)?.eip ?? { ipv4: undefined, ipv6: undefined };
    return [ipv4, ipv6].filter((ip) => ip !== undefined);
  };
  const owned: MirroredEip[] = [];
  const awaited: Ip[] = [];
  for (const { eip, candidates } of plan.eips) {
    // Connections of a node group have the address of their node: nobody else can carry them on.
    if (recorded.get(eip)?.group !== undefined) continue;
    const isOwned = holds.get(eip)?.mode === 'owned';
    if (isOwned) {
      const others = candidates.filter((candidate) => candidate !== node);
      owned.push({ ips: ipsOf(eip), successors: isKept(eip) ? others.slice(0, SUCCESSORS) : [] });
    } else if (candidates[0] === node && isKept(eip)) {
      awaited.push(...ipsOf(eip));
    }
  }
  return { owned, awaited, addresses, replyMark };
};
