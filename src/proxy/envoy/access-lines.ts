/**
 * AccessLines takes the lines that Envoy wrote and hands them on, as many as came. Those of requests that went well are handed on
 * as the bytes that they are; in the others it says why, from the flags that Envoy gave, and counts them.
 */
import type { AccessLine } from '../engine/access-line.ts';
import type { RefusalWord } from '../engine/engine.ts';
import { type LineJudge, passLines } from '../engine/pass-lines.ts';
import { LOOPED, REFUSED } from './routes.ts';

/** Something in a line needs a second look: a flag or detail of trouble, or a refusal. */
const unusual = /"detail":"(?!- (?:via_upstream)?[ "])|"refused":"[a-z]/;

/**
 * Envoy's flags for connections that could not be made: no cluster, no address, no connection, too many tries, no name.
 * https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage (November 2026)
 */
const unreachableFlags = new Set(['NC', 'UH', 'UF', 'URX', 'DF', 'UO']);
const slowDetails = new Set(['request_header_timeout', 'request_overall_timeout']);

export class AccessLines {
  readonly #handOn: (lines: Buffer) => void;
  readonly #refused = new Map<RefusalWord, number>();
  readonly #judge: LineJudge = { isFinal: isWell, rewritten: (line) => this.#judged(line.toString('utf8')) };

  constructor(handOn: (lines: Buffer) => void) {
    this.#handOn = handOn;
  }

  /** What was not let through since the start. */
  get refused(): ReadonlyMap<RefusalWord, number> {
    return new Map(this.#refused);
  }

  /** Tells of a connection that was refused before Envoy would write of it. */
  refuse(line: Pick<AccessLine, 'time' | 'kind' | 'client' | 'detail'>): void {
    this.#count('not-allowed');
    const nothing = { status: 0, bytesSent: 0, bytesReceived: 0, ms: 0 };
    this.#handOn(Buffer.from(`${JSON.stringify({ ...unknown, ...nothing, ...line, refused: 'not-allowed' })}\n`));
  }

  /** Takes whole lines, and hands them on all at once. */
  take(chunk: Buffer): void {
    const lines = passLines(chunk, this.#judge);
    if (lines !== undefined) this.#handOn(lines);
  }

  #judged(line: string): string {
    return line !== '' && (unusual.test(line) || !line.endsWith('}')) ? this.#completed(line) : line;
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

const WELL_AT = '{"time":"2026-11-15T12:00:00.000Z'.length;
const WELL = Buffer.from('","detail":"- via_upstream"');

/** Whether the line is of a request that went well. What a client sent stands far behind. */
const isWell = (bytes: Buffer, start: number): boolean => {
  for (let index = 0; index < WELL.length; index += 1) {
    if (bytes[start + WELL_AT + index] !== WELL[index]) return false;
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
const byRoute = (line: AccessLine): AccessLine => {
  const [end, refused] = line.kind.endsWith(LOOPED) ? ([LOOPED, 'loop'] as const) : ([REFUSED, 'not-allowed'] as const);
  return line.kind.endsWith(end)
    ? // What stands before it is a kind: routes.ts made the name.
      { ...line, kind: line.kind.slice(0, -end.length) as AccessLine['kind'], refused }
    : line;
};

const wordFor = ({ detail }: AccessLine): RefusalWord | '' => {
  const [flags = '', details = ''] = detail.split(' ');
  if (slowDetails.has(details)) return 'slow';
  const all = flags.split(',');
  if (all.includes('DPE') || all.includes('IH')) return 'malformed';
  if (all.includes('NR')) return 'not-allowed';
  return all.some((flag) => unreachableFlags.has(flag)) ? 'unreachable' : '';
};
