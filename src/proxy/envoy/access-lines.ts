/**
 * AccessLines takes what Envoy writes to its standard output and hands on whole lines, as many as came. Lines of what went well are handed on
 * as they are; in the others it says why, from the flags that Envoy gave, and counts them.
 */
import type { AccessLine } from '../access-line.ts';
import type { RefusalWord } from '../engine.ts';

/** Something in the text needs a second look: a flag or detail of trouble, or a refusal. */
const unusual = /"detail":"(?!- (?:via_upstream|direct_response)?[ "])|"refused":"[a-z]/;
const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 1024 * 1024;

/**
 * Envoy's flags for connections that could not be made: no cluster, no address, no connection, too many tries, no name.
 * https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage (November 2026)
 */
const unreachableFlags = new Set(['NC', 'UH', 'UF', 'URX', 'DF', 'UO']);
const slowDetails = new Set(['request_header_timeout', 'request_overall_timeout']);

export class AccessLines {
  readonly #handOn: (line: string) => void;
  readonly #refused = new Map<RefusalWord, number>();
  /** What came of a line that is not complete yet. */
  #parts: Buffer[] = [];

  constructor(handOn: (line: string) => void) {
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
    const text = Buffer.concat([...this.#parts, chunk.subarray(0, end - 1)]).toString('utf8');
    this.#parts = [];
    this.#keep(chunk.subarray(end));
    // Requests come by the thousand per second; one look at all of them is enough while nothing is wrong.
    this.#handOn(
      unusual.test(text)
        ? text
            .split('\n')
            .map((line) => this.#judged(line))
            .join('\n')
        : text,
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
    const line = parsed(text);
    if (line === undefined) return text;
    const refused = line.refused === '' ? wordFor(line) : line.refused;
    if (refused !== '') this.#count(refused);
    return JSON.stringify({ ...line, refused, detail: line.detail.trim() });
  }

  #count(word: RefusalWord): void {
    this.#refused.set(word, (this.#refused.get(word) ?? 0) + 1);
  }
}

const unknown = { client: '', host: '', kind: 'http', method: '', rule: '', upstream: '' } as const;

const parsed = (text: string): AccessLine | undefined => {
  try {
    // Envoy writes what access-log.ts told it to, and leaves out what it does not know: without a route it was HTTP.
    return { ...unknown, ...JSON.parse(text) } as AccessLine;
  } catch {
    return undefined;
  }
};

const wordFor = ({ detail }: AccessLine): RefusalWord | '' => {
  const [flags = '', details = ''] = detail.split(' ');
  if (slowDetails.has(details)) return 'slow';
  const all = flags.split(',');
  if (all.includes('DPE') || all.includes('IH')) return 'malformed';
  if (all.includes('NR')) return 'not-allowed';
  return all.some((flag) => unreachableFlags.has(flag)) ? 'unreachable' : '';
};
