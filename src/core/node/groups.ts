/**
 * Groups: bindings that fare alike, because they leave from one node with the same addresses. Thousands of policies may share
 * an EIP, and what becomes of it is decided once.
 */

import type { Eip } from '../cluster/view.ts';
import { keysToCompare, ListChangeLog } from '../incremental/change-log.ts';
import type { Ip } from '../ip/index.ts';
import { nodeGroupOf, ownershipKey } from '../ownership/node-group.ts';
import type { Bindings, SlotBinding } from './bindings.ts';
import type { NodeOwnership } from './input.ts';

export interface Group {
  /** No two groups have the same. */
  readonly key: string;
  readonly eip: Eip;
  /** What nodes agree on for it: what stands for the EIP or the node group; undefined where they do not. */
  readonly owned: Ip | undefined;
  readonly node: string;
  /** True: they leave with the addresses of their node. */
  readonly usesNodeIp: boolean;
  readonly bindings: readonly SlotBinding[];
  /** Their slots. The list has a change log. */
  readonly slots: readonly number[];
}

/** A group in the making. */
interface GroupMembers {
  readonly bindings: Set<SlotBinding>;
  readonly slots: Set<number>;
  readonly changeLog: ListChangeLog<number>;
}

/** Makes a function that groups all bindings. It remembers its last call, and makes only groups anew whose bindings are others. */
export const createGroups = () => {
  const membersByKey = new Map<string, GroupMembers>();
  const groups = new Map<string, Group>();
  let last: Bindings['bySlot'] = new Map();
  const membersOf = (key: string): GroupMembers => {
    const known = membersByKey.get(key);
    if (known !== undefined) return known;
    const members = {
      bindings: new Set<SlotBinding>(),
      slots: new Set<number>(),
      changeLog: new ListChangeLog<number>(),
    };
    membersByKey.set(key, members);
    return members;
  };
  const leave = (binding: SlotBinding): void => {
    const { bindings, slots, changeLog } = membersOf(keyOf(binding));
    bindings.delete(binding);
    slots.delete(binding.slot);
    changeLog.exchange(binding.slot, undefined);
  };
  const join = (binding: SlotBinding): void => {
    const { bindings, slots, changeLog } = membersOf(keyOf(binding));
    bindings.add(binding);
    slots.add(binding.slot);
    changeLog.exchange(undefined, binding.slot);
  };
  return (bySlot: Bindings['bySlot']): readonly Group[] => {
    const changed = new Map<string, SlotBinding>();
    for (const slot of keysToCompare(last, bySlot)) {
      const [gone, come] = [last.get(slot), bySlot.get(slot)];
      if (gone === come) continue;
      if (gone !== undefined) leave(gone);
      if (come !== undefined) join(come);
      for (const binding of [gone, come]) if (binding !== undefined) changed.set(keyOf(binding), binding);
    }
    last = bySlot;
    for (const [key, { policy, node, spec }] of changed) {
      const { bindings, slots, changeLog } = membersOf(key);
      if (bindings.size === 0) {
        groups.delete(key);
        membersByKey.delete(key);
        continue;
      }
      const { eip } = policy.recorded;
      const usesNodeIp = leavesAsNode(eip, spec);
      const owned = ownershipKey(policy.recorded);
      groups.set(key, {
        key,
        eip,
        owned,
        node,
        usesNodeIp,
        bindings: [...bindings],
        slots: changeLog.mark([...slots]),
      });
    }
    return [...groups.values()];
  };
};

/** The groups that leave on a node, or may come to. */
export const localGroups = (
  groups: readonly Group[],
  node: string,
  standbys: NodeOwnership['standbys'] | undefined,
  holds: NodeOwnership['holds'] | undefined,
): readonly Group[] =>
  groups.filter(({ node: leavesOn, owned }) => {
    if (leavesOn === node) return true;
    return owned !== undefined && (standbys?.has(owned) === true || holds?.has(owned) === true);
  });

const keyOf = ({ policy, spec, node }: SlotBinding): string => {
  const { eip } = policy.recorded;
  const group = nodeGroupOf(policy.recorded);
  const recordedIn = group === undefined ? '' : `${group.gateway} ${group.node}`;
  return `${eip.ipv4 ?? ''} ${eip.ipv6 ?? ''} ${node} ${leavesAsNode(eip, spec)} ${recordedIn}`;
};

/** True when a policy leaves with the address of its node. */
const leavesAsNode = ({ ipv4, ipv6 }: Eip, { address }: SlotBinding['spec']): boolean =>
  ipv4 === undefined && ipv6 === undefined && address.kind === 'nodeIp';
