/** What a script for nft does to the tables of the fake. It works on a copy, so it holds as a whole or not at all. */
import { firstOverlap, isKeyOf } from './fake-keys.ts';
import type { FakeContainer, FakeTable } from './fake-listing.ts';

/** What a script did. */
export interface FakeTransaction {
  readonly tables: ReadonlyMap<string, FakeTable>;
  /** The tables that it changed, and whether more than elements. */
  readonly touched: ReadonlyMap<string, { readonly concernsChains: boolean }>;
  /** The signatures that it left. */
  readonly signatures: readonly number[];
}

/** Why a script was refused, in the words of nft, and the piece of a line that they mean. */
class Refused extends Error {
  readonly piece: string;

  constructor(words: string, piece: string) {
    super(words);
    this.piece = piece;
  }
}

export const NOT_THERE = 'No such file or directory';

/** Runs a script on a copy of the tables. Returns what nft prints to standard error if it is refused. */
export const runScript = (held: ReadonlyMap<string, FakeTable>, script: string): FakeTransaction | string => {
  const run = new ScriptRun(held);
  const lines = script.split('\n');
  let at = 0;
  try {
    while (at < lines.length) {
      const end = /\{$/.test(lines[at] ?? '') ? lines.indexOf('}', at) : at;
      run.command(lines.slice(at, end + 1));
      at = end + 1;
    }
    run.checkOverlaps();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // Overlaps are found at the end; they are reported for the line that brought them.
    const line = Math.min(
      at,
      lines.findLastIndex((text) => text.includes(error.piece)),
    );
    const from = (lines[line] ?? '').indexOf(error.piece) + 1;
    return `/dev/stdin:${line + 1}:${from}-${from + error.piece.length - 1}: Error: ${error.message}\n${lines[line]}\n`;
  }
  return run;
};

class ScriptRun implements FakeTransaction {
  readonly tables: Map<string, FakeTable>;
  readonly touched = new Map<string, { concernsChains: boolean }>();
  readonly signatures: number[] = [];
  readonly #grown = new Set<FakeContainer>();

  constructor(held: ReadonlyMap<string, FakeTable>) {
    this.tables = new Map([...held].map(([name, table]) => [name, copied(table)]));
  }

  /** One command: a line, or a table with its body. */
  command(lines: readonly string[]): void {
    const [line = '', ...body] = lines;
    if (line === '') return;
    const [verb = '', what, , tableName = '', name = ''] = line.split(' ');
    if (verb === 'table') {
      define(this.#table(what === 'inet' ? (line.split(' ')[2] ?? '') : ''), body.slice(0, -1));
      return;
    }
    const table = this.tables.get(tableName);
    if (table === undefined) throw new Refused(NOT_THERE, tableName);
    this.#touch(tableName, what === 'table' || what === 'chain' || what === 'rule');
    if (what === 'table') this.tables.delete(tableName);
    else if (what === 'chain') this.#changeChain(table, verb, name);
    else if (what === 'rule') table.chains.get(name)?.push(line.split(' ').slice(5).join(' '));
    else this.#changeContainer(table, verb, name, line);
  }

  checkOverlaps(): void {
    for (const { flags, elements } of this.#grown) {
      const overlap = flags.includes('interval') ? firstOverlap(elements.keys()) : undefined;
      if (overlap !== undefined) throw new Refused('Could not process rule: File exists', overlap);
    }
  }

  #table(name: string): FakeTable {
    const table = this.tables.get(name) ?? { containers: new Map(), chains: new Map() };
    this.tables.set(name, table);
    this.#touch(name, true);
    return table;
  }

  #touch(table: string, concernsChains: boolean): void {
    this.touched.set(table, { concernsChains: concernsChains || this.touched.get(table)?.concernsChains === true });
  }

  /** What is flushed has no rules, but keeps its hook. */
  #changeChain({ chains }: FakeTable, verb: string, name: string): void {
    const lines = chains.get(name);
    if (lines === undefined) throw new Refused(NOT_THERE, name);
    if (verb === 'delete') chains.delete(name);
    else chains.set(name, lines.filter(isHook));
  }

  #changeContainer({ containers }: FakeTable, verb: string, name: string, line: string): void {
    const container = containers.get(name);
    if (container === undefined) throw new Refused(NOT_THERE, name);
    if (verb === 'flush') {
      container.elements.clear();
      return;
    }
    if (verb === 'delete' && !line.includes('{')) {
      containers.delete(name);
      return;
    }
    const list = line.slice(line.indexOf('{') + 2, -2).split(', ');
    if (verb === 'delete') deleteElements(container, list);
    else this.#grown.add(addElements(container, list));
    if (name === 'signatures') this.signatures.push(...list.map((element) => Number(element.split(' ')[0])));
  }
}

/** One container, or one line of a chain, on each line. */
const define = (table: FakeTable, body: readonly string[]): void => {
  let chain: string[] = [];
  for (const text of body.map((part) => part.trim())) {
    const container = /^(set|map) (\S+) \{ type ([^;]+);(.*)\}$/.exec(text);
    const opened = /^chain (\S+) \{$/.exec(text)?.[1];
    if (container !== null) {
      const [, kind = '', name = '', type = '', rest = ''] = container;
      const [key = '', value] = type.split(' : ');
      // One that is there stays with its elements.
      if (table.containers.has(name)) continue;
      table.containers.set(name, { kind, key, value, flags: rest.trim(), elements: new Map(), counts: new Map() });
    } else if (opened !== undefined) {
      // Rules are added to those that are there.
      chain = table.chains.get(opened) ?? [];
      table.chains.set(opened, chain);
    } else if (text !== '}' && !(isHook(text) && chain.includes(text))) chain.push(text);
  }
};

const isHook = (line: string): boolean => / hook /.test(line);

const addElements = (container: FakeContainer, list: readonly string[]): FakeContainer => {
  for (const element of list) {
    const [written = '', value = ''] = element.replace(/ timeout \S+$/, '').split(' : ');
    const key = keyOf(container, written);
    const held = container.elements.get(key);
    // The same element once more is fine; another value for its key is not.
    if (held !== undefined && held !== value) throw new Refused('Could not process rule: File exists', written);
    container.elements.set(key, value);
  }
  return container;
};

const deleteElements = (container: FakeContainer, list: readonly string[]): void => {
  const isFound = !container.key.includes(' . ') || list.some((written) => /[-/]/.test(written));
  for (const written of list) {
    const key = keyOf(container, written);
    // The trap that render.ts tells about: without a range in the list, nft does not find the keys of joined intervals.
    if (!isFound || !container.elements.delete(key)) throw new Refused(`Could not process rule: ${NOT_THERE}`, written);
    container.counts.delete(key);
  }
};

/** The key as the kernel keeps it. In a joined key, a range of one address is that address. */
const keyOf = ({ key: type }: FakeContainer, written: string): string => {
  const key = type.includes(' . ') ? written.replace(written.includes(':') ? /\/128$/ : /\/32$/, '') : written;
  if (!isKeyOf(type, key)) throw new Refused('Could not parse the element', written);
  return key;
};

const copied = ({ containers, chains }: FakeTable): FakeTable => ({
  containers: new Map(
    [...containers].map(([name, container]) => [
      name,
      { ...container, elements: new Map(container.elements), counts: new Map(container.counts) },
    ]),
  ),
  chains: new Map([...chains].map(([name, lines]) => [name, [...lines]])),
});
