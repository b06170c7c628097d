/** From a line of nginx's own log to a line of the access log. Pure. The formats are in log-format.ts. */
import type { AccessLine } from '../engine/access-line.ts';
import type { RefusalWord } from '../engine/engine.ts';

/** A host that a client sent may be long; more of it tells nothing. */
const MAX_HOST = 300;

/** Reads lines one after the other. There is one for every request, so what can be remembered from line to line is. */
export class LineReader {
  readonly #idOf: (key: string) => string | undefined;
  /** The second of the last line, as text up to the dot; lines come in order of time, more or less. */
  #second = Number.NaN;
  #secondText = '';

  /** `idOf` tells the rule of an identifier in the configuration. */
  constructor(idOf: (key: string) => string | undefined) {
    this.#idOf = idOf;
  }

  /** The line in our words; undefined for one that is not ours, such as half a line after a crash. */
  read(line: string): AccessLine | undefined {
    const words = wordsOf(line);
    if (words === undefined) return undefined;
    const [first, key, address, port, host, upstream, method, statusWord, sent, received, end, lasted, answered] =
      words;
    const kind = first === 'tcp' || first === 'sni' ? first : method === 'CONNECT' ? 'connect' : 'http';
    const ms = Math.round(Number(lasted) * 1000);
    const beganMs = Math.round(Number(end) * 1000) - ms;
    if (Number.isNaN(beganMs)) return undefined;
    const status = Number(statusWord);
    const rule = key === '' ? '' : (this.#idOf(key) ?? key);
    const refused = refusal(kind, rule, status, answered, upstream === '' ? ms / 1000 : undefined);
    return {
      time: this.#timeText(beganMs),
      kind,
      rule: refused === 'not-allowed' || refused === 'malformed' ? '' : rule,
      client: endpoint(address, port),
      host: host.length > MAX_HOST ? host.slice(0, MAX_HOST) : host,
      upstream: lastUpstream(upstream),
      method,
      status: kind === 'tcp' || kind === 'sni' ? 0 : status,
      bytesSent: sum(sent),
      bytesReceived: sum(received),
      ms,
      refused,
      detail: status === 200 ? '' : `status ${statusWord}`,
    };
  }

  #timeText(ms: number): string {
    const second = Math.floor(ms / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -4);
    }
    return `${this.#secondText}${String(ms - second * 1000).padStart(3, '0')}Z`;
  }
}

type Words = [string, string, string, string, string, string, string, string, string, string, string, string, string];
const WORDS = 13;

const KINDS: ReadonlySet<string> = new Set(['http', 'tcp', 'sni']);

const wordsOf = (line: string): Words | undefined => {
  const words = line.startsWith('{') ? finalWords(line) : line.includes('\\') ? parsedWords(line) : plainWords(line);
  if (words?.length !== WORDS || !KINDS.has(words[0] ?? '')) return undefined;
  // Checked in the line before: as many texts as the format has.
  return words as Words;
};

const final =
  /^\{"time":"([\d.]+) *","ms":([\d.]+)e3,"client":"([^"]*):(\d+)","rule":"([^"]*)","bytesSent":([^"]*),"bytesReceived":([^"]*),"kind":"http","host":"([^"]*)","upstream":"([^"]*)","method":"([^"]*)","status":(\d+),/;

/** A line that would be final if there was one server and not several, or none, or if its client had an IPv4 address. */
const finalWords = (line: string): string[] | undefined => {
  const found = final.exec(line);
  if (found === null) return undefined;
  const [, end = '', lasted = '', address = '', port = '', rule = '', sent = '', received = '', ...rest] = found;
  const [host = '', upstream = '', method = '', status = ''] = rest;
  // What is no answer of a server is not logged in this form.
  return ['http', rule, address, port, host, upstream, method, status, sent, received, end, lasted, lasted];
};

/** Nearly all have nothing in them that was escaped: no quote can be in a word. */
const plainWords = (line: string): string[] | undefined =>
  line.startsWith('["') && line.endsWith('"]') ? line.slice(2, -2).split('","') : undefined;

const parsedWords = (line: string): string[] | undefined => {
  try {
    const parsed: unknown = JSON.parse(line);
    return Array.isArray(parsed) && parsed.every((word) => typeof word === 'string') ? parsed : undefined;
  } catch {
    return undefined;
  }
};

/** A little less than `preread_timeout`. */
const SLOW_SECONDS = 9;
const MALFORMED: ReadonlySet<number> = new Set([400, 405, 413, 414, 494, 431, 501, 505]);

/** A connection beyond the bound of a rule; a request that came back too often. */
const LIMITED = 503;
const LOOP = 508;

/** `waited` is how long nginx waited for a server name, if it was not told one, nor anything else that it could pass on. */
const refusal = (
  kind: AccessLine['kind'],
  rule: string,
  status: number,
  answered: string,
  waited: number | undefined,
): RefusalWord | '' => {
  if (kind === 'connect') return 'not-allowed';
  if (kind === 'sni' && rule === '' && waited !== undefined) return waited >= SLOW_SECONDS ? 'slow' : 'malformed';
  if ((kind === 'tcp' || kind === 'sni') && status === LIMITED) return 'too-many';
  if (kind === 'tcp' || kind === 'sni') return rule === '' ? 'not-allowed' : status === 200 ? '' : 'unreachable';
  // A server outside may answer with any of these too; then there was an answer, and it is no refusal of ours.
  if (answered !== '' && !answered.endsWith('-')) return '';
  if (status === LOOP) return 'loop';
  if (status === 408) return 'slow';
  if (MALFORMED.has(status)) return 'malformed';
  if (rule === '') return 'not-allowed';
  return [500, 502, 503, 504].includes(status) ? 'unreachable' : '';
};

/** An IPv4 client of a socket for both families looks like IPv6 to nginx. */
const endpoint = (address: string, port: string): string => {
  const plain = address.startsWith(MAPPED) && address.includes('.') ? address.slice(MAPPED.length) : address;
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
};
const MAPPED = '::ffff:';

/** The address that was used at last: nginx lists all that it tried. Our own sockets and names are nobody's. */
const lastUpstream = (text: string): string => {
  const last = text.includes(' ') ? (text.split(/, | : /).at(-1) ?? '') : text;
  return /^(?:[\d.]+|\[[0-9a-f:.]+\]):\d+$/.test(last) ? last : '';
};

/** One number for each address that was tried, which is one as a rule. */
const sum = (text: string): number =>
  text.includes(' ') ? text.split(/, | : /).reduce((total, part) => total + (Number(part) || 0), 0) : Number(text) || 0;
