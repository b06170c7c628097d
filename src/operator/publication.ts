/** Publication: the addresses under which rules are reached, and whether each of them is there. */
import { type Finding, finding } from '../core/cluster/finding.ts';
import { isAtProxy } from '../core/proxy/claims.ts';
import type { EgressPlan, ProxiesPlan, RulePlan } from '../core/proxy/plan.ts';
import type { KubeObject } from '../runtime/kube/resource.ts';
import type { HostEntries } from './dns/corefile.ts';
import type { PublishedNames } from './dns/names.ts';
import { type Caches, findMade } from './inputs/caches.ts';

interface ServiceObject extends KubeObject {
  readonly spec?: { readonly clusterIPs?: readonly string[] };
}

/** Names of served rules, which are to be in the DNS of the cluster, with the addresses of the Services that exist. */
export const hostEntries = (caches: Caches, { egresses }: ProxiesPlan, servedIds: ReadonlySet<string>): HostEntries => {
  const entries = new Map<string, readonly string[]>();
  for (const plan of egresses.values()) {
    for (const rule of plan.rules) {
      if (rule.publish === undefined || entries.has(rule.publish) || !servedIds.has(rule.id)) continue;
      const ips = clusterIps(caches, serviceKey(plan, rule));
      if (ips.length > 0) entries.set(rule.publish, ips);
    }
  }
  return entries;
};

/** How the Services and names of an object stand, by the id of the rule. `foreign` are keys of Services that are not ours. */
export const publishedOf = (
  caches: Caches,
  plan: EgressPlan,
  foreign: ReadonlySet<string>,
  names: Pick<PublishedNames, 'finding'> | undefined,
): ReadonlyMap<string, Finding> => {
  const found = new Map<string, Finding>();
  for (const rule of plan.rules) {
    const needsName = rule.publish !== undefined && names !== undefined;
    if (rule.service === undefined && !needsName) continue;
    found.set(rule.id, stateOf(caches, serviceKey(plan, rule), rule, foreign, names));
  }
  return found;
};

const stateOf = (
  caches: Caches,
  key: string,
  { name, publish }: RulePlan,
  foreign: ReadonlySet<string>,
  names: Pick<PublishedNames, 'finding'> | undefined,
): Finding => {
  if (foreign.has(key))
    return finding('ServiceNameTaken', `Rule ${name} needs the Service ${key}, which is not of the operator.`);
  if (clusterIps(caches, key).length === 0) return finding('NameNotAnswering', `The Service ${key} is not there yet.`);
  if (publish === undefined || names === undefined)
    return finding('NamesPublished', `Rule ${name} is reached at the Service ${key}.`);
  return names.finding(publish);
};

/** Rules of an object with one name share the first one's Service; hosts of HTTP rules are reached at the Service of the proxy. */
const serviceKey = ({ view, rules }: EgressPlan, rule: RulePlan): string => {
  if (rule.service === undefined || (rule.publish !== undefined && isAtProxy(rule.publish, view))) return view.proxy;
  const first =
    rule.publish === undefined
      ? rule
      : (rules.find(({ publish, service }) => publish === rule.publish && service) ?? rule);
  return `${view.namespace}/${first.service?.name ?? rule.service.name}`;
};

const clusterIps = (caches: Caches, key: string): readonly string[] => {
  const service = findMade(caches, 'services', key) as ServiceObject | undefined;
  return (service?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '');
};
