/**
 * Bindings: which slot belongs to which policy, and which node serves it. The statuses of policies record them; who owns an
 * EIP now may be known earlier than it is recorded.
 */
import type { Ip } from '../ip/index.ts';
import { standFor } from '../ownership/planned.ts';
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

/** The node that a policy leaves through: the owner of its EIP, else the one that is recorded; undefined without a record. */
export const nodeOf = ({ recorded }: PolicyView, owners: Owners): string | undefined => {
  const eip = standFor(recorded.eip);
  const owner = eip === undefined ? undefined : owners.get(eip);
  return recorded.node === undefined ? undefined : (owner ?? recorded.node);
};

/** EIP -> its owner, where it is another one than the record says. */
export type Owners = ReadonlyMap<Ip, string>;

/** Nobody owns anything else than the record says. */
export const asRecorded: Owners = new Map();

/**
 * Makes a function that reads the bindings. Where two policies record one slot, the older one has it, as plan() decides too.
 * It remembers its last call: a binding that says the same is the same value, and so are the nodes, and all of it if nothing differs.
 */
export const createBindings = (): (({ ranked }: PolicyIndex, owners: Owners) => Bindings) => {
  let last: Bindings = { bySlot: new Map(), nodes: new Set() };
  return ({ ranked }, owners) => {
    if (isAsBound(last.bySlot, ranked, owners)) return last;
    const bySlot = new Map<number, Binding>();
    const nodes = new Set<string>();
    for (const { policy, spec } of ranked) {
      const { slot } = policy.recorded;
      const node = nodeOf(policy, owners);
      if (slot === undefined || node === undefined) continue;
      const other = bySlot.get(slot);
      if (other !== undefined && compareAge(other.policy, policy) < 0) continue;
      const known = last.bySlot.get(slot);
      bySlot.set(slot, known?.policy === policy && known.node === node ? known : { policy, spec, slot, node });
    }
    for (const { node } of bySlot.values()) nodes.add(node);
    const areSame = nodes.size === last.nodes.size && nodes.isSubsetOf(last.nodes);
    last = { bySlot, nodes: areSame ? last.nodes : nodes };
    return last;
  };
};

/** True when these policies have just these bindings. A slot that two record makes it false, which only costs time. */
const isAsBound = (bySlot: Bindings['bySlot'], ranked: PolicyIndex['ranked'], owners: Owners): boolean => {
  let count = 0;
  for (const { policy } of ranked) {
    const { slot } = policy.recorded;
    const node = nodeOf(policy, owners);
    if (slot === undefined || node === undefined) continue;
    const known = bySlot.get(slot);
    if (known?.policy !== policy || known.node !== node) return false;
    count += 1;
  }
  return count === bySlot.size;
};
