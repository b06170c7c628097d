/**
 * planProxies decides, from all objects at once, which rules are served, by which proxy, and why the others are not. It is
 * the one place where that is decided: the operator tells it, the proxies do it.
 */
import { type Finding, finding } from '../cluster/finding.ts';
import { compareText, hashText } from '../values/hash.ts';
import { publishedName, RuleClaims } from './claims.ts';
import { addressRefusal, forbiddenFor, type InsideAddresses, insideAddresses } from './forbidden.ts';
import { type From, fromOf, unionOf } from './from.ts';
import { limitsOf } from './limits.ts';
import { otherServiceNameOf, ruleId, serviceNameOf } from './names.ts';
import { reservedName } from './reserved-names.ts';
import type { HttpServed, RuleSet, ServedRule, TcpServed } from './served.ts';
import { mayPublish, notAllowed } from './tenants.ts';
import type { EgressView, HttpRuleView, ProxiesView, ProxyView, RuleView, TcpRuleView } from './view.ts';

export interface ProxiesPlan {
  /** By `namespace/name` of the BCSEgressController; also those that are referred to and do not exist. */
  readonly proxies: ReadonlyMap<string, ProxyPlan>;
  /** By `namespace/name` of the BCSEgress; those that are being deleted are not in it. */
  readonly egresses: ReadonlyMap<string, EgressPlan>;
}

export interface ProxyPlan {
  readonly key: string;
  /** Undefined when the object does not exist. */
  readonly view: ProxyView | undefined;
  readonly rules: RuleSet;
  /** Keys of the BCSEgress objects that name this proxy, in order; objects that are being deleted do not count. */
  readonly references: readonly string[];
}

export interface EgressPlan {
  readonly view: EgressView;
  /** A hash of what is to be served of the object, where, and under which names. */
  readonly revision: string;
  /** In the order of the object. */
  readonly rules: readonly RulePlan[];
  /** What the engine of the proxy does not offer to these rules; undefined when nothing is missing. */
  readonly limits: Finding | undefined;
}

export interface RulePlan {
  readonly name: string;
  /** `namespace/egress/rule`. */
  readonly id: string;
  readonly kind: 'tcp' | 'http';
  /** The id of the served rule that does the work: its own, or that of an older rule with the same host; or why there is none. */
  readonly verdict:
    | { readonly ok: true; readonly servedBy: string }
    | { readonly ok: false; readonly finding: Finding };
  /** The name that is to answer in the DNS of the cluster; undefined for rules without one and for refused ones. */
  readonly publish: string | undefined;
  /** Why the rule is served and its name is not published; undefined when it is, or when it has none. */
  readonly withheld: Finding | undefined;
  /** The Service of a TCP rule, in the namespace of the BCSEgress; undefined for other rules and for refused ones. */
  readonly service: RuleService | undefined;
}

export interface RuleService {
  readonly name: string;
  /** The rule's own port first; then those of rules of the same object with the same name, which share its address. */
  readonly ports: readonly number[];
}

/** Plans all proxies. Total and independent of the order of the lists. */
export const planProxies = (view: ProxiesView): ProxiesPlan => {
  const proxyByKey = new Map(view.proxies.filter(({ isDeleting }) => !isDeleting).map((proxy) => [proxy.key, proxy]));
  const egresses = view.egresses.filter(({ isDeleting }) => !isDeleting).toSorted(compareEgressAge);
  const serving = new Serving(view, proxyByKey);
  const plans = egresses.map((egress): EgressPlan => {
    const rules = serving.plan(egress);
    const revision = revisionOf(JSON.stringify([egress.proxy, egress.rules, rules]));
    return { view: egress, revision, rules, limits: limitsOf(egress, proxyByKey.get(egress.proxy)) };
  });
  const keys = new Set([...proxyByKey.keys(), ...egresses.map(({ proxy }) => proxy).filter((key) => key !== '')]);
  const proxies = [...keys].toSorted(compareText).map((key): [string, ProxyPlan] => {
    const proxy = proxyByKey.get(key);
    const references = egresses.filter((egress) => egress.proxy === key).map((egress) => egress.key);
    const rules = proxy === undefined ? ruleSetOf(key, [], []) : serving.ruleSet(proxy);
    return [key, { key, view: proxy, rules, references: references.toSorted(compareText) }];
  });
  const inOrder = plans.toSorted((a, b) => compareText(a.view.key, b.view.key));
  return { proxies: new Map(proxies), egresses: new Map(inOrder.map((plan) => [plan.view.key, plan])) };
};

/** The oldest first, then by key: the order in which objects have a right to ports and names. */
export const compareEgressAge = (a: EgressView, b: EgressView): number =>
  a.createdAtMs - b.createdAtMs || compareText(a.key, b.key);

/** Rules as they are taken in, object by object in the order of age. */
class Serving {
  readonly #view: ProxiesView;
  readonly #proxyByKey: ReadonlyMap<string, ProxyView>;
  readonly #claims = new RuleClaims();
  readonly #servedByProxy = new Map<string, ServedRule[]>();
  /** Id of the rule that serves a host and port of a proxy. */
  readonly #hosts = new Map<string, string>();
  readonly #serviceNames = new Set<string>();
  readonly #insideByProxy = new Map<string, InsideAddresses>();

  constructor(view: ProxiesView, proxyByKey: ReadonlyMap<string, ProxyView>) {
    this.#view = view;
    this.#proxyByKey = proxyByKey;
  }

  plan(egress: EgressView): RulePlan[] {
    const proxy = this.#proxyByKey.get(egress.proxy);
    const from = proxy === undefined ? [] : fromOf(egress, proxy, this.#view.namespaces);
    const rules = egress.rules.map((rule): RulePlan => {
      const id = ruleId(egress.key, rule.name);
      const kind = rule.kind === 'broken' ? rule.of : rule.kind;
      const refusal = this.#refusal(egress, rule);
      if (refusal !== undefined || rule.kind === 'broken') {
        const why = refusal ?? finding('SpecInvalid', `Rule ${rule.name} cannot be read.`);
        return {
          name: rule.name,
          id,
          kind,
          verdict: { ok: false, finding: why },
          publish: undefined,
          withheld: undefined,
          service: undefined,
        };
      }
      const withheld = this.#withheld(egress, rule);
      return {
        name: rule.name,
        id,
        kind,
        verdict: { ok: true, servedBy: this.#serve(egress.proxy, rule, id, from) },
        publish: withheld === undefined ? publishedName(rule) : undefined,
        withheld,
        service: rule.kind === 'tcp' ? { name: this.#serviceName(egress, rule), ports: [rule.sourcePort] } : undefined,
      };
    });
    return withSharedPorts(rules);
  }

  ruleSet({ key, allowedRanges }: ProxyView): RuleSet {
    const rules = (this.#servedByProxy.get(key) ?? []).toSorted((a, b) => compareText(a.id, b.id));
    return ruleSetOf(key, rules, forbiddenFor(this.#view.ranges, allowedRanges));
  }

  #refusal(egress: EgressView, rule: RuleView): Finding | undefined {
    if (rule.kind === 'broken') return rule.problem;
    const proxy = this.#proxyByKey.get(egress.proxy);
    if (proxy === undefined) return finding('ProxyNotFound', `There is no BCSEgressController ${egress.proxy}.`);
    const { namespace } = egress;
    const what = notAllowed(rule, proxy, namespace, this.#view.namespaces.get(namespace) ?? {});
    if (what !== undefined) {
      return finding(
        'ClaimNotAllowed',
        `The proxy ${proxy.key} does not let rule ${rule.name} of namespace ${namespace} ${what}.`,
      );
    }
    const reserved = reservedName(rule, this.#view.reservedNames);
    if (reserved !== undefined) {
      return finding('NameReserved', `Rule ${rule.name} is about ${reserved}, which is a name of the cluster itself.`);
    }
    const withheld = this.#withheld(egress, rule);
    // A transparent rule is nothing without its name; a TCP rule still has its Service.
    if (withheld !== undefined && rule.kind === 'http') return withheld;
    return (
      addressRefusal(rule, this.#insideOf(proxy)) ??
      this.#claims.take(egress, rule, withheld === undefined ? publishedName(rule) : undefined)
    );
  }

  /** Why the proxy does not let the rule publish its name; undefined when it does, or when the rule has none. */
  #withheld({ proxy }: EgressView, rule: TcpRuleView | HttpRuleView): Finding | undefined {
    const name = publishedName(rule);
    const view = this.#proxyByKey.get(proxy);
    return name === undefined || view === undefined || mayPublish(name, view)
      ? undefined
      : finding('NameNotAllowed', `The proxy ${proxy} does not publish ${name} for rule ${rule.name}.`);
  }

  #insideOf(proxy: ProxyView): InsideAddresses {
    const known = this.#insideByProxy.get(proxy.key) ?? insideAddresses(this.#view.ranges, proxy.allowedRanges);
    this.#insideByProxy.set(proxy.key, known);
    return known;
  }

  /** Returns the id of the rule that serves: an older one has the same host already, or this one does from now on. */
  #serve(proxy: string, rule: TcpRuleView | HttpRuleView, id: string, from: From): string {
    const served = withFrom(rule.kind === 'tcp' ? tcpServed(rule, id) : httpServed(rule, id), from);
    const list = this.#servedByProxy.get(proxy) ?? [];
    this.#servedByProxy.set(proxy, list);
    if (served.kind === 'http') {
      const key = JSON.stringify([proxy, served.host, served.isTls, served.destPort]);
      const older = this.#hosts.get(key);
      if (older !== undefined) {
        // It serves the clients of both from now on.
        const index = list.findIndex((one) => one.id === older);
        const found = list[index];
        if (found !== undefined) list[index] = withFrom(found, unionOf(found.from, from));
        return older;
      }
      this.#hosts.set(key, id);
    }
    list.push(served);
    return id;
  }

  // `a` with rule `b-c` and `a-b` with rule `c` would both be a-b-c.
  #serviceName({ namespace, name }: EgressView, rule: TcpRuleView): string {
    const plain = serviceNameOf(name, rule.name);
    const chosen = this.#serviceNames.has(`${namespace}/${plain}`) ? otherServiceNameOf(name, rule.name) : plain;
    this.#serviceNames.add(`${namespace}/${chosen}`);
    return chosen;
  }
}

/** A name has one address, so the first of several rules of an object with the same name carries the ports of all. */
const withSharedPorts = (rules: readonly RulePlan[]): RulePlan[] => {
  const named = rules.filter(({ service, publish }) => service !== undefined && publish !== undefined);
  const byName = Map.groupBy(named, ({ publish }) => publish);
  return rules.map((rule) => {
    const { service, publish } = rule;
    const same = byName.get(publish) ?? [];
    if (service === undefined || same[0] !== rule || same.length === 1) return rule;
    return { ...rule, service: { ...service, ports: same.flatMap((other) => other.service?.ports ?? []) } };
  });
};

const tcpServed = (rule: TcpRuleView, id: string): TcpServed => {
  const { sourcePort, destPort, to, algorithm, idleSeconds } = rule;
  return { kind: 'tcp', id, listenPort: sourcePort, destPort, to, algorithm, idleSeconds };
};

const httpServed = ({ host, isTls, destPort }: HttpRuleView, id: string): HttpServed => ({
  kind: 'http',
  id,
  host,
  isTls,
  destPort,
});

const withFrom = <T extends ServedRule>({ from: _, ...rule }: T, from: From): T =>
  // What is left is the rule without the field that is set here.
  ({ ...rule, ...(from === undefined ? {} : { from }) }) as T;

/** A rule set with its revision: what was written down can be told from what was changed since. */
export const ruleSetOf = (name: string, rules: readonly ServedRule[], forbidden: readonly string[]): RuleSet => ({
  revision: revisionOf(JSON.stringify([name, rules, forbidden])),
  name,
  rules,
  forbidden,
});

// Four hashes with different beginnings: 32 bits would meet by chance sooner or later, 128 will not.
const revisionOf = (text: string): string =>
  ['a', 'b', 'c', 'd'].map((seed) => hashText(`${seed}${text}`).toString(16).padStart(8, '0')).join('');
