/** Scripts for `nft -f -`, each one transaction: all of it holds, or none of it. */
import type { TableDesired, TableSettings } from '../../core/node/desired.ts';
import { markText } from '../../core/node/numbers.ts';
import type { ContainerChange } from './diff.ts';
import { type Chain, chainsFor } from './ruleset.ts';
import {
  type Container,
  isJoinedInterval,
  OWNED,
  SIGNATURE_SECONDS,
  SIGNATURES,
  type StoredName,
  storedContainers,
  storedOf,
  TABLE,
} from './stored.ts';

/**
 * Replaces the table whatever it holds, or makes it. `table` before `delete` because deleting what is not there fails.
 * Packets see the old table or the new one; with a flush they would see an empty one in between, and leak. But a packet
 * that is in a chain in that very moment finds the containers of the old table empty (the kernel asks which elements are
 * valid at each lookup, Linux 6.18): so this is for tables that cannot be kept. See renderRenewal.
 */
export const renderReplacement = ({ settings, elements }: TableDesired, signature: number): string => {
  const contents = storedOf(elements);
  const added = [...storedContainers.keys()].map((name) => renderElements('add', name, [...contents[name]]));
  return [`table inet ${TABLE}`, `delete table inet ${TABLE}`, renderTable(settings), ...added, signed(signature)]
    .filter((line) => line !== '')
    .join('\n')
    .concat('\n');
};

/** A table that is in the kernel. */
export interface LoadedTable {
  /** What it was loaded from, as renderTable gave it. */
  readonly text: string;
  /** The chains that it has, ours and those that others put into it. */
  readonly chains: readonly string[];
}

/**
 * Loads all chains anew and changes elements, in a table whose containers are as `held.text` says. The containers stay, so
 * a packet that is in a chain in that moment goes on through the old rules with their elements. Undefined when a container
 * or a hook that is to stay has another definition than before: then the table must be replaced.
 */
export const renderRenewal = (
  held: LoadedTable,
  settings: TableSettings,
  changes: readonly ContainerChange[],
  signature: number,
): string | undefined => {
  const text = renderTable(settings);
  const [before, after] = [definitionsIn(held.text), definitionsIn(text)];
  for (const [name, definition] of after) if ((before.get(name) ?? definition) !== definition) return undefined;
  const gone = held.chains.filter((name) => !after.has(`chain ${name}`));
  const unused = [...before.keys()].filter((name) => !name.startsWith('chain ') && !after.has(name));
  return [
    ...held.chains.map((name) => `flush chain inet ${TABLE} ${name}`),
    ...gone.map((name) => `delete chain inet ${TABLE} ${name}`),
    ...unused.map((name) => `delete ${name.replace(' ', ` inet ${TABLE} `)}`),
    text,
    renderChanges(changes, signature),
  ].join('\n');
};

/** What of a text cannot be changed in place: `set NAME`, `map NAME` or `chain NAME` -> its line, or that of its hook. */
const definitionsIn = (text: string): ReadonlyMap<string, string> => {
  const lines = text.split('\n').map((line) => line.trim());
  return new Map(
    lines.flatMap((line, index) => {
      const name = /^((?:set|map|chain) \S+) \{/.exec(line)?.[1];
      if (name === undefined) return [];
      const hook = lines[index + 1] ?? '';
      return [[name, name.startsWith('chain ') ? (/^type .* hook /.test(hook) ? hook : '') : line]];
    }),
  );
};

/** Changes elements only. */
export const renderChanges = (changes: readonly ContainerChange[], signature: number): string =>
  changes
    .flatMap(({ name, isFlushed, deletedKeys, added }) => [
      isFlushed ? `flush ${kindOf(name)} inet ${TABLE} ${name}` : '',
      // Deletions come first: a map refuses a second value for a key, and an interval one that overlaps another.
      renderElements(
        'delete',
        name,
        deletedKeys.map((key) => [key, '']),
      ),
      renderElements('add', name, added),
    ])
    .filter((line) => line !== '')
    .concat(signed(signature), '')
    .join('\n');

/** Makes the table with nothing in it; it must not be there. */
export const renderNewTable = (settings: TableSettings, signature: number): string =>
  `${renderTable(settings)}\n${signed(signature)}\n`;

/** Deletes the table; it must be there. */
export const renderRemoval = (): string => `delete table inet ${TABLE}\n`;

/** The table with its chains and empty containers. */
export const renderTable = (settings: TableSettings): string =>
  [
    `table inet ${TABLE} {`,
    ...[...storedContainers].map(([name, container]) => `  ${renderContainer(name, container)}`),
    `  set ${SIGNATURES} { type mark; flags timeout; }`,
    `  set ${OWNED.ipv4} { type ipv4_addr; flags timeout; }`,
    `  set ${OWNED.ipv6} { type ipv6_addr; flags timeout; }`,
    ...chainsFor(settings).flatMap((chain) => renderChain(chain).map((line) => `  ${line}`)),
    '}',
  ].join('\n');

const renderContainer = (name: string, { key, value, isInterval, hasCounters, comment }: Container): string => {
  const type = value === undefined ? `type ${key};` : `type ${key} : ${value};`;
  const parts = [
    type,
    isInterval === true ? 'flags interval;' : '',
    hasCounters === true ? 'counter;' : '',
    comment === undefined ? '' : `comment "${comment}";`,
  ];
  return `${value === undefined ? 'set' : 'map'} ${name} { ${parts.filter((part) => part !== '').join(' ')} }`;
};

const renderChain = ({ name, hook, rules }: Chain): readonly string[] => [
  `chain ${name} {`,
  ...(hook === undefined ? [] : [`  ${hook}; policy accept;`]),
  ...rules.map((rule) => `  ${rule}`),
  '}',
];

const kindOf = (name: StoredName): string => (storedContainers.get(name)?.value === undefined ? 'set' : 'map');

const renderElements = (verb: string, name: StoredName, elements: readonly (readonly [string, string])[]): string => {
  if (elements.length === 0) return '';
  const keyText = isJoinedInterval(name) ? asRange : (key: string): string => key;
  const list = elements.map(([key, value]) => (value === '' ? keyText(key) : `${keyText(key)} : ${value}`));
  return piecesOf(list)
    .map((piece) => `${verb} element inet ${TABLE} ${name} { ${piece.join(', ')} }`)
    .join('\n');
};

/**
 * How many elements one command names. nft 1.0.6 cuts longer lists into netlink messages of 64 KB, and the element at each
 * cut gets into the kernel with the bytes of its mark in the wrong order if the key is a joined interval: the policy
 * would not see that destination (found 2026-11 with 1,000 policies; 430 elements of dst6 are the shortest such list).
 */
const PIECE = 200;

const piecesOf = (list: readonly string[]): readonly (readonly string[])[] =>
  Array.from({ length: Math.ceil(list.length / PIECE) }, (_, index) => list.slice(index * PIECE, (index + 1) * PIECE));

/**
 * The last part of a joined key as a range, also when it is one address. nft 1.0.6 does not find a plain address that it
 * is to delete from a map of joined intervals, unless another element of the list is a range.
 */
const asRange = (key: string): string => {
  if (/[-/]/.test(key)) return key;
  return `${key}/${key.includes(':') ? 128 : 32}`;
};

const signed = (signature: number): string =>
  `add element inet ${TABLE} ${SIGNATURES} { ${markText(signature)} timeout ${SIGNATURE_SECONDS}s }`;
