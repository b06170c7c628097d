/** EgressView from a BCSEgress. Total: what cannot be read is a problem of the rule, or of the object. */
import { BCSEgressSpec, BCSEgressStatus } from '../../api/bcs-egress.ts';
import { type Finding, finding } from '../cluster/finding.ts';
import { compileSelector, nothing } from '../cluster/labels.ts';
import { compareIps, type Ip, parseIp } from '../ip/index.ts';
import { type ApiObject, createdAtMsOf, readSpec, readStatus, type SpecFault } from '../project/api-object.ts';
import { distinctNames, nameFor } from './names.ts';
import type { HostPattern, TcpTarget } from './served.ts';
import type { EgressView, RuleView, SourcesView } from './view.ts';

type Tcp = NonNullable<BCSEgressSpec['tcps']>[number];
type EgressSources = NonNullable<BCSEgressSpec['sources']>;
type Http = NonNullable<BCSEgressSpec['https']>[number];

/** The view of a BCSEgress. `rules.tcp` and `tcps` are one list, and so are `rules.http` and `https`. */
export const projectEgress = (object: ApiObject): EgressView => {
  const { metadata } = object;
  const namespace = metadata.namespace ?? '';
  const key = `${namespace}/${metadata.name}`;
  const who = `BCSEgress ${key}`;
  const { value, faults } = readSpec(BCSEgressSpec, object, who);
  const generation = metadata.generation ?? 0;
  const controller = value?.controller;
  return {
    key,
    namespace,
    name: metadata.name,
    createdAtMs: createdAtMsOf(metadata),
    generation,
    isDeleting: metadata.deletionTimestamp !== undefined,
    isSeen: readStatus(BCSEgressStatus, object)?.observedGeneration === generation,
    proxy: controller === undefined ? '' : `${controller.namespace}/${controller.name}`,
    sources: value?.sources === undefined ? undefined : sourcesOf(value.sources, who),
    rules: value === undefined ? [] : rulesOf(value, faults, who),
    problem: value === undefined ? (faults[0]?.finding ?? finding('SpecInvalid', `${who} cannot be read.`)) : undefined,
  };
};

/** A selector that cannot be read selects nobody. */
const sourcesOf = ({ any, namespaces = [], selector }: EgressSources, who: string): SourcesView => {
  if (any) return { kind: 'any' };
  const compiled = selector === undefined ? undefined : compileSelector(selector, `${who}: sources.selector`);
  return {
    kind: 'namespaces',
    namespaces,
    selector: compiled === undefined ? undefined : compiled.ok ? compiled.value : nothing,
  };
};

const rulesOf = (spec: BCSEgressSpec, faults: readonly SpecFault[], who: string): RuleView[] => {
  const faultAt = (...path: readonly PropertyKey[]): Finding | undefined =>
    faults.find((fault) => path.every((step, index) => fault.path[index] === step))?.finding;
  const tcp = (rules: readonly Tcp[] = [], ...list: readonly string[]) =>
    rules.map((rule, index) => ({
      name: rule.name ?? nameFor('tcp', String(rule.sourceport)),
      viewOf: (name: string) => tcpView(rule, name, faultAt(...list, index), `${who} rule ${name}`),
    }));
  const http = (rules: readonly Http[] = [], ...list: readonly string[]) =>
    rules.map((rule, index) => ({
      name: rule.name ?? nameFor(rule.tls ? 'https' : 'http', hostSubject(rule)),
      viewOf: (name: string) => httpView(rule, name, faultAt(...list, index), `${who} rule ${name}`),
    }));
  const rules = [
    ...tcp(spec.rules?.tcp, 'rules', 'tcp'),
    ...tcp(spec.tcps, 'tcps'),
    ...http(spec.rules?.http, 'rules', 'http'),
    ...http(spec.https, 'https'),
  ];
  const names = distinctNames(rules.map(({ name }) => name));
  return rules.map(({ name, viewOf }, index) => viewOf(names[index] ?? name));
};

const tcpView = (rule: Tcp, name: string, fault: Finding | undefined, who: string): RuleView => {
  const target = fault === undefined ? targetOf(rule) : fault.sentence;
  if (fault !== undefined || typeof target === 'string') {
    return { kind: 'broken', of: 'tcp', name, problem: fault ?? finding('SpecInvalid', `${who}: ${target}.`) };
  }
  const { sourceport, destport, algorithm, idleSeconds } = rule;
  return { kind: 'tcp', name, sourcePort: sourceport, destPort: destport, to: target, algorithm, idleSeconds };
};

const httpView = (rule: Http, name: string, fault: Finding | undefined, who: string): RuleView => {
  if (fault !== undefined) return { kind: 'broken', of: 'http', name, problem: fault };
  const host = hostOf(rule.host);
  if (host === undefined) {
    const problem = finding(
      'SpecInvalid',
      `${who}: host ${JSON.stringify(rule.host)} is neither a name nor an address.`,
    );
    return { kind: 'broken', of: 'http', name, problem };
  }
  return {
    kind: 'http',
    name,
    host,
    isTls: rule.tls,
    destPort: rule.destport ?? usualPort(rule.tls),
    isTransparent: rule.transparent,
  };
};

/** The target, or what is wrong with it. */
const targetOf = ({ ips, domain }: Tcp): TcpTarget | string => {
  const text = (ips ?? domain ?? '').trim();
  if (domain !== undefined || isName(text)) return { kind: 'domain', name: canonicalName(text) };
  const found = new Set<Ip>();
  for (const part of text.split(',')) {
    const ip = parseIp(part.trim());
    if (!ip.ok) return `ips: ${ip.message}`;
    found.add(ip.value);
  }
  // Replicas must agree on which address a hash leads to, so the order of the text does not count.
  return { kind: 'addresses', ips: [...found].toSorted(compareIps) };
};

const hostOf = (text: string): HostPattern | undefined => {
  if (text.startsWith('*.')) return { kind: 'suffix', suffix: canonicalName(text.slice(1)) };
  if (isName(text)) return { kind: 'exact', name: canonicalName(text) };
  const ip = parseIp(text);
  return ip.ok ? { kind: 'address', ip: ip.value } : undefined;
};

// The schema lets only names end with a label that begins with a letter; an address does not.
const isName = (text: string): boolean => /(^|\.)[a-z][-a-z0-9]*\.?$/i.test(text) && !text.includes(':');
const canonicalName = (text: string): string => text.toLowerCase().replace(/\.$/, '');

const usualPort = (isTls: boolean): number => (isTls ? 443 : 80);
const hostSubject = ({ host, destport, tls }: Http): string =>
  destport === undefined || destport === usualPort(tls) ? host : `${host}-${destport}`;
