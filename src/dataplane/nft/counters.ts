/** What the table has counted since it was loaded. An element that gets another value starts again at zero. Pure. */
import { markText, SLOT_MASK } from '../../core/node/numbers.ts';
import { isRecord, parseListing } from './listing.ts';
import { readKey } from './read.ts';
import { type DropReason, dropReasons, type StoredName } from './stored.ts';

/** Packets and the bytes in them, with IP headers. */
export interface Count {
  readonly packets: number;
  readonly bytes: number;
}

/** What was counted on this node. */
export interface TableCounters {
  /** Sent by pods of this node, by slot. */
  readonly slots: ReadonlyMap<number, Count>;
  /** What left this node and came back to it, by EIP. */
  readonly eips: ReadonlyMap<string, { readonly sent: Count; readonly received: Count }>;
  readonly drops: Readonly<Record<DropReason, Count>>;
}

/** The containers whose elements count. */
export const countingContainers = [
  'slot_fwd',
  'sent4',
  'sent6',
  'received4',
  'received6',
  'drops',
] as const satisfies readonly StoredName[];
export type CountingContainer = (typeof countingContainers)[number];

const nothing: Count = { packets: 0, bytes: 0 };

/** What each element of a container has counted, by its key, from `nft -j list` of that container. */
export const readCounts = (json: string): ReadonlyMap<string, Count> => {
  const elements = parseListing(json)[0]?.fields.elem;
  const counts = new Map<string, Count>();
  for (const element of Array.isArray(elements) ? elements : []) {
    const key: unknown = Array.isArray(element) ? element[0] : element;
    counts.set(readKey(key), isRecord(key) && isRecord(key.elem) ? countOf(key.elem.counter) : nothing);
  }
  return counts;
};

/** Joins what the containers have counted. */
export const joinCounts = (counts: Readonly<Record<CountingContainer, ReadonlyMap<string, Count>>>): TableCounters => {
  const sent = [...counts.sent4, ...counts.sent6];
  const received = new Map([...counts.received4, ...counts.received6]);
  const drops = Object.entries(dropReasons).map(([reason, number]) => [
    reason,
    counts.drops.get(markText(number)) ?? nothing,
  ]);
  return {
    slots: new Map([...counts.slot_fwd].map(([mark, count]) => [Number(mark) & SLOT_MASK, count])),
    eips: new Map(sent.map(([eip, count]) => [eip, { sent: count, received: received.get(eip) ?? nothing }])),
    // The entries were made from all reasons.
    drops: Object.fromEntries(drops) as Record<DropReason, Count>,
  };
};

const countOf = (counter: unknown): Count =>
  isRecord(counter) ? { packets: Number(counter.packets), bytes: Number(counter.bytes) } : nothing;
