/** Bindings as the statuses of policies record them: which slot belongs to which policy, and which nodes serve some. */
import type { PolicyIndex } from '../policy-index.ts';
import { compareAge } from '../precedence.ts';
import type { PolicySpecView, PolicyView } from '../view.ts';

/** A policy that has a slot and a node. */
export interface Binding {
  readonly policy: PolicyView;
  readonly spec: PolicySpecView;
  readonly slot: number;
  readonly node: string;
}

/** All bindings of the cluster. */
export interface Bindings {
  readonly bySlot: ReadonlyMap<number, Binding>;
  /** The nodes that some policy names. */
  readonly nodes: ReadonlySet<string>;
}

/** Reads the bindings. Where two policies record one slot, the older one has it, as plan() decides too. */
export const bindingsOf = ({ ranked }: PolicyIndex): Bindings => {
  const bySlot = new Map<number, Binding>();
  for (const { policy, spec } of ranked) {
    const { slot, node } = policy.recorded;
    if (slot === undefined || node === undefined) continue;
    const other = bySlot.get(slot);
    if (other !== undefined && compareAge(other.policy, policy) < 0) continue;
    bySlot.set(slot, { policy, spec, slot, node });
  }
  return { bySlot, nodes: new Set(bySlot.values().map(({ node }) => node)) };
};
