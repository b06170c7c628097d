/**
 * LogReader takes the log as it comes, counts, and hands on the access log. There is a line for every request, and nearly all are as
 * users read them already (log-format.ts): of these it reads the few words that are counted, in the bytes as they came, and writes the time
 * in its place. All other lines are read word by word and written anew.
 */
import { type LineJudge, passLines } from '../engine/pass-lines.ts';
import { LineReader } from './access-log.ts';
import type { Counts } from './counts.ts';
import { type InternedRule, InternedRules } from './known-rules.ts';
import { LineTime } from './line-time.ts';

export interface LogReaderDeps {
  /** The rule of an identifier in the configuration. */
  readonly idOf: (key: string) => string | undefined;
  readonly counts: Counts;
  /** Gets whole lines, each with its newline. */
  readonly handOn: (lines: Buffer) => void;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BRACE = 0x7b;

const TIME_AT = '{"time":"'.length;
const TIME_LENGTH = '2026-11-15T13:00:00.000Z'.length;
/** Between two numbers or texts that are read, so many bytes are always the same. */
const gap = {
  ms: '","ms":'.length,
  client: 'e3,"client":"'.length,
  rule: '","rule":"'.length,
  sent: '","bytesSent":'.length,
  received: ',"bytesReceived":'.length,
} as const;

/** What is shorter is no line of a request. */
const LEAST_LENGTH = TIME_AT + TIME_LENGTH;

export class LogReader {
  readonly #deps: LogReaderDeps;
  readonly #lines: LineReader;
  readonly #time = new LineTime();
  /** The rule of the last line. */
  #rule: InternedRule | undefined;
  readonly #rules = new InternedRules();
  /** The same bytes that are read, four at a time. */
  #view: DataView = new DataView(new ArrayBuffer(0));
  /** Where the next number or text begins, in the line that is read. */
  #at = 0;
  readonly #judge: LineJudge = {
    isFinal: (bytes, start) => this.#isFinal(bytes, start),
    rewritten: (line) => this.#rewritten(line.toString('latin1').trimEnd()),
  };

  constructor(deps: LogReaderDeps) {
    this.#deps = deps;
    this.#lines = new LineReader(deps.idOf);
  }

  /** Takes whole lines. The bytes are changed in their place, and belong to whom they are handed on to. */
  take(chunk: Buffer): void {
    this.#view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
    const lines = passLines(chunk, this.#judge);
    if (lines !== undefined) this.#deps.handOn(lines);
  }

  #rewritten(text: string): string {
    const line = this.#lines.read(text);
    if (line === undefined) return '';
    this.#deps.counts.add(line);
    return JSON.stringify(line);
  }

  /** Counts a line that needs no more than its time, and gives it that; false for any other, which is left as it is. */
  #isFinal(bytes: Buffer, start: number): boolean {
    if (bytes[start] !== BRACE || bytes.length - start < LEAST_LENGTH) return false;
    this.#at = start + TIME_AT + TIME_LENGTH + gap.ms;
    const ms = this.#thousandths(bytes);
    this.#at += gap.client;
    if (!this.#isIpv4Client(bytes)) return false;
    this.#at += gap.rule;
    const id = this.#ruleAt(bytes);
    this.#at += gap.sent;
    const sent = this.#whole(bytes);
    // Several addresses were tried, or none: there are several numbers, or none.
    if (sent < 0 || bytes[this.#at + 1] !== QUOTE) return false;
    this.#at += gap.received;
    const received = this.#whole(bytes);
    if (received < 0 || bytes[this.#at + 1] !== QUOTE) return false;
    if (!this.#time.write(this.#view, start + TIME_AT, ms)) return false;
    this.#deps.counts.ended(id, sent, received);
    return true;
  }

  /** A number with three digits behind its dot, in thousandths. */
  #thousandths(bytes: Buffer): number {
    let value = 0;
    let at = this.#at;
    for (let byte = bytes[at] ?? 0; (byte >= ZERO && byte <= NINE) || byte === DOT; byte = bytes[at] ?? 0) {
      if (byte !== DOT) value = value * 10 + byte - ZERO;
      at += 1;
    }
    this.#at = at;
    return value;
  }

  /** A whole number that a comma ends; negative when there is none. */
  #whole(bytes: Buffer): number {
    const from = this.#at;
    let value = 0;
    let at = from;
    for (let byte = bytes[at] ?? 0; byte >= ZERO && byte <= NINE; byte = bytes[at] ?? 0) {
      value = value * 10 + byte - ZERO;
      at += 1;
    }
    this.#at = at;
    return at > from && bytes[at] === COMMA ? value : -1;
  }

  /** Passes the client; false for an IPv6 address, which is written in brackets by us. */
  #isIpv4Client(bytes: Buffer): boolean {
    let colons = 0;
    let at = this.#at;
    for (; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === COLON) colons += 1;
    this.#at = at;
    return colons === 1;
  }

  #ruleAt(bytes: Buffer): string {
    const from = this.#at;
    if (this.#rule?.isAt(this.#view, from, QUOTE) !== true) this.#rule = this.#rules.at(bytes, from, QUOTE);
    this.#at = from + this.#rule.length;
    return this.#rule.id;
  }
}
