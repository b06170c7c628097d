/**
 * The guard: which names may be asked for, and where they may lead. Pure. It judges addresses, not names of ranges: an IPv6
 * address that carries an IPv4 address inside is judged by both.
 */
import {
  contains,
  type IntervalSet,
  type Ip,
  isIpv4,
  parseCidrMasking,
  parseIp,
  parseSet,
  positionOf,
} from '../../core/ip/index.ts';
import type { RuleSet } from '../../core/proxy/served.ts';

/** Both questions, answered from one rule set. */
export interface Guard {
  /** Whether a rule names the host, by itself or by a suffix. */
  allows(name: string): boolean;
  /** Whether a name may lead to the address. */
  permits(ip: Ip): boolean;
}

/**
 * IPv6 ranges whose addresses stand for IPv4 addresses in a way that we do not take apart, or that no server has: IPv4-
 * compatible and unspecified, local NAT64 (RFC 8215), Teredo (RFC 4380), ORCHID, discard.
 */
const OPAQUE = ['::/96', '64:ff9b:1::/48', '2001::/32', '2001:10::/28', '100::/64'];
const opaque = setOfTexts(OPAQUE);

/** The guard of a rule set. A range that cannot be read is our own bug: the plan makes them. */
export const guardOf = (rules: Pick<RuleSet, 'rules' | 'forbidden'>): Guard => {
  const names = new Set<string>();
  const suffixes = new Set<string>();
  for (const rule of rules.rules) {
    if (rule.kind === 'tcp' && rule.to.kind === 'domain') names.add(rule.to.name);
    if (rule.kind === 'http' && rule.host.kind === 'exact') names.add(rule.host.name);
    if (rule.kind === 'http' && rule.host.kind === 'suffix') suffixes.add(rule.host.suffix);
  }
  const forbidden = setOfTexts(rules.forbidden);
  return {
    allows: (name) => names.has(name) || suffixesOf(name).some((suffix) => suffixes.has(suffix)),
    permits: (ip) => permits(forbidden, ip),
  };
};

/** The guard that lets nothing pass, for a resolver that has no rules yet. */
export const closedGuard: Guard = { allows: () => false, permits: () => false };

const permits = (forbidden: IntervalSet, ip: Ip): boolean => {
  if (contains(forbidden, ip)) return false;
  if (isIpv4(ip)) return true;
  if (contains(opaque, ip)) return false;
  const inner = innerIpv4(positionOf(ip) & ((1n << 128n) - 1n));
  return inner === undefined || !contains(forbidden, inner);
};

/** The IPv4 address inside a NAT64 (RFC 6052, 64:ff9b::/96) or 6to4 (RFC 3056, 2002::/16) address. */
const innerIpv4 = (value: bigint): Ip | undefined => {
  if (value >> 32n === 0x64ff9bn << 64n) return ipv4Of(value & 0xffffffffn);
  if (value >> 112n === 0x2002n) return ipv4Of((value >> 80n) & 0xffffffffn);
  return undefined;
};

const ipv4Of = (value: bigint): Ip | undefined => {
  const parsed = parseIp([24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.'));
  return parsed.ok ? parsed.value : undefined;
};

/** `.b.c` and `.c` for `a.b.c`: what a suffix rule may say. */
const suffixesOf = (name: string): string[] => {
  const found: string[] = [];
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) found.push(name.slice(dot));
  return found;
};

function setOfTexts(texts: readonly string[]): IntervalSet {
  const parsed = parseSet(texts, parseCidrMasking);
  if (!parsed.ok) throw new Error(`a forbidden range cannot be read: ${parsed.message}`);
  return parsed.value;
}
