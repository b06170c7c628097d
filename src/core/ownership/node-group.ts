/**
 * A node group: the policies of one gateway that leave with node addresses (`useNodeIP`) and are recorded with one node.
 * Nodes agree on who serves a group as they agree on who owns an EIP, but a group has no address. So that the protocol, its
 * messages and the gate need not know two kinds of things, an address stands for it that nobody can have: one of the
 * discard-only block 100::/64 (RFC 6666), made from the names. Nothing is ever sent to it or from it.
 */

import type { Eip, RecordedBinding } from '../cluster/view.ts';
import type { Ip, Ipv6 } from '../ip/index.ts';
import { hashText } from '../values/hash.ts';

export interface NodeGroup {
  readonly gateway: string;
  /** The node on record. Another one may serve the group already. */
  readonly node: string;
}

/** The address that stands for a group: the same on every node and in every version, as kernels keep it over a restart. */
export const nodeGroupKey = ({ gateway, node }: NodeGroup): Ip => {
  // The highest bit is set, so that all four parts are written and none of the zeros before them is among them (RFC 5952).
  const first = (hashText(`${gateway}/${node}`) | 0x80000000) >>> 0;
  const second = hashText(`${node}/${gateway}`);
  const parts = [first >>> 16, first & 0xffff, second >>> 16, second & 0xffff];
  // This is the canonical text of an IPv6 address, which is what the brand stands for.
  return `100::${parts.map((part) => part.toString(16)).join(':')}` as Ipv6;
};

/** True for an address that stands for a group. */
export const isNodeGroupKey = (ip: Ip): boolean => /^100::[89a-f][0-9a-f]{3}(:[0-9a-f]{1,4}){3}$/.test(ip);

/** The address that stands for an EIP; undefined when there is none. */
export const eipKey = ({ ipv4, ipv6 }: Eip): Ip | undefined => ipv4 ?? ipv6;

/** The group that a policy is recorded in; undefined for one with an EIP, or whose gateway is not recorded. */
export const nodeGroupOf = ({ eip, gateway, node }: RecordedBinding): NodeGroup | undefined =>
  gateway === undefined || node === undefined || eipKey(eip) !== undefined ? undefined : { gateway, node };

/** What nodes agree on for a policy: the address that stands for its EIP or for its node group; undefined without either. */
export const ownershipKey = (recorded: RecordedBinding): Ip | undefined => {
  const eip = eipKey(recorded.eip);
  if (eip !== undefined) return eip;
  const group = nodeGroupOf(recorded);
  return group && nodeGroupKey(group);
};
