/**
 * Bindings: which slot belongs to which policy, and which node serves it. The statuses of policies record them; who owns an
 * EIP now may be known earlier than it is recorded.
 */

import type { PolicySpecView, PolicyView } from '../cluster/view.ts';
import { type Exchanged, exchangedBetween, keysOfEither, MapChangeLog } from '../incremental/change-log.ts';
import { RefCountedSet } from '../incremental/ref-counted-set.ts';
import type { Ip } from '../ip/index.ts';
import { ownershipKey } from '../ownership/node-group.ts';
import type { PolicyIndex, ReadPolicy } from '../policies/policy-index.ts';
import { compareAge } from '../policies/precedence.ts';

/** A policy that has a slot and a node. */
export interface SlotBinding {
  readonly policy: PolicyView;
  readonly spec: PolicySpecView;
  readonly slot: number;
  readonly node: string;
}

/** All bindings of the cluster. */
export interface Bindings {
  readonly bySlot: ReadonlyMap<number, SlotBinding>;
  /** The nodes that some policy names. */
  readonly nodes: ReadonlySet<string>;
}

/**
 * The node that a policy leaves through: the owner of its EIP or of its node group, else the one that is recorded; undefined
 * without a record.
 */
export const nodeOf = ({ recorded }: PolicyView, owners: Owners): string | undefined => {
  if (recorded.node === undefined || owners.size === 0) return recorded.node;
  const key = ownershipKey(recorded);
  return (key && owners.get(key)) ?? recorded.node;
};

/** EIP, or what stands for a node group -> its owner, where it is another one than the record says. */
export type Owners = ReadonlyMap<Ip, string>;

/** Nobody owns anything else than the record says. */
export const asRecorded: Owners = new Map();

/**
 * Makes a function that reads the bindings. Where two policies record one slot, the older one has it, as plan() decides too.
 * It remembers its last call: a binding that says the same is the same value, and so are the nodes, and all of it if nothing differs.
 * Only policies that are others are read, if it is known which. `bySlot` has a change log.
 */
export const createBindings = (): (({ ranked }: PolicyIndex, owners: Owners) => Bindings) => {
  const changeLog = new MapChangeLog<number>();
  const named = new RefCountedSet<string>();
  let last: Bindings = { bySlot: changeLog.mark(new Map()), nodes: named.present() };
  let read: { readonly ranked: PolicyIndex['ranked']; readonly owners: Owners; readonly isClear: boolean };
  read = { ranked: [], owners: asRecorded, isClear: true };
  return ({ ranked }, owners) => {
    const exchanged = read.isClear && owners === read.owners ? exchangedBetween(read.ranked, ranked) : undefined;
    const next = (exchanged && exchangedIn(last.bySlot, exchanged, owners)) ?? readAll(last.bySlot, ranked, owners);
    const { bySlot, touched, isClear } = next;
    read = { ranked, owners, isClear };
    const changed = [...touched].filter((slot) => last.bySlot.get(slot) !== bySlot.get(slot));
    if (changed.length === 0) return last;
    for (const slot of changed) {
      named.move(last.bySlot.get(slot)?.node, bySlot.get(slot)?.node);
      changeLog.touch(slot);
    }
    last = { bySlot: changeLog.mark(bySlot), nodes: named.present() };
    return last;
  };
};

/** Bindings as they were read. */
interface BySlot {
  readonly bySlot: ReadonlyMap<number, SlotBinding>;
  /** Slots whose binding may be another one than before. */
  readonly touched: ReadonlySet<number>;
  /** False when two policies record one slot: then all have to be asked when something changes. */
  readonly isClear: boolean;
}

const bindingOf = ({ policy, spec }: ReadPolicy, owners: Owners): SlotBinding | undefined => {
  const { slot } = policy.recorded;
  const node = nodeOf(policy, owners);
  return slot === undefined || node === undefined ? undefined : { policy, spec, slot, node };
};

/** The bindings with some policies exchanged; undefined when one comes whose slot is taken. */
const exchangedIn = (
  before: Bindings['bySlot'],
  { gone, come }: Exchanged<ReadPolicy>,
  owners: Owners,
): BySlot | undefined => {
  const bySlot = new Map(before);
  const touched = new Set<number>();
  for (const { policy } of gone) {
    const { slot } = policy.recorded;
    if (slot === undefined || bySlot.get(slot)?.policy !== policy) continue;
    bySlot.delete(slot);
    touched.add(slot);
  }
  for (const entry of come) {
    const binding = bindingOf(entry, owners);
    if (binding === undefined) continue;
    if (bySlot.has(binding.slot)) return undefined;
    bySlot.set(binding.slot, binding);
    touched.add(binding.slot);
  }
  return { bySlot, touched, isClear: true };
};

const readAll = (before: Bindings['bySlot'], ranked: PolicyIndex['ranked'], owners: Owners): BySlot => {
  const bySlot = new Map<number, SlotBinding>();
  let isClear = true;
  for (const entry of ranked) {
    const binding = bindingOf(entry, owners);
    if (binding === undefined) continue;
    const { slot, node, policy } = binding;
    const other = bySlot.get(slot);
    if (other !== undefined) isClear = false;
    if (other !== undefined && compareAge(other.policy, policy) < 0) continue;
    const known = before.get(slot);
    bySlot.set(slot, known?.policy === policy && known.node === node ? known : binding);
  }
  return { bySlot, touched: keysOfEither(before, bySlot), isClear };
};
