/** Publication: the addresses under which rules are reached, and whether each of them is there. */
import { type Finding, finding } from '../core/cluster/finding.ts';
import { leadsToProxy } from '../core/proxy/claims.ts';
import type { EgressPlan, ProxiesPlan, RulePlan } from '../core/proxy/plan.ts';
import type { KubeObject } from '../runtime/kube/resource.ts';
import type { HostEntries } from './dns/corefile.ts';
import type { PublishedNames } from './dns/names.ts';
import { findMade, type OperatorCaches } from './inputs/caches.ts';

interface ServiceObject extends KubeObject {
  readonly spec?: {
    readonly clusterIPs?: readonly string[];
    readonly selector?: Readonly<Record<string, string>>;
    readonly type?: string;
  };
}

/** Names of served rules, which are to be in the DNS of the cluster, with the addresses of the Services that exist. */
export const hostEntries = (
  caches: OperatorCaches,
  { egresses }: ProxiesPlan,
  servedIds: ReadonlySet<string>,
): HostEntries => {
  const entries = new Map<string, readonly string[]>();
  for (const plan of egresses.values()) {
    for (const rule of plan.rules) {
      if (rule.publish === undefined || entries.has(rule.publish) || !servedIds.has(rule.id)) continue;
      const key = leadKey(plan, rule);
      if (key !== plan.view.proxy && isLedAway(caches, key)) continue;
      const ips = clusterIps(caches, key);
      if (ips.length > 0) entries.set(rule.publish, ips);
    }
  }
  return entries;
};

/** How the Services and names of an object stand, by the id of the rule. `foreign` are keys of Services that are not ours. */
export const publishedOf = (
  caches: OperatorCaches,
  plan: EgressPlan,
  foreign: ReadonlySet<string>,
  names: Pick<PublishedNames, 'finding'> | undefined,
): ReadonlyMap<string, Finding> => {
  const found = new Map<string, Finding>();
  for (const rule of plan.rules) {
    const needsName = rule.publish !== undefined && names !== undefined;
    if (rule.service === undefined && !needsName) continue;
    found.set(rule.id, stateOf(caches, plan, rule, foreign, names));
  }
  return found;
};

const stateOf = (
  caches: OperatorCaches,
  plan: EgressPlan,
  rule: RulePlan,
  foreign: ReadonlySet<string>,
  names: Pick<PublishedNames, 'finding'> | undefined,
): Finding => {
  const { name, publish, service } = rule;
  const own = service === undefined ? undefined : ownKey(plan, rule);
  const isNamed = publish !== undefined && names !== undefined;
  if (own !== undefined && foreign.has(own)) {
    return finding('ServiceNameTaken', `Rule ${name} needs the Service ${own}, which is not of the operator.`);
  }
  if (own !== undefined && isLedAway(caches, own)) {
    const what = `Somebody has changed where the Service ${own} leads, so it is not that of rule ${name} any more.`;
    return finding('ServiceNameTaken', what);
  }
  const needed = [...(own === undefined ? [] : [own]), ...(isNamed ? [leadKey(plan, rule)] : [])];
  const missing = needed.find((key) => clusterIps(caches, key).length === 0);
  if (missing !== undefined) return finding('NameNotAnswering', `The Service ${missing} is not there yet.`);
  return isNamed ? names.finding(publish) : finding('NamesPublished', `Rule ${name} is reached at the Service ${own}.`);
};

/** Where the name of a rule leads. */
const leadKey = (plan: EgressPlan, rule: RulePlan): string =>
  rule.service === undefined || (rule.publish !== undefined && leadsToProxy(rule.publish, plan.view))
    ? plan.view.proxy
    : ownKey(plan, rule);

/** The Service of a TCP rule; rules of an object with one name share the first one's. */
const ownKey = ({ view, rules }: EgressPlan, rule: RulePlan): string => {
  const first =
    rule.publish === undefined
      ? rule
      : (rules.find(({ publish, service }) => publish === rule.publish && service) ?? rule);
  return `${view.namespace}/${first.service?.name ?? rule.service?.name}`;
};

/** The Service of a rule has no selector: one that was given to it would lead the clients of the rule to other pods. */
const isLedAway = (caches: OperatorCaches, key: string): boolean => {
  const { selector = {}, type = 'ClusterIP' } = serviceAt(caches, key)?.spec ?? {};
  return Object.keys(selector).length > 0 || type === 'ExternalName';
};

const clusterIps = (caches: OperatorCaches, key: string): readonly string[] =>
  (serviceAt(caches, key)?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '');

const serviceAt = (caches: OperatorCaches, key: string): ServiceObject | undefined =>
  findMade(caches, 'services', key) as ServiceObject | undefined;
