/**
 * The guard: which names may be asked for, and where they may lead. Pure. What is forbidden was decided with the plan
 * (core/proxy/forbidden.ts), also for IPv6 addresses that carry an IPv4 address inside; here it is only looked up.
 */
import { contains, type IntervalSet, type Ip, parseCidrMasking, parseSet } from '../../core/ip/index.ts';
import type { RuleSet } from '../../core/proxy/served.ts';

/** Both questions, answered from one rule set. */
export interface Guard {
  /** Whether a rule names the host, by itself or by a suffix. */
  allows(name: string): boolean;
  /** Whether a name may lead to the address. */
  permits(ip: Ip): boolean;
}

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
    permits: (ip) => !contains(forbidden, ip),
  };
};

/** The guard that lets nothing pass, for a resolver that has no rules yet. */
export const closedGuard: Guard = { allows: () => false, permits: () => false };

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
