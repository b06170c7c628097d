/**
 * Switching: the elements of a node when EIPs have got another owner, from those that it holds. It touches nothing but
 * where slots go, so that a take-over need not wait until everything was decided anew; the next pass comes to the same.
 */

import type { PolicyView } from '../cluster/view.ts';
import type { Ip } from '../ip/index.ts';
import { ownershipKey } from '../ownership/node-group.ts';
import { nodeOf, type Owners } from './bindings.ts';
import type { TableElements } from './desired.ts';
import { gatewayMark, markText, slotMark, snatMark } from './numbers.ts';

/** The EIPs whose owners differ. */
export const movedBetween = (before: Owners, after: Owners): ReadonlySet<Ip> => {
  const moved = new Set<Ip>();
  if (before === after) return moved;
  for (const [eip, node] of before) if (after.get(eip) !== node) moved.add(eip);
  for (const eip of after.keys()) if (!before.has(eip)) moved.add(eip);
  return moved;
};

/** The elements with the slots of the moved EIPs going to their owners. Slots that go nowhere yet are left alone. */
export const switchedTo = (
  elements: TableElements,
  moved: ReadonlySet<Ip>,
  facts: {
    readonly node: string;
    readonly policies: readonly PolicyView[];
    readonly owners: Owners;
    readonly numbers: ReadonlyMap<string, number>;
  },
): TableElements => {
  const { node, policies, owners, numbers } = facts;
  const slot_fwd = new Map(elements.slot_fwd);
  for (const policy of policies) {
    const { slot } = policy.recorded;
    const key = ownershipKey(policy.recorded);
    if (slot === undefined || key === undefined || !moved.has(key)) continue;
    const mark = markText(slotMark(slot));
    const gateway = nodeOf(policy, owners);
    if (gateway === undefined || !slot_fwd.has(mark)) continue;
    const number = numbers.get(gateway);
    if (gateway === node) slot_fwd.set(mark, markText(snatMark(slot)));
    else if (number !== undefined) slot_fwd.set(mark, markText(gatewayMark(number, slot)));
    // No way to it yet: a pass makes one.
    else slot_fwd.delete(mark);
  }
  return { ...elements, slot_fwd };
};
