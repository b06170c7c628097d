/**
 * StaleConnections sees to it that no connection goes on with what is no longer its own: a slot or an EIP that is gone, or a translation
 * from when its slot left through another node. Until they are forgotten or changed the rules drop their packets, so a failure can wait.
 *
 * Of a slot whose EIP has just come here nothing is forgotten before its gate is open: by then the mirror has exchanged the
 * connections that go on. And of one whose EIP has just left by plan nothing is forgotten that the other node cannot know, as long as
 * this one carries the EIP: it ends by itself meanwhile, or begins anew after that.
 */
import type { EgressError } from '../../api/error.ts';
import { keysToCompare } from '../../core/incremental/change-log.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { TableDesired } from '../../core/node/desired.ts';
import { isSnatMark, markText, SLOT_MASK, snatMark } from '../../core/node/numbers.ts';
import { isSameSet } from '../../core/values/equality.ts';
import type { Conntrack } from '../../dataplane/conntrack/conntrack.ts';

/** What connections through this node may have. */
export interface Connected {
  readonly slots: ReadonlySet<number>;
  readonly eips: ReadonlySet<Ip>;
}

/** What the gate does at this moment. */
export interface GateNow {
  /** Packets may leave with the address, and nodes agree that it is here. True where there is no gate. */
  readonly isOpen: (ip: Ip) => boolean;
  /** The EIP has been handed over, and packets still leave with it. */
  readonly isCarried: (ip: Ip) => boolean;
}

/** The table in force, the EIPs that are in use here or lie ready, and those that only the gate lets leave. */
export interface Present {
  readonly table: TableDesired;
  readonly eips: ReadonlySet<Ip>;
  readonly gated: ReadonlySet<Ip>;
}

/**
 * Where the connections of a slot are translated: here; still elsewhere, though it leaves here; still here in part, though it leaves
 * elsewhere; or nobody knows, since no agent was there. A slot without a place is translated elsewhere.
 */
type SlotPlace = 'here' | 'coming' | 'carried' | 'unknown';

/** Of one node. */
export class StaleConnections {
  readonly #conntrack: Pick<Conntrack, 'forget'>;
  readonly #gate: GateNow;
  #known: Connected;
  readonly #places: Map<number, SlotPlace>;
  readonly #slotsIn = createSlotReader();
  /** Slots that are others than when connections were looked at last; at first those that were found. */
  readonly #touched: Set<number>;
  /** What was looked at last. */
  #forward: ReadonlyMap<string, string> | undefined;
  /** EIPs that this node owns, and those that it came to own since connections were looked at last, if only for a moment. */
  #owned: ReadonlySet<Ip> = new Set();
  readonly #cameToOwn = new Set<Ip>();
  #turn: Promise<void> = Promise.resolve();

  /** `found` is what the kernel holds when the agent starts. */
  constructor(conntrack: Pick<Conntrack, 'forget'>, gate: GateNow, found: Connected) {
    this.#conntrack = conntrack;
    this.#gate = gate;
    this.#known = found;
    this.#touched = new Set(found.slots);
    // While no agent was there, any slot may have left here. A node without EIPs has translated nothing.
    this.#places = new Map(found.eips.size === 0 ? [] : [...found.slots].map((slot) => [slot, 'unknown']));
  }

  /**
   * Says which EIPs this node owns, whenever that changes: the mirror translates connections of its pods as soon as it does, and slots may not
   * have come here at all when it is over again.
   */
  owns(eips: ReadonlySet<Ip>): void {
    for (const eip of eips) if (!this.#owned.has(eip)) this.#cameToOwn.add(eip);
    this.#owned = eips;
  }

  /**
   * Forgets and changes connections so that they fit. May be called with the same value for ever, and at any time. Rejects with
   * CONNTRACK_FAILED; then the next call tries again.
   */
  settle(present: Present): Promise<void> {
    const settled = this.#turn.then(() => this.#settle(present));
    this.#turn = settled.catch((_: EgressError) => {});
    return settled;
  }

  async #settle({ table, eips, gated }: Present): Promise<void> {
    const forward = table.elements.slot_fwd;
    const pending = [...this.#places].filter(([, place]) => place !== 'here').map(([slot]) => slot);
    const isSame = forward === this.#forward && isSameSet(eips, this.#known.eips);
    const cameToOwn = new Set(this.#cameToOwn);
    if (isSame && pending.length === 0 && this.#touched.size === 0 && cameToOwn.size === 0) return;
    const { slots, here, touched } = this.#slotsIn(forward);
    for (const slot of touched) this.#touched.add(slot);
    const changes: SlotChanges = { slots: [], here: [], elsewhere: [], carried: [] };
    const places = new Map<number, SlotPlace | undefined>();
    const mayHaveCome = slotsWith(cameToOwn, table);
    for (const slot of [...this.#touched.union(new Set(pending)).union(mayHaveCome)].toSorted((a, b) => a - b)) {
      const leaves = !slots.has(slot) ? 'nowhere' : here.has(slot) ? 'here' : 'elsewhere';
      const before = this.#places.get(slot) ?? (mayHaveCome.has(slot) ? 'coming' : undefined);
      places.set(slot, this.#placeOf(slot, before, leaves, addressesOf(slot, table), gated, changes));
    }
    const gone = { ...changes, eips: without(this.#known.eips, eips) };
    if (Object.values(gone).some(({ length }) => length > 0)) await this.#conntrack.forget(gone);
    for (const [slot, place] of places) {
      if (place === undefined) this.#places.delete(slot);
      else this.#places.set(slot, place);
    }
    this.#known = { slots, eips };
    this.#forward = forward;
    this.#touched.clear();
    for (const eip of cameToOwn) this.#cameToOwn.delete(eip);
  }

  /** Where the connections of a slot are translated from now on, and what has to change for that. */
  #placeOf(
    slot: number,
    before: SlotPlace | undefined,
    leaves: 'here' | 'elsewhere' | 'nowhere',
    ips: readonly Ip[],
    gated: ReadonlySet<Ip>,
    changes: SlotChanges,
  ): SlotPlace | undefined {
    const isKnown = this.#known.slots.has(slot);
    if (leaves === 'nowhere') {
      if (isKnown) changes.slots.push(slot);
      return undefined;
    }
    if (leaves === 'here') {
      if (before === 'here' || !isKnown) return 'here';
      if (!ips.every((ip) => !gated.has(ip) || this.#gate.isOpen(ip))) return before === 'unknown' ? before : 'coming';
      changes.here.push(slot);
      return 'here';
    }
    if (before === undefined) return undefined;
    if (ips.some(this.#gate.isCarried)) {
      if (before !== 'carried') changes.carried.push(slot);
      return 'carried';
    }
    changes.elsewhere.push(slot);
    return undefined;
  }
}

type SlotChanges = Record<'slots' | 'here' | 'elsewhere' | 'carried', number[]>;

/** The slots that a kernel forwards. */
export const slotsOf = (slotForward: ReadonlyMap<string, string>): ReadonlySet<number> =>
  createSlotReader()(slotForward).slots;

/**
 * Makes a function that reads which slots a kernel forwards, and which of them leave from its node; and with which of them that is
 * other than at its last call: it reads nothing else.
 */
const createSlotReader = () => {
  let last: ReadonlyMap<string, string> = new Map();
  let [slots, here] = [new Set<number>(), new Set<number>()];
  return (forward: ReadonlyMap<string, string>) => {
    const touched = new Set<number>();
    [slots, here] = [new Set(slots), new Set(here)];
    for (const mark of keysToCompare(last, forward)) {
      const way = forward.get(mark);
      if (way === last.get(mark)) continue;
      const slot = slotIn(mark);
      touched.add(slot);
      if (way === undefined) slots.delete(slot);
      else slots.add(slot);
      if (way !== undefined && isSnatMark(Number.parseInt(way, 16))) here.add(slot);
      else here.delete(slot);
    }
    last = forward;
    return { slots, here, touched };
  };
};

const slotIn = (mark: string): number => Number.parseInt(mark, 16) & SLOT_MASK;

/** The addresses that a slot leaves with, or would leave with, on this node. */
const addressesOf = (slot: number, { elements }: TableDesired): readonly Ip[] => {
  const mark = markText(snatMark(slot));
  const texts = [elements.slot_eip4.get(mark), elements.slot_eip6.get(mark)].filter((text) => text !== undefined);
  // The table is written from addresses, in their one spelling.
  return texts.map((text) => text as Ip);
};

/** The slots that leave with one of these addresses, or would leave with it, on this node. */
const slotsWith = (ips: ReadonlySet<string>, { elements }: TableDesired): ReadonlySet<number> => {
  if (ips.size === 0) return new Set();
  const all = [...elements.slot_eip4, ...elements.slot_eip6];
  return new Set(all.flatMap(([mark, ip]) => (ips.has(ip) ? [slotIn(mark)] : [])));
};

const without = <T>(some: ReadonlySet<T>, others: ReadonlySet<T>): T[] =>
  some === others ? [] : [...some].filter((one) => !others.has(one));
