/** What nginx cannot do, rule by rule, with the engine that can. Pure. */
import type { RuleSet, ServedRule } from '../../core/proxy/served.ts';
import type { RuleProblem } from '../engine/engine.ts';
import { hostText, sniRules } from '../engine/sni-rules.ts';
import { isPlainName } from './words.ts';

/** Why nginx can never do what the rule asks, whatever other rules there are. */
export const cannot = (rule: ServedRule): RuleProblem | undefined => {
  if (rule.kind === 'tcp') {
    if (rule.to.kind === 'domain' && rule.algorithm !== 'roundrobin') {
      return engineCannot(
        `nginx spreads connections over the addresses of a name in turn and cannot do ${rule.algorithm}`,
        'use ips, algorithm roundrobin',
      );
    }
    if (
      rule.from !== undefined &&
      rule.algorithm !== 'roundrobin' &&
      rule.to.kind === 'addresses' &&
      rule.to.ips.length > 1
    ) {
      return engineCannot(
        `nginx cannot do ${rule.algorithm} for a rule that is not for every namespace`,
        'use algorithm roundrobin, sources.any',
      );
    }
    return rule.to.kind === 'domain' ? badName(rule.to.name) : undefined;
  }
  if (rule.isTls && rule.host.kind === 'address') {
    return engineCannot(
      `nginx reaches TLS hosts by their server name only, and ${rule.host.ip} is an address`,
      'use a host name',
    );
  }
  if (rule.host.kind === 'exact') return badName(rule.host.name);
  return rule.host.kind === 'suffix' ? badName(`any${rule.host.suffix}`) : undefined;
};

/** What users should know of a rule that nginx serves in one of two ways. */
export const note = (rule: ServedRule): string | undefined =>
  rule.kind === 'http' && rule.isTls
    ? `nginx serves ${hostText(rule.host)} by its server name where DNS leads clients to the proxy, not by CONNECT (HTTPS_PROXY); engine envoy does both`
    : undefined;

/** The problems of rules that nginx could do one by one, but not together. */
export const cannotTogether = (rules: Pick<RuleSet, 'rules'>): Map<string, RuleProblem> => {
  const served = new Map(sniRules(rules).map((rule) => [hostText(rule.host), rule]));
  const problems = new Map<string, RuleProblem>();
  for (const rule of rules.rules) {
    if (rule.kind !== 'http' || !rule.isTls || rule.host.kind === 'address') continue;
    const host = hostText(rule.host);
    const winner = served.get(host);
    if (winner === undefined || winner === rule) continue;
    problems.set(
      rule.id,
      engineCannot(
        `nginx reaches ${host} by its server name, which tells no port, and ${winner.id} has it for port ${winner.destPort}`,
        'use one port for the host',
      ),
    );
  }
  return problems;
};

const engineCannot = (what: string, otherwise: string): RuleProblem => ({
  reason: 'EngineCannot',
  sentence: `${what}; ${otherwise}, or a proxy with engine envoy, which can`,
});

const badName = (name: string): RuleProblem | undefined =>
  isPlainName(name)
    ? undefined
    : { reason: 'RuleRefused', sentence: `${JSON.stringify(name)} is no host name that nginx can use` };
