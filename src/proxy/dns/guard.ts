/**
 * The guard: which names may be asked for, and where they may lead. Pure. What is forbidden was decided with the plan
 * (core/proxy/forbidden.ts), also for IPv6 addresses that carry an IPv4 address inside; here it is only looked up.
 */
import { contains, type IntervalSet, type Ip, parseCidrMasking, parseSet } from '../../core/ip/index.ts';
import type { RuleSet, ServedRule } from '../../core/proxy/served.ts';
import type { RuleOwner } from './budget.ts';

/** Both questions, answered from one rule set. */
export interface Guard {
  /** Whether a rule names the host, by itself or by a suffix. */
  allows(name: string): boolean;
  /** The rule that names the host most narrowly; undefined when none does. */
  ownerOf(name: string): RuleOwner | undefined;
  /** Whether a name may lead to the address. */
  permits(ip: Ip): boolean;
}

/** The guard of a rule set. A range that cannot be read is our own bug: the plan makes them. */
export const guardOf = (rules: Pick<RuleSet, 'rules' | 'forbidden'>): Guard => {
  const owners = new Map<string, RuleOwner>();
  for (const rule of rules.rules) {
    const text = patternOf(rule);
    if (text !== undefined && !owners.has(text)) owners.set(text, { rule: rule.id, namespace: namespaceOf(rule.id) });
  }
  const ownerOf = (name: string): RuleOwner | undefined => {
    const text = owners.has(name) ? name : suffixesOf(name).find((suffix) => owners.has(suffix));
    return text === undefined ? undefined : owners.get(text);
  };
  const forbidden = setOfTexts(rules.forbidden);
  return {
    allows: (name) => ownerOf(name) !== undefined,
    ownerOf,
    permits: (ip) => !contains(forbidden, ip),
  };
};

/** The guard that lets nothing pass, for a resolver that has no rules yet. */
export const closedGuard: Guard = { allows: () => false, ownerOf: () => undefined, permits: () => false };

/** What the guard looks a rule up by; undefined for addresses. */
const patternOf = (rule: ServedRule): string | undefined => {
  if (rule.kind === 'tcp') return rule.to.kind === 'domain' ? rule.to.name : undefined;
  switch (rule.host.kind) {
    case 'exact':
      return rule.host.name;
    case 'suffix':
      return `*${rule.host.suffix}`;
    case 'address':
      return undefined;
  }
};

const namespaceOf = (id: string): string => id.slice(0, id.indexOf('/'));

/** `*.b.c` and `*.c` for `a.b.c`: the wildcards that it is under, the narrowest first. */
const suffixesOf = (name: string): string[] => {
  const found: string[] = [];
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) found.push(`*${name.slice(dot)}`);
  return found;
};

function setOfTexts(texts: readonly string[]): IntervalSet {
  const parsed = parseSet(texts, parseCidrMasking);
  if (!parsed.ok) throw new Error(`a forbidden range cannot be read: ${parsed.message}`);
  return parsed.value;
}
