/** Parts of rule sets, and the ports that they listen on. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { proxyPorts, type RuleSet, type ServedRule } from '../../core/proxy/served.ts';

/** The rules that have no problem. */
export const without = (rules: RuleSet, problems: ReadonlyMap<string, unknown>): RuleSet => ({
  ...rules,
  rules: rules.rules.filter(({ id }) => !problems.has(id)),
});

/** All ports that a rule set listens on, those of the HTTP proxy included. */
export const portsOf = ({ rules }: Pick<RuleSet, 'rules'>): number[] => [
  proxyPorts.http,
  proxyPorts.tls,
  ...rules.filter((rule) => rule.kind === 'tcp').map(({ listenPort }) => listenPort),
];

/** True when none of the rules is gone or changed in the later ones. */
export const areAmong = (rules: readonly ServedRule[], later: readonly ServedRule[]): boolean => {
  const byId = new Map(later.map((rule) => [rule.id, rule]));
  return rules.every((rule) => isDeepStrictEqual(rule, byId.get(rule.id)));
};
