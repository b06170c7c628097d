/** What the fake holds, and how it lists that: the JSON of nft, as far as read.ts and counters.ts look at it. */
import type { Count } from '../counters.ts';
import { keyJson } from './fake-keys.ts';

export interface FakeContainer {
  readonly kind: string;
  readonly key: string;
  readonly value: string | undefined;
  readonly flags: string;
  readonly elements: Map<string, string>;
  readonly counts: Map<string, Count>;
}

export interface FakeTable {
  readonly containers: Map<string, FakeContainer>;
  /** The lines of a chain, by its name. */
  readonly chains: Map<string, string[]>;
}

/** `nft -j list table`; terse leaves the elements out. */
export const listTable = (name: string, { containers, chains }: FakeTable, isTerse: boolean): string =>
  listing([
    { table: { family: 'inet', name, handle: 1 } },
    ...[...containers].map(([container, held]) => containerJson(container, held, isTerse)),
    ...[...chains].flatMap(([chain, lines]) => [
      { chain: { name: chain } },
      ...lines.map((line) => ({ rule: { chain, expr: line } })),
    ]),
  ]);

/** `nft -j list set` and `list map`. */
export const listContainer = (name: string, container: FakeContainer): string =>
  listing([containerJson(name, container, false)]);

const listing = (objects: readonly unknown[]): string =>
  `${JSON.stringify({ nftables: [{ metainfo: { version: 'fake' } }, ...objects] })}\n`;

const containerJson = (name: string, container: FakeContainer, isTerse: boolean): unknown => {
  const { kind, key, value, flags, elements } = container;
  const elem = [...elements].map(([elementKey, elementValue]) => {
    const json = countedJson(elementKey, container);
    return elementValue === '' ? json : [json, keyJson(elementValue)];
  });
  const type = key.includes(' . ') ? key.split(' . ') : key;
  // nft leaves an empty list out.
  return { [kind]: { name, type, map: value, flags, ...(isTerse || elem.length === 0 ? {} : { elem }) } };
};

const countedJson = (key: string, { flags, counts }: FakeContainer): unknown =>
  flags.includes('counter')
    ? { elem: { val: keyJson(key), counter: counts.get(key) ?? { packets: 0, bytes: 0 } } }
    : keyJson(key);
