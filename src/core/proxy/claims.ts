/**
 * Claims: what only one can have. A source port belongs to one rule of a proxy, a public name to one destination in the
 * whole cluster, because the DNS of the cluster answers with one address. Whoever asks first has it, so rules must come in
 * the order of age.
 */
import { type Finding, finding } from '../cluster/finding.ts';
import { proxyPorts, reservedPorts } from './served.ts';
import type { EgressView, HttpRuleView, TcpRuleView } from './view.ts';

interface RuleHolder {
  /** Rules with the same one may share: they lead to the same address. */
  readonly place: string;
  readonly who: string;
}

/** The name that a rule puts into the DNS of the cluster; undefined when it has none. */
export const publishedName = (rule: TcpRuleView | HttpRuleView): string | undefined => {
  if (rule.kind === 'tcp') return rule.to.kind === 'domain' ? rule.to.name : undefined;
  return rule.isTransparent && rule.host.kind === 'exact' ? rule.host.name : undefined;
};

export class RuleClaims {
  readonly #ports = new Map<string, string>();
  readonly #names = new Map<string, RuleHolder>();

  /**
   * Takes what the rule needs; undefined when it has it all, else why not, and then it has taken nothing. `name` is what it
   * puts into the DNS of the cluster.
   */
  take(egress: EgressView, rule: TcpRuleView | HttpRuleView, name: string | undefined): Finding | undefined {
    const who = `rule ${rule.name} of BCSEgress ${egress.key}`;
    const portKey = rule.kind === 'tcp' ? `${egress.proxy} ${rule.sourcePort}` : undefined;
    const refusal =
      this.#portRefusal(egress, rule, portKey) ?? (name === undefined ? undefined : this.#nameRefusal(egress, name));
    if (refusal !== undefined) return refusal;
    if (portKey !== undefined) this.#ports.set(portKey, who);
    if (name !== undefined && !this.#names.has(name)) this.#names.set(name, { place: placeOf(egress, name), who });
    return undefined;
  }

  #portRefusal(egress: EgressView, rule: TcpRuleView | HttpRuleView, portKey: string | undefined): Finding | undefined {
    if (rule.kind !== 'tcp' || portKey === undefined) return undefined;
    const { sourcePort } = rule;
    if (sourcePort >= reservedPorts.first && sourcePort <= reservedPorts.last) {
      const range = `${reservedPorts.first} to ${reservedPorts.last}`;
      return finding('PortReserved', `Rule ${rule.name} asks for port ${sourcePort}; the proxy needs ${range} itself.`);
    }
    const holder = this.#ports.get(portKey);
    return holder === undefined
      ? undefined
      : finding(
          'SourcePortTaken',
          `Port ${sourcePort} of the proxy ${egress.proxy} belongs to ${holder}, which is older.`,
        );
  }

  #nameRefusal(egress: EgressView, name: string): Finding | undefined {
    const holder = this.#names.get(name);
    return holder === undefined || holder.place === placeOf(egress, name)
      ? undefined
      : finding('DomainTaken', `The name ${name} belongs to ${holder.who}, which is older.`);
  }
}

/**
 * Names of TCP rules lead to the Service of their object, those of HTTP rules to the Service of the proxy. That one has the
 * ports of all TCP rules too, so a host with rules of both kinds in one object leads there.
 */
export const isAtProxy = (name: string, { rules }: Pick<EgressView, 'rules'>): boolean =>
  rules.some((rule) => rule.kind === 'http' && publishedName(rule) === name);

/**
 * Whether a name answers with the Service of the proxy. That one is in a namespace where no tenant can change where it leads; the
 * Service of a rule is in the tenant's own, and a name is for the whole cluster. It has the ports of all TCP rules but those that it
 * needs itself.
 */
export const leadsToProxy = (name: string, view: Pick<EgressView, 'rules'>): boolean =>
  isAtProxy(name, view) ||
  !view.rules.some((rule) => rule.kind === 'tcp' && usualPorts.has(rule.sourcePort) && publishedName(rule) === name);

const placeOf = (egress: EgressView, name: string): string =>
  isAtProxy(name, egress) ? `proxy ${egress.proxy}` : `rules of ${egress.key}`;

/** Ports of the Service of a proxy that are not of a rule, with the port of the pod behind them. */
export const servicePorts: readonly { readonly name: string; readonly port: number; readonly targetPort: number }[] = [
  { name: 'http', port: 80, targetPort: proxyPorts.http },
  { name: 'http-alt', port: 3128, targetPort: proxyPorts.http },
  { name: 'tls', port: 443, targetPort: proxyPorts.tls },
];
const usualPorts: ReadonlySet<number> = new Set(servicePorts.map(({ port }) => port));
