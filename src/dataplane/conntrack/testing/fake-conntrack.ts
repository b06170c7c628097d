/** A connection table in memory. */
import type { Ip } from '../../../core/ip/index.ts';
import type { Conntrack, ConntrackUsage } from '../conntrack.ts';

/** A connection of one family: the slot that it carries, and the EIP that it leaves with; without one it keeps its source. */
interface Connection {
  readonly slot: number | undefined;
  readonly eip: Ip | undefined;
  /** Both sides have spoken. */
  readonly hasTalked?: boolean;
  /** Who opened it, to whom, and its mark; absent for those that are told by slot or EIP. */
  readonly ends?: { readonly source: Ip; readonly destination: Ip; readonly mark: number };
}

export interface FakeConntrack extends Conntrack {
  /** Makes a connection from a source to a destination, with a connection mark. */
  open(source: Ip, destination: Ip, mark: number): void;
  /** How often somebody has looked for connections to cut. */
  readonly looks: number;
  /** Makes a connection of each family that keeps its source; undefined for one that no policy is about. */
  connect(slot: number | undefined): void;
  /** Makes a connection that leaves with an EIP, and carries no slot because it came through the tunnel. */
  translate(eip: Ip): void;
  /** Makes a connection that carries a slot and leaves with an EIP; `talked`: both sides have spoken. */
  redirect(slot: number, eip: Ip, state?: 'talked'): void;
  /** The slots of the connections that there are, but for those that only have an EIP. */
  readonly slots: readonly (number | undefined)[];
  /** The EIPs of the connections that there are. */
  readonly eips: readonly Ip[];
  readonly count: number;
  /** What readUsage says besides the number of entries. */
  usage: Omit<ConntrackUsage, 'entries'>;
}

/** An empty table. */
export const createFakeConntrack = (): FakeConntrack => {
  let connections: readonly Connection[] = [];
  const add = (...more: readonly Connection[]): void => {
    connections = [...connections, ...more];
  };
  let looks = 0;
  return {
    open: (source, destination, mark) => add({ slot: undefined, eip: undefined, ends: { source, destination, mark } }),
    get looks() {
      return looks;
    },
    connect: (slot) => add({ slot, eip: undefined }, { slot, eip: undefined }),
    translate: (eip) => add({ slot: undefined, eip }),
    redirect: (slot, eip, state) => add({ slot, eip, hasTalked: state === 'talked' }),
    get slots() {
      return connections.filter(({ slot, eip }) => slot !== undefined || eip === undefined).map(({ slot }) => slot);
    },
    get eips() {
      return connections.map(({ eip }) => eip).filter((eip) => eip !== undefined);
    },
    get count() {
      return connections.length;
    },
    usage: { limit: 262_144, insertFailed: 0, dropped: 0 },
    forget: async ({ slots, eips, here, elsewhere, carried }) => {
      let count = 0;
      connections = connections.flatMap((connection) => {
        const { slot, eip, hasTalked } = connection;
        const isGone = (eip !== undefined && eips.includes(eip)) || (slot !== undefined && slots.includes(slot));
        const isKept = slot !== undefined && eip === undefined && here.includes(slot);
        const hasLeft = slot !== undefined && eip !== undefined && [...elsewhere, ...carried].includes(slot);
        const canGoOn = hasLeft && hasTalked === true;
        if (!isGone && !isKept && !canGoOn && !(hasLeft && elsewhere.includes(slot))) return [connection];
        count += 1;
        return canGoOn && !isGone ? [{ slot, eip: undefined, hasTalked }] : [];
      });
      return count;
    },
    cut: async (cutOf) => {
      looks += 1;
      const before = connections.length;
      connections = connections.filter(
        ({ ends }) => ends === undefined || cutOf(ends.source)?.(ends.destination, ends.mark) !== true,
      );
      return before - connections.length;
    },
    async readUsage() {
      return { entries: connections.length, ...this.usage };
    },
  };
};
