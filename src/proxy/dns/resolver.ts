/**
 * GuardedResolver answers which addresses an allowed name has, and none that the guard forbids. It is the only way in which
 * an engine learns an address, so the address that was checked is the one that is connected to, and a name that changes
 * its mind between two look-ups (DNS rebinding) gains nothing.
 */
import { compareIps, type Ip, isIpv4, isIpv6 } from '../../core/ip/index.ts';
import type { HostPattern, RuleSet, ServedRule, TcpTarget } from '../../core/proxy/served.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import { keyOf } from '../engine/rule-key.ts';
import { noSources, SourceIndex, type Sources } from '../engine/sources.ts';
import { Budget } from './budget.ts';
import { follow, type Resolution } from './chain.ts';
import { type ClientQuestion, isClientName, parseClientName } from './client-name.ts';
import { closedGuard, type Guard, guardOf } from './guard.ts';
import type { AddressType, Reply } from './message.ts';
import type { Outside } from './outside.ts';

/** Why a question got no address, as counted. */
export const questionRefusals = [
  'name-not-allowed',
  'client-not-allowed',
  'address-forbidden',
  'not-resolved',
  'resolver-busy',
  'malformed',
] as const;
export type QuestionRefusal = (typeof questionRefusals)[number];

/** What a name is worth to a rule: its addresses, or the reason why it has none. */
export interface NameFinding {
  /** Addresses that may be used, sorted. */
  readonly addresses: readonly Ip[];
  /** Addresses that the outside gave and the guard took away, sorted. */
  readonly forbidden: readonly Ip[];
  readonly problem?: { readonly reason: 'NameNotResolved' | 'AddressForbidden'; readonly sentence: string };
}

export interface ResolverDeps {
  readonly outside: Outside;
  readonly clock: Clock;
  /** Told once per refused question, for the log. */
  readonly onRefused?: (name: string, word: QuestionRefusal) => void;
}

/** Bounds of the seconds for which an answer holds: short enough to follow changes, long enough not to flood the outside. */
const TTL = { min: 1, max: 60 } as const;
const NEGATIVE_TTL = { min: 1, max: 30 } as const;
/** After a failure the outside is left alone for so long: longer while an old answer stands in. */
const RETRY_MS = { withoutAnswer: 1000, withOldAnswer: 5000 } as const;
/** An outage of the resolvers outside does not end what worked before it (RFC 8767), but not for ever. */
const STALE_MS = 600_000;
/** Wildcard rules let clients invent names, so they are bounded; the oldest entries go first. */
const MAX_ENTRIES = 20_000;

interface CacheEntry {
  readonly found: Resolution;
  /** When its time to live is over. */
  readonly expiresAtMs: number;
  /** When the outside is asked again: then, or later after a failure. */
  readonly retryAtMs: number;
}

const families: readonly AddressType[] = ['A', 'AAAA'];

export class GuardedResolver {
  readonly #deps: ResolverDeps;
  readonly #stopped = new AbortController();
  /** `type name` -> what the outside said last; kept past its end for outages. */
  readonly #entries = new Map<string, CacheEntry>();
  /** `type name` -> the question under way: many who ask the same wait for one answer. */
  readonly #questions = new Map<string, Promise<Resolution>>();
  readonly #budget = new Budget();
  #rules: ReadonlyMap<string, ServedRule> = new Map();
  #sources = new SourceIndex(noSources);
  readonly #refused = new Map<QuestionRefusal, number>();
  #guard: Guard = closedGuard;
  #revision: string | undefined;

  constructor(deps: ResolverDeps) {
    this.#deps = deps;
  }

  /** From now on only names of these rules are answered. What is remembered is judged anew; calling it again changes nothing. */
  set(rules: Pick<RuleSet, 'revision' | 'rules' | 'forbidden'>): void {
    if (rules.revision === this.#revision) return;
    this.#guard = guardOf(rules);
    this.#rules = new Map(rules.rules.map((rule) => [keyOf(rule.id), rule]));
    this.#revision = rules.revision;
    for (const key of this.#entries.keys()) if (!this.#guard.allows(nameOf(key))) this.#entries.delete(key);
  }

  /** From now on these are the addresses of clients; see client-name.ts. */
  admit(sources: Sources): void {
    this.#sources = new SourceIndex(sources);
  }

  /** The answer to an engine's question for addresses of one family. */
  async reply(name: string, type: AddressType): Promise<Reply> {
    if (isClientName(name)) return this.#replyFor(name, parseClientName(name), type);
    const owner = this.#guard.ownerOf(name);
    if (owner === undefined) return this.#refuse(name, 'name-not-allowed', 'refused');
    const key = `${type} ${name}`;
    if (!this.#isFresh(key) && !this.#questions.has(key) && !this.#budget.allows(owner)) {
      return this.#refuse(name, 'resolver-busy', 'failed');
    }
    const found = await this.#find(name, type);
    // Judged after the wait: the rules may have changed meanwhile.
    if (!this.#guard.allows(name)) return this.#refuse(name, 'name-not-allowed', 'refused');
    if (found.kind === 'failed') return this.#refuse(name, 'not-resolved', 'failed');
    const ttlSeconds = this.#remainingSeconds(key);
    if (found.kind === 'nxdomain') return this.#refuse(name, 'not-resolved', 'nxdomain');
    if (found.kind !== 'addresses') return { rcode: 'ok', ips: [], ttlSeconds };
    const ips = found.ips.filter((ip) => ip !== undefined).filter((ip) => this.#guard.permits(ip));
    // "It does not exist" would also be believed for the other family, which may be fine.
    if (ips.length === 0) return this.#refuse(name, 'address-forbidden', 'ok');
    return { rcode: 'ok', ips, ttlSeconds };
  }

  /** Looks the name up in both families, from memory while that is fresh; for reports. */
  async check(name: string): Promise<NameFinding> {
    if (!this.#guard.allows(name)) {
      return { addresses: [], forbidden: [], problem: notResolved(`no rule of the proxy names ${name}`) };
    }
    const found = await Promise.all(families.map((type) => this.#find(name, type)));
    return this.#judge(name, found);
  }

  /** Addresses that the name was last seen to have and that may be used; empty when nobody asked yet. Never waits. */
  addressesOf(name: string): readonly Ip[] {
    const found = families.flatMap((type) => this.#entries.get(`${type} ${name}`)?.found ?? []);
    return this.#judge(name, found).addresses;
  }

  /** The same for a host as a rule writes it; an address is itself. */
  addressesAt(host: HostPattern): readonly Ip[] {
    switch (host.kind) {
      case 'exact':
        return this.addressesOf(host.name);
      case 'suffix':
        return this.addressesUnder(host.suffix);
      case 'address':
        return [host.ip];
    }
  }

  /** The same for all names under a suffix such as `.example.com` that were asked for, as one sorted list. */
  addressesUnder(suffix: string): readonly Ip[] {
    const names = new Set([...this.#entries.keys()].map(nameOf).filter((name) => name.endsWith(suffix)));
    return distinct([...names].flatMap((name) => this.addressesOf(name)));
  }

  /** How many questions were refused since the start, by word. */
  get refused(): ReadonlyMap<QuestionRefusal, number> {
    return this.#refused;
  }

  /** Counts bytes that are no question; the server calls it. */
  countMalformed(): void {
    this.#count('malformed');
  }

  /** Ends the questions under way. May be called twice. */
  stop(): void {
    this.#stopped.abort(new Error('the resolver was stopped'));
  }

  /** Where a rule leads, for a client that may use it. Believed for a second, since addresses of pods change hands. */
  async #replyFor(name: string, asked: ClientQuestion | undefined, type: AddressType): Promise<Reply> {
    const rule = asked === undefined ? undefined : this.#rules.get(asked.key);
    if (asked === undefined || rule === undefined || !this.#sources.mayUse(asked.client, rule.from)) {
      return this.#refuse(name, 'client-not-allowed', 'refused');
    }
    const to = targetOf(rule, asked.host);
    if (to === undefined) return this.#refuse(name, 'name-not-allowed', 'refused');
    if (to.kind === 'domain') return { ...(await this.reply(to.name, type)), ttlSeconds: TTL.min };
    return { rcode: 'ok', ips: to.ips.filter(type === 'A' ? isIpv4 : isIpv6), ttlSeconds: TTL.min };
  }

  async #find(name: string, type: AddressType): Promise<Resolution> {
    const key = `${type} ${name}`;
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#isFresh(key)) return entry.found;
    const running = this.#questions.get(key);
    if (running !== undefined) return running;
    const owner = this.#guard.ownerOf(name);
    const ended = owner === undefined ? undefined : this.#budget.begin(owner);
    const question = this.#ask(key, name, type).finally(() => {
      this.#questions.delete(key);
      ended?.();
    });
    this.#questions.set(key, question);
    return question;
  }

  async #ask(key: string, name: string, type: AddressType): Promise<Resolution> {
    const found = await follow(this.#deps.outside, name, type, this.#stopped.signal);
    const nowMs = this.#deps.clock.monotonicMs();
    if (found.kind === 'failed') {
      const old = this.#entries.get(key);
      const isUsable = old?.found.kind === 'addresses' && nowMs - old.expiresAtMs <= STALE_MS;
      // The end of an old answer stays where it was, so that the outage counts from there; only the next try is put off.
      const entry = isUsable
        ? { ...old, retryAtMs: nowMs + RETRY_MS.withOldAnswer }
        : { found, expiresAtMs: nowMs, retryAtMs: nowMs + RETRY_MS.withoutAnswer };
      this.#remember(key, entry);
      return entry.found;
    }
    const { min, max } = found.kind === 'addresses' ? TTL : NEGATIVE_TTL;
    const ttlSeconds = Math.min(Math.max(found.ttlSeconds, min), max);
    const expiresAtMs = nowMs + ttlSeconds * 1000;
    this.#remember(key, { found, expiresAtMs, retryAtMs: expiresAtMs });
    return found;
  }

  #remember(key: string, entry: CacheEntry): void {
    // The rule may have gone while the question was under way.
    if (!this.#guard.allows(nameOf(key))) return;
    // Deleting first moves the key to the end: the map is in order of age.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size <= MAX_ENTRIES) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  #isFresh(key: string): boolean {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#deps.clock.monotonicMs() < entry.retryAtMs;
  }

  #remainingSeconds(key: string): number {
    const entry = this.#entries.get(key);
    if (entry === undefined) return TTL.min;
    const seconds = Math.floor((entry.expiresAtMs - this.#deps.clock.monotonicMs()) / 1000);
    return Math.min(Math.max(seconds, TTL.min), TTL.max);
  }

  #judge(name: string, found: readonly Resolution[]): NameFinding {
    const all = found.flatMap((one) => (one.kind === 'addresses' ? one.ips : []));
    const known = distinct(all.filter((ip) => ip !== undefined));
    const addresses = known.filter((ip) => this.#guard.permits(ip));
    const forbidden = known.filter((ip) => !this.#guard.permits(ip));
    if (addresses.length > 0) return { addresses, forbidden };
    if (all.length > 0) {
      const where = forbidden.length > 0 ? forbidden.join(', ') : 'an IPv4-mapped address';
      const sentence = `${name} resolves to ${where}, which is private, local or inside the cluster`;
      return { addresses, forbidden, problem: { reason: 'AddressForbidden', sentence } };
    }
    const failure = found.find((one) => one.kind === 'failed');
    const why = failure === undefined ? 'has no address' : `cannot be resolved: ${failure.sentence}`;
    return { addresses, forbidden, problem: notResolved(`${name} ${why}`) };
  }

  #refuse(name: string, word: QuestionRefusal, rcode: Reply['rcode']): Reply {
    this.#count(word);
    this.#deps.onRefused?.(name, word);
    return { rcode, ips: [], ttlSeconds: TTL.min };
  }

  #count(word: QuestionRefusal): void {
    this.#refused.set(word, (this.#refused.get(word) ?? 0) + 1);
  }
}

/** Where a rule leads; a wildcard leads to the host that is asked for, if that is under it. */
const targetOf = (rule: ServedRule, host: string | undefined): TcpTarget | undefined => {
  if (rule.kind === 'tcp') return rule.to;
  switch (rule.host.kind) {
    case 'exact':
      return { kind: 'domain', name: rule.host.name };
    case 'address':
      return { kind: 'addresses', ips: [rule.host.ip] };
    case 'suffix':
      return host?.endsWith(rule.host.suffix) ? { kind: 'domain', name: host } : undefined;
  }
};

const nameOf = (key: string): string => key.slice(key.indexOf(' ') + 1);

const notResolved = (sentence: string) => ({ reason: 'NameNotResolved', sentence }) as const;

const distinct = (ips: readonly Ip[]): Ip[] => [...new Set(ips)].toSorted(compareIps);
