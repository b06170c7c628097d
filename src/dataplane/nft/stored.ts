/**
 * What the table keeps: its sets and maps, and what their elements are made from. Chains, which say what an element does
 * to a packet, are in ruleset.ts.
 */

import { keysToCompare } from '../../core/incremental/change-log.ts';
import { RefCountedSet } from '../../core/incremental/ref-counted-set.ts';
import { containers, type TableElements } from '../../core/node/desired.ts';
import { markText } from '../../core/node/numbers.ts';
import { remember } from '../../core/node/remember.ts';

/** Name of the table, without its family `inet`. */
export const TABLE = 'sallyport';
/** Name of the second table, which holds while somebody has taken parts of the first; see seal.ts. */
export const SEAL = `${TABLE}_seal`;

/**
 * Why packets are dropped, with the number that a packet gets as its mark before it goes. The drops of a reason are
 * counted by the element of that number: nft reads the elements of all containers to show a named counter, and a set
 * alone in 5 ms.
 */
export const dropReasons = {
  /** No gateway serves the policy, and it says Drop. */
  unavailable: 1,
  /** Connection of a slot that is gone. */
  unknown_slot: 2,
  /** A slot from the tunnel that has no EIP here. */
  no_eip: 3,
  /** From the tunnel, but part of no connection: it cannot be translated. */
  tunnel_stateless: 4,
  /** From a pod under a policy, but part of no connection: it would leave with the address of the pod. */
  pod_stateless: 5,
  /** A tunnel packet that no node has sent: by its address, its interface or its inner sender. */
  foreign_tunnel: 6,
  /** To an EIP, but part of no connection. */
  eip_input: 7,
  /** Meant for the tunnel, but the way into it is gone: it would leave by the ordinary way with another address. */
  astray: 8,
  /** Leaves from this node, but its connection was made elsewhere or for an EIP that is gone. */
  foreign_source: 9,
  /** Leaves with an EIP that this node does not own now. */
  not_owned: 10,
  /** From a pod that the agent does not know yet, to the outside; with strict start only. */
  unclassified: 11,
} as const;
export type DropReason = keyof typeof dropReasons;

/** What a set or map of the table is made of. */
export interface Container {
  readonly key: string;
  /** Absent: a set. */
  readonly value?: string;
  readonly isInterval?: true;
  /** Every element counts the packets that match it. */
  readonly hasCounters?: true;
  /** For people who read the table. */
  readonly comment?: string;
}

/**
 * The sets and maps as the kernel has them: those of the desired value, for each address that slots leave with one element
 * that counts what was sent and one for what was received, and one for each reason to drop. Counters are elements and never objects: a named
 * counter for each policy would make nft read all of them at each change.
 */
const stored = {
  ...containers,
  slot_fwd: { ...containers.slot_fwd, hasCounters: true },
  sent4: { key: 'ipv4_addr', hasCounters: true },
  sent6: { key: 'ipv6_addr', hasCounters: true },
  received4: { key: 'ipv4_addr', hasCounters: true },
  received6: { key: 'ipv6_addr', hasCounters: true },
  drops: {
    key: 'mark',
    hasCounters: true,
    // In the order of their numbers, without them: the kernel takes 128 characters.
    comment: Object.keys(dropReasons).join(' ').replace('tunnel_stateless pod_', 'tunnel_ pod_'),
  },
} as const satisfies Record<string, Container>;
export type StoredName = keyof typeof stored;
export type StoredElements = Readonly<Record<StoredName, ReadonlyMap<string, string>>>;

/** All containers by name, in the order in which the kernel gets them. */
export const storedContainers: ReadonlyMap<StoredName, Container> = new Map(
  // Object.entries forgets that the names of a literal are its keys.
  Object.entries(stored) as [StoredName, Container][],
);

/** True for the maps of class and destination: their keys have two parts, and the second one is a range. */
export const isJoinedInterval = (name: StoredName): boolean => {
  const container = storedContainers.get(name);
  return container?.isInterval === true && container.key.includes(' . ');
};

/** The elements of all containers, for what is desired. */
export const storedOf = (elements: TableElements): StoredElements => createStoring()(elements);

/** Makes a function that does so again and again: it remembers its last call, and reads only slots that are others. */
export const createStoring = (): ((elements: TableElements) => StoredElements) => {
  const [addresses4, addresses6] = [createAddresses(), createAddresses()];
  return (elements) => {
    const [ipv4, ipv6] = [addresses4(elements.slot_eip4), addresses6(elements.slot_eip6)];
    return { ...elements, sent4: ipv4, sent6: ipv6, received4: ipv4, received6: ipv6, drops: dropElements };
  };
};

/** Makes a function that tells the addresses that slots leave with; the same value while it says the same, so that nobody compares it in vain. */
const createAddresses = () => {
  const used = new RefCountedSet<string>();
  const elementsOf = remember((ips: ReadonlySet<string>): ReadonlyMap<string, string> => {
    return new Map(ips.values().map((ip) => [ip, '']));
  });
  let last: ReadonlyMap<string, string> = new Map();
  return (slots: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
    for (const mark of keysToCompare(last, slots)) used.move(last.get(mark), slots.get(mark));
    last = slots;
    return elementsOf(used.present());
  };
};

const empty: ReadonlyMap<string, string> = new Map();

/** Containers without elements. */
export const noElements: StoredElements = Object.fromEntries(
  [...storedContainers.keys()].map((name) => [name, empty]),
  // The entries are made from all names.
) as StoredElements;

/** How many elements there are in all containers. */
export const sizeOf = (elements: StoredElements): number =>
  Object.values(elements).reduce((sum, { size }) => sum + size, 0);

const dropElements: ReadonlyMap<string, string> = new Map(
  Object.values(dropReasons).map((number) => [markText(number), '']),
);

/**
 * The set in which every transaction of ours leaves a number, so that whoever watches the table can tell our changes
 * from those of others. Process ids cannot: the kernel tells those of the host, and a container does not know its own.
 */
export const SIGNATURES = 'signatures';
/** How long a signature stays. Long enough to be told to watchers, which happens in the same moment. */
export const SIGNATURE_SECONDS = 10;

/**
 * The sets of EIPs that packets may leave with, by family. They are not part of what is desired: src/dataplane/gate writes
 * them, and the kernel takes out what is not written again in time.
 */
export const OWNED = { ipv4: 'owned4', ipv6: 'owned6' } as const;
