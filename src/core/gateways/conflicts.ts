/** Conflicts: what is said about another machine that claims an EIP which a node of ours holds. */
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { Eip, EipConflict } from '../cluster/view.ts';

/** The finding about a conflict that a node reports. */
export const conflictFinding = (node: string, { ip, mac, interface: name }: EipConflict): Finding =>
  finding('EipInUse', `Node ${node} holds EIP ${ip}, and ${mac} claims it too, seen on ${name} of that node.`);

/** The conflict about an address of an EIP; undefined when there is none. */
export const conflictOf = ({ ipv4, ipv6 }: Eip, conflicts: readonly EipConflict[]): EipConflict | undefined =>
  conflicts.find(({ ip }) => ip === ipv4 || ip === ipv6);

/** One finding for all conflicts about EIPs of a gateway, by node; undefined when there are none. */
export const gatewayConflictFinding = (
  gateway: string,
  found: readonly { readonly node: string; readonly conflict: EipConflict }[],
): Finding | undefined => {
  if (found.length === 0) return undefined;
  const who = found.map(({ node, conflict: { ip, mac } }) => `${ip} of node ${node} by ${mac}`);
  return finding('EipInUse', `Other machines claim EIPs of gateway ${gateway}: ${listed(who)}.`);
};
