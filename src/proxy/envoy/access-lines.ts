/**
 * AccessLines takes what Envoy writes to its standard output and hands on whole lines with their newlines, as many as came. Lines of what went well are handed on
 * as they are; in the others it says why, from the flags that Envoy gave, and counts them.
 */
import type { AccessLine } from '../access-line.ts';
import type { RefusalWord } from '../engine.ts';
import { REFUSED } from './routes.ts';

/** Something in a line needs a second look: a flag or detail of trouble, or a refusal. */
const unusual = /"detail":"(?!- (?:via_upstream)?[ "])|"refused":"[a-z]/;
const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 1024 * 1024;

/**
 * Envoy's flags for connections that could not be made: no cluster, no address, no connection, too many tries, no name.
 * https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage (November 2026)
 */
const unreachableFlags = new Set(['NC', 'UH', 'UF', 'URX', 'DF', 'UO']);
const slowDetails = new Set(['request_header_timeout', 'request_overall_timeout']);

export class AccessLines {
  readonly #handOn: (lines: string) => void;
  readonly #refused = new Map<RefusalWord, number>();
  /** What came of a line that is not complete yet. */
  #parts: Buffer[] = [];

  constructor(handOn: (lines: string) => void) {
    this.#handOn = handOn;
  }

  /** What was not let through since the start. */
  get refused(): ReadonlyMap<RefusalWord, number> {
    return new Map(this.#refused);
  }

  /** Takes the next bytes of the output, and hands on the lines that they complete, all at once. */
  push(chunk: Buffer): void {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end === 0) {
      this.#keep(chunk);
      return;
    }
    const text = Buffer.concat([...this.#parts, chunk.subarray(0, end)]).toString('utf8');
    this.#parts = [];
    this.#keep(chunk.subarray(end));
    this.#handOn(
      isAllWell(text)
        ? text
        : text
            .split('\n')
            .map((line) => this.#judged(line))
            .join('\n'),
    );
  }

  /** A new program writes: half a line of the last one is forgotten. */
  restart(): void {
    this.#parts = [];
  }

  #keep(rest: Buffer): void {
    const bytes = this.#parts.reduce((sum, part) => sum + part.length, 0);
    // Envoy never writes such a line; memory is safe if it does.
    this.#parts = bytes > MAX_LINE_BYTES ? [] : [...this.#parts, rest];
  }

  #judged(line: string): string {
    return unusual.test(line) ? this.#completed(line) : line;
  }

  #completed(text: string): string {
    const found = parsed(text);
    // Nobody should have to read what is no line.
    if (found === undefined) return JSON.stringify({ ...unknown, detail: text });
    const line = byRoute(found);
    const refused = line.refused === '' ? wordFor(line) : line.refused;
    if (refused !== '') this.#count(refused);
    return JSON.stringify({ ...line, refused, detail: line.detail.trim() });
  }

  #count(word: RefusalWord): void {
    this.#refused.set(word, (this.#refused.get(word) ?? 0) + 1);
  }
}

const DETAIL = '"detail":"';
const WELL = `${DETAIL}- via_upstream"`;

/**
 * Whether every line is of a request that went well. Requests come by the thousand per second, so no pattern is used; what a
 * client sent stands behind the first detail of a line.
 */
const isAllWell = (text: string): boolean => {
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf('\n', start);
    const at = text.indexOf(DETAIL, start);
    if (at === -1 || (end !== -1 && at > end) || !text.startsWith(WELL, at)) return false;
    if (end === -1) return true;
    start = end + 1;
  }
  return true;
};

const unknown = { client: '', host: '', kind: 'http', method: '', rule: '', upstream: '' } as const;

/** A line of the HTTP proxy begins with its time and ends with its host, which is what the client sent, whatever it holds. */
const endsWithHost = /^(\{"time":.*?),"host":"(.*)"\}$/s;

const parsed = (text: string): AccessLine | undefined => {
  const [, head, host = ''] = endsWithHost.exec(text) ?? [];
  try {
    // Envoy writes what access-log.ts told it to. What it does not know it leaves out, or writes a dash: without a route it was HTTP.
    const found = head === undefined ? JSON.parse(text) : { ...JSON.parse(`${head}}`), host };
    const known = Object.entries(found).filter(([, value]) => value !== '-');
    return { ...unknown, ...Object.fromEntries(known) } as AccessLine;
  } catch {
    return undefined;
  }
};

/** A route whose name says so was a refusal. */
const byRoute = (line: AccessLine): AccessLine =>
  line.kind.endsWith(REFUSED)
    ? // What stands before it is a kind: routes.ts made the name.
      { ...line, kind: line.kind.slice(0, -REFUSED.length) as AccessLine['kind'], refused: 'not-allowed' }
    : line;

const wordFor = ({ detail }: AccessLine): RefusalWord | '' => {
  const [flags = '', details = ''] = detail.split(' ');
  if (slowDetails.has(details)) return 'slow';
  const all = flags.split(',');
  if (all.includes('DPE') || all.includes('IH')) return 'malformed';
  if (all.includes('NR')) return 'not-allowed';
  return all.some((flag) => unreachableFlags.has(flag)) ? 'unreachable' : '';
};
