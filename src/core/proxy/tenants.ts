/** Tenants: which namespaces may use a proxy, and for which ports, names and addresses; and which names they may publish. */

import { type Labels, matches } from '../cluster/labels.ts';
import { contains, type Ip } from '../ip/index.ts';
import type { HttpRuleView, ProxyView, TcpRuleView, TenantView } from './view.ts';

/** What a rule may not have, in words for a sentence; undefined when it may have everything. */
export const notAllowed = (
  rule: TcpRuleView | HttpRuleView,
  { tenants }: Pick<ProxyView, 'tenants'>,
  namespace: string,
  labels: Labels,
): string | undefined => {
  if (tenants === undefined) return undefined;
  const own = tenants.filter((tenant) => isMeant(tenant, namespace, labels));
  if (own.length === 0) return 'use it at all';
  // One entry must allow all of the rule: two halves of a permission are not one.
  if (own.some((tenant) => lacking(rule, tenant) === undefined)) return undefined;
  return own.map((tenant) => lacking(rule, tenant)).find((what) => what !== undefined);
};

/** True when rules of the proxy may publish the name. */
export const mayPublish = (name: string, { allowedNames }: Pick<ProxyView, 'allowedNames'>): boolean =>
  allowedNames === undefined || isBelowAny(name, allowedNames);

/** True when the name is one of the domains or below one. */
export const isBelowAny = (name: string, domains: readonly string[]): boolean =>
  domains.some((domain) => name === domain || name.endsWith(`.${domain}`));

const isMeant = ({ namespaces, selector }: TenantView, namespace: string, labels: Labels): boolean =>
  namespaces.includes(namespace) || (selector !== undefined && matches(selector, labels));

const lacking = (rule: TcpRuleView | HttpRuleView, { to, ports }: TenantView): string | undefined => {
  if (rule.kind === 'tcp' && ports !== undefined) {
    const { sourcePort } = rule;
    if (!ports.some(({ first, last }) => first <= sourcePort && sourcePort <= last)) return `have port ${sourcePort}`;
  }
  if (to === undefined) return undefined;
  const { names, ips } = destinationsOf(rule);
  const name = names.find((text) => !isBelowAny(text, to.domains));
  if (name !== undefined) return `lead to ${name}`;
  const ip = ips.find((address) => !contains(to.ranges, address));
  return ip === undefined ? undefined : `lead to ${ip}`;
};

/** The names and addresses that a rule leads to. */
export const destinationsOf = (
  rule: TcpRuleView | HttpRuleView,
): { readonly names: readonly string[]; readonly ips: readonly Ip[] } => {
  if (rule.kind === 'tcp') {
    return rule.to.kind === 'domain' ? { names: [rule.to.name], ips: [] } : { names: [], ips: rule.to.ips };
  }
  const { host } = rule;
  switch (host.kind) {
    case 'exact':
      return { names: [host.name], ips: [] };
    case 'suffix':
      // `*.example.com` is below example.com, and all that it matches is too.
      return { names: [host.suffix.slice(1)], ips: [] };
    case 'address':
      return { names: [], ips: [host.ip] };
    default:
      return host satisfies never;
  }
};
