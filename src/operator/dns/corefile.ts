/**
 * The Corefile of CoreDNS with a block of ours in it. Names that pods use are in a `hosts` block of the root zone, between
 * two comments; all other text stays as it is, byte for byte. CoreDNS allows one `hosts` per server block
 * (https://coredns.io/plugins/hosts, 1.15), so where somebody has one, ours cannot be.
 */
import { isIP } from 'node:net';

/** Addresses by name. */
export type HostEntries = ReadonlyMap<string, readonly string[]>;

/** The text with the entries in it, or why it cannot be. */
export type Placed = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string };

const beginMark = '# sallyport-operator begins here; what stands until its end is written anew.';
const endMark = '# sallyport-operator ends here.';
/** Short, because an address changes when a Service is made anew. The default of the plugin is an hour. */
const ttlSeconds = 15;

/** Replaces our block, or puts it in; without entries it is taken out. Placing the same again changes nothing. */
export const placeHosts = (corefile: string, entries: HostEntries): Placed => {
  const bare = withoutBlock(corefile);
  if (bare === undefined) return { ok: false, why: 'one of the two comments around our hosts block is missing' };
  if (entries.size === 0) return { ok: true, text: bare };
  const root = rootBlock(bare);
  if (root === undefined) return { ok: false, why: 'there is no server block for the root zone' };
  if (root.directives.includes('hosts')) return { ok: false, why: 'the root zone has a hosts block already' };
  const block = [
    beginMark,
    'hosts {',
    ...[...entries]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, ips]) => ips.map((ip) => `  ${ip} ${name}`)),
    `  ttl ${ttlSeconds}`,
    '  fallthrough',
    '}',
    endMark,
  ];
  const lines = bare.split('\n');
  return { ok: true, text: lines.toSpliced(root.firstLine + 1, 0, ...block.map((line) => `    ${line}`)).join('\n') };
};

/** The names in our block. */
export const namesIn = (corefile: string): ReadonlySet<string> => {
  const lines = corefile.split('\n').map((line) => line.trim());
  const [begin, end] = [lines.indexOf(beginMark), lines.indexOf(endMark)];
  if (begin < 0) return new Set();
  const entries = lines.slice(begin + 1, end < 0 ? undefined : end).map((line) => line.split(' '));
  return new Set(entries.flatMap(([ip = '', name]) => (isIP(ip) === 0 || name === undefined ? [] : [name])));
};

/** The text without our block; undefined when only one of the comments is there. */
const withoutBlock = (corefile: string): string | undefined => {
  const lines = corefile.split('\n');
  const begin = lines.findIndex((line) => line.trim() === beginMark);
  const end = lines.findIndex((line) => line.trim() === endMark);
  if (begin < 0 && end < 0) return corefile;
  if (begin < 0 || end < begin) return undefined;
  return lines.toSpliced(begin, end - begin + 1).join('\n');
};

interface ServerBlock {
  /** The line on which it opens. */
  readonly firstLine: number;
  /** The first words of its lines. */
  readonly directives: readonly string[];
}

/** The first server block that answers for the root zone: every name that no other block is about. */
const rootBlock = (corefile: string): ServerBlock | undefined => {
  let depth = 0;
  let block: { firstLine: number; isRoot: boolean; directives: string[] } | undefined;
  for (const [index, line] of corefile.split('\n').entries()) {
    const words = wordsOf(line);
    const [first] = words;
    if (depth === 0 && words.at(-1) === '{')
      block = { firstLine: index, isRoot: words.some(isRootZone), directives: [] };
    else if (depth === 1 && first !== undefined && first !== '}') block?.directives.push(first);
    depth += words.filter((word) => word === '{').length - words.filter((word) => word === '}').length;
    if (depth === 0 && block?.isRoot) return block;
  }
  return undefined;
};

// A zone may have a scheme before it and a port behind it: `dns://.:53`.
const isRootZone = (word: string): boolean => /^([a-z]+:\/\/)?\.(:\d+)?,?$/.test(word);

/** The words of a line without its comment; quoted text is one word. */
const wordsOf = (line: string): string[] => {
  const words = line.match(/"(\\.|[^"\\])*"?|[^\s"]+/g) ?? [];
  const comment = words.findIndex((word) => word.startsWith('#'));
  return comment < 0 ? words : words.slice(0, comment);
};
