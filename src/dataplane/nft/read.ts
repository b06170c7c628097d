/** What the kernel holds, from `nft -j list table`, in the same words as what is desired. Pure. */
import { parseIpv6 } from '../../core/ip/index.ts';
import { markText } from '../../core/node/numbers.ts';
import { isRecord, type Listed, parseListing, unreadable } from './listing.ts';
import { type StoredElements, type StoredName, storedContainers } from './stored.ts';

/** What the kernel holds of our table. */
export interface TableActual {
  readonly elements: StoredElements;
  /**
   * Everything but the elements, one object a line, without what is different at each load (handles, counts). Two tables
   * with the same text have the same chains and rules in the same order.
   */
  readonly chains: string;
}

/** Reads a listing of the whole table. Containers that are missing are empty: `chains` tells that they are missing. */
export const readTable = (json: string): TableActual => {
  const listed = parseListing(json);
  const held = containersIn(listed);
  const entries = [...storedContainers.keys()].map((name) => [name, held.get(name) ?? new Map<string, string>()]);
  // The entries were made from all names.
  return { elements: Object.fromEntries(entries) as Record<StoredName, Map<string, string>>, chains: chainsOf(listed) };
};

/** Sets and maps of any table, by name. */
export const readContainers = (json: string): ReadonlyMap<string, ReadonlyMap<string, string>> =>
  containersIn(parseListing(json));

const containersIn = (listed: readonly Listed[]): ReadonlyMap<string, ReadonlyMap<string, string>> => {
  const containers = listed.filter(({ kind }) => kind === 'set' || kind === 'map');
  return new Map(containers.map(({ fields }) => [String(fields.name), readElements(fields)]));
};

/** The names of the chains in such a text. */
export const chainNamesIn = (chains: string): readonly string[] =>
  linesOf(chains).flatMap((line) => (line.startsWith(CHAIN) ? [nameIn(line.slice(CHAIN.length))] : []));

/** What is left of such a text without chains and rules: the table itself and its containers. */
export const frameIn = (chains: string): string =>
  linesOf(chains)
    .filter((line) => !line.startsWith(CHAIN) && !line.startsWith('rule '))
    .join('\n');

const CHAIN = 'chain ';
const linesOf = (text: string): readonly string[] => text.split('\n');
const nameIn = (json: string): string => {
  const fields: unknown = JSON.parse(json);
  return isRecord(fields) ? String(fields.name) : '';
};

/** The text of everything but the elements. A terse listing gives the same text as a full one. */
export const readChains = (json: string): string => chainsOf(parseListing(json));

const CHANGING = new Set(['handle', 'elem', 'packets', 'bytes']);

const chainsOf = (listed: readonly Listed[]): string =>
  listed
    .map(({ kind, fields }) => {
      const lasting = Object.entries(fields).filter(([name]) => !CHANGING.has(name));
      return `${kind} ${JSON.stringify(Object.fromEntries(lasting))}\n`;
    })
    .join('');

const readElements = ({ elem }: Listed['fields']): ReadonlyMap<string, string> => {
  const elements = new Map<string, string>();
  if (!Array.isArray(elem)) return elements;
  for (const element of elem) {
    const [key, value]: readonly unknown[] = Array.isArray(element) ? element : [element];
    elements.set(readKey(key), value === undefined ? '' : readKey(value));
  }
  return elements;
};

/** The text of a key or value, as it is desired. */
export const readKey = (json: unknown): string => {
  if (typeof json === 'number') return markText(json);
  if (typeof json === 'string') return readAddress(json);
  if (isRecord(json)) {
    // With counters or a timeout the key is wrapped.
    if (isRecord(json.elem)) return readKey(json.elem.val);
    if (Array.isArray(json.concat)) return json.concat.map(readKey).join(' . ');
    if (Array.isArray(json.range)) return json.range.map(readKey).join('-');
    if (isRecord(json.prefix)) return `${readKey(json.prefix.addr)}/${json.prefix.len}`;
  }
  throw unreadable('an element', json);
};

/** The C library prints some IPv6 addresses with an IPv4 address at their end; we never do. */
const readAddress = (text: string): string => {
  if (!text.includes(':') || !text.includes('.')) return text;
  const parsed = parseIpv6(text);
  return parsed.ok ? parsed.value : text;
};
