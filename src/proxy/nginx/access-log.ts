/** From a line of nginx's own log to counts and to a line of the access log. Pure. The formats are in render.ts and render-http.ts. */
import type { AccessLine } from '../access-line.ts';
import type { RefusalWord } from '../engine.ts';

/** A host that a client sent may be long; more of it tells nothing. */
const MAX_HOST = 300;

/** The line in our words; undefined for one that is not ours, such as half a line after a crash. */
export const readLine = (line: string, idOf: (key: string) => string | undefined): AccessLine | undefined => {
  const words = wordsOf(line);
  if (words === undefined) return undefined;
  const [kindWord, key, address, port, host, upstream, method, statusWord, sent, received, endWord, lasted, answered] =
    words;
  const kind = kindWord === 'tcp' || kindWord === 'sni' ? kindWord : method === 'CONNECT' ? 'connect' : 'http';
  const seconds = Number(lasted);
  const endMs = Number(endWord) * 1000;
  const status = Number(statusWord);
  const rule = key === '' ? '' : (idOf(key) ?? key);
  const refused = refusal(kind, rule, status, answered, upstream === '' ? seconds : undefined);
  return {
    time: new Date(Math.round(endMs - seconds * 1000)).toISOString(),
    kind,
    rule: refused === 'not-allowed' || refused === 'malformed' ? '' : rule,
    client: endpoint(address, port),
    host: host.slice(0, MAX_HOST),
    upstream: lastUpstream(upstream),
    method,
    status: kind === 'tcp' || kind === 'sni' ? 0 : status,
    bytesSent: sum(sent),
    bytesReceived: sum(received),
    ms: Math.round(seconds * 1000),
    refused,
    detail: status === 200 ? '' : `status ${statusWord}`,
  };
};

type Words = [string, string, string, string, string, string, string, string, string, string, string, string, string];
const WORDS = 13;

const wordsOf = (line: string): Words | undefined => {
  try {
    const parsed: unknown = JSON.parse(line);
    const isOurs = Array.isArray(parsed) && parsed.length === WORDS && parsed.every((word) => typeof word === 'string');
    // Checked in the line before: as many texts as the format has.
    return isOurs ? (parsed as Words) : undefined;
  } catch {
    return undefined;
  }
};

/** A little less than `preread_timeout`. */
const SLOW_SECONDS = 9;
const MALFORMED: ReadonlySet<number> = new Set([400, 405, 413, 414, 494, 431, 501, 505]);

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
  if (kind === 'tcp' || kind === 'sni') return rule === '' ? 'not-allowed' : status === 200 ? '' : 'unreachable';
  // A server outside may answer with any of these too; then there was an answer, and it is no refusal of ours.
  if (answered !== '' && !answered.endsWith('-')) return '';
  if (status === 408) return 'slow';
  if (MALFORMED.has(status)) return 'malformed';
  if (rule === '') return 'not-allowed';
  return [500, 502, 503, 504].includes(status) ? 'unreachable' : '';
};

/** An IPv4 client of a socket for both families looks like IPv6 to nginx. */
const endpoint = (address: string, port: string): string => {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
};

/** The address that was used at last: nginx lists all that it tried. Our own sockets are nobody's. */
const lastUpstream = (text: string): string => {
  const last = text.split(/, | : /).at(-1) ?? '';
  return /^(?:[\d.]+|\[[0-9a-f:.]+\]):\d+$/.test(last) ? last : '';
};

const sum = (text: string): number =>
  text.split(/, | : /).reduce((total, part) => total + (/^\d+$/.test(part) ? Number(part) : 0), 0);
