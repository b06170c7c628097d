/** A connection table in memory. */
import type { Ip } from '../../../core/ip/index.ts';
import type { Conntrack, ConntrackUsage } from '../conntrack.ts';

export interface FakeConntrack extends Conntrack {
  /** Makes a connection of each family; undefined for one that no policy is about. */
  connect(slot: number | undefined): void;
  /** Makes a connection that leaves with an EIP. */
  translate(eip: Ip): void;
  /** The slots of the connections that there are. */
  readonly slots: readonly (number | undefined)[];
  /** The EIPs of the connections that there are. */
  readonly eips: readonly Ip[];
  /** What readUsage says besides the number of entries. */
  usage: Omit<ConntrackUsage, 'entries'>;
}

/** An empty table. */
export const createFakeConntrack = (): FakeConntrack => {
  let slots: readonly (number | undefined)[] = [];
  let eips: readonly Ip[] = [];
  return {
    connect: (slot) => {
      slots = [...slots, slot, slot];
    },
    translate: (eip) => {
      eips = [...eips, eip];
    },
    get slots() {
      return slots;
    },
    get eips() {
      return eips;
    },
    usage: { limit: 262_144, insertFailed: 0, dropped: 0 },
    forget: async (gone) => {
      const before = slots.length + eips.length;
      slots = slots.filter((slot) => slot === undefined || !gone.slots.includes(slot));
      eips = eips.filter((eip) => !gone.eips.includes(eip));
      return before - slots.length - eips.length;
    },
    async readUsage() {
      return { entries: slots.length + eips.length, ...this.usage };
    },
  };
};
