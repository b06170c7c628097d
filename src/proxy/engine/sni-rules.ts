/** Which rule serves a TLS client that was led here by DNS: all it tells is a server name, no port. */
import type { HostPattern, HttpServed, RuleSet } from '../../core/proxy/served.ts';

const HTTPS_PORT = 443;

/**
 * The rules that are served by server name, one per host: with several, the one for port 443, else the lowest port. Rules for
 * addresses are not among them, because a server name is never an address (RFC 6066). In order of their ids.
 */
export const sniRules = ({ rules }: Pick<RuleSet, 'rules'>): HttpServed[] => {
  const byHost = new Map<string, HttpServed>();
  for (const rule of rules) {
    if (rule.kind !== 'http' || !rule.isTls || rule.host.kind === 'address') continue;
    const key = hostText(rule.host);
    const other = byHost.get(key);
    if (other === undefined || rank(rule) < rank(other)) byHost.set(key, rule);
  }
  return rules.filter((rule) => rule.kind === 'http').filter((rule) => byHost.get(hostText(rule.host)) === rule);
};

/** A host as users write it. */
export const hostText = (host: HostPattern): string => {
  switch (host.kind) {
    case 'exact':
      return host.name;
    case 'suffix':
      return `*${host.suffix}`;
    case 'address':
      return host.ip;
  }
};

const rank = ({ destPort }: HttpServed): number => (destPort === HTTPS_PORT ? 0 : destPort);
