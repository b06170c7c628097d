/** What a proxy is made of, from its plan. Everything has the name of its BCSEgressController. */
import { resourceOf } from '../../api/kinds.ts';
import { labels } from '../../api/names.ts';
import { servicePorts } from '../../core/proxy/claims.ts';
import { type From, unionOf } from '../../core/proxy/from.ts';
import type { ProxyPlan } from '../../core/proxy/plan.ts';
import { proxyPorts, type ServedRule } from '../../core/proxy/served.ts';
import type { ProxyView } from '../../core/proxy/view.ts';
import { type DesiredObject, labelText, metadataFor, type ObjectOwner } from './kind.ts';
import { type PodSettings, podSpec } from './pod.ts';

/** What the objects of a proxy are made from besides its plan. */
export interface ProxySettings extends PodSettings {
  /** Where the operator runs: from there alone the reports of replicas are asked for. */
  readonly operatorNamespace: string;
}

/** Labels that the pods of a proxy have, and no other pods of the namespace. */
export const podMarks = (name: string): Readonly<Record<string, string>> => ({
  'app.kubernetes.io/name': 'sallyport-proxy',
  [labels.proxy]: labelText(name),
});

/** The objects of a proxy that we run. Replicas are not among the fields: the autoscaler decides on them. */
export const proxyObjects = (
  plan: ProxyPlan,
  view: ProxyView,
  uid: string,
  settings: ProxySettings,
): DesiredObject[] => {
  const { name, namespace, run } = view;
  const owner: ObjectOwner = { resource: resourceOf('BCSEgressController'), name, namespace, uid };
  const marks = podMarks(name);
  const metadata = metadataFor(name, owner, marks);
  const of = { apiVersion: 'apps/v1', kind: 'Deployment', name };
  return [
    {
      kind: 'deployments',
      object: {
        metadata,
        spec: {
          selector: { matchLabels: marks },
          // A replica is replaced when another one has the rules live.
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
          template: { metadata: { labels: marks }, spec: podSpec(view, marks, settings) },
        },
      },
    },
    proxyService(plan, view, uid, marks),
    {
      kind: 'autoscalers',
      object: {
        metadata,
        spec: {
          scaleTargetRef: of,
          minReplicas: run.minReplicas,
          maxReplicas: run.maxReplicas,
          metrics: [
            utilization('cpu', run.CPUPercentage),
            utilization('memory', run.MEMPercentage ?? run.MemPercentage),
          ],
        },
      },
    },
    {
      kind: 'disruptionBudgets',
      object: { metadata, spec: { maxUnavailable: 1, selector: { matchLabels: marks } } },
    },
    { kind: 'networkPolicies', object: { metadata, spec: networkPolicySpec(plan, marks, settings) } },
  ];
};

/** The Service of a proxy; `selector` is that of its Deployment, which may be somebody else's. */
export const proxyService = (
  { rules }: ProxyPlan,
  { name, namespace }: ProxyView,
  uid: string,
  selector: Readonly<Record<string, string>>,
): DesiredObject => {
  const owner: ObjectOwner = { resource: resourceOf('BCSEgressController'), name, namespace, uid };
  const usual = new Set(servicePorts.map(({ port }) => port));
  const ofRules = rules.rules.flatMap((rule) =>
    rule.kind === 'tcp' && !usual.has(rule.listenPort) ? [rule.listenPort] : [],
  );
  return {
    kind: 'services',
    object: {
      metadata: metadataFor(name, owner, podMarks(name)),
      spec: {
        ipFamilyPolicy: 'PreferDualStack',
        selector,
        ports: [
          ...servicePorts.map(({ name: portName, port, targetPort }) => ({
            name: portName,
            protocol: 'TCP',
            port,
            targetPort,
          })),
          ...ofRules
            .toSorted((a, b) => a - b)
            .map((port) => ({ name: `rule-${port}`, protocol: 'TCP', port, targetPort: port })),
        ],
      },
    },
  };
};

const utilization = (name: string, averageUtilization: number): object => ({
  type: 'Resource',
  resource: { name, target: { type: 'Utilization', averageUtilization } },
});

/**
 * Whoever may use a rule reaches its port, and nobody else; the port of the HTTP proxy is for all who may use any HTTP rule. Reports
 * are for the operator, because they name the destinations of all tenants.
 */
const networkPolicySpec = (
  { rules }: ProxyPlan,
  marks: Readonly<Record<string, string>>,
  { operatorNamespace }: ProxySettings,
): object => {
  return {
    podSelector: { matchLabels: marks },
    policyTypes: ['Ingress'],
    ingress: [
      ...doors(rules.rules),
      {
        from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } } }],
        ports: [{ protocol: 'TCP', port: proxyPorts.report }],
      },
    ],
  };
};

/** Ports by whom they are for. */
const doors = (rules: readonly ServedRule[]): object[] => {
  const fromByPort = new Map<number, From>();
  for (const rule of rules) {
    for (const port of rule.kind === 'tcp' ? [rule.listenPort] : [proxyPorts.http, proxyPorts.tls]) {
      fromByPort.set(port, fromByPort.has(port) ? unionOf(fromByPort.get(port), rule.from) : rule.from);
    }
  }
  const portsByFrom = Map.groupBy(
    [...fromByPort].toSorted(([a], [b]) => a - b),
    ([, from]) => JSON.stringify(from ?? null),
  );
  return [...portsByFrom.values()].map((same) => {
    const ports = same.map(([port]) => ({ protocol: 'TCP', port }));
    const from = same[0]?.[1];
    return from === undefined ? { ports } : { from: [{ namespaceSelector: namedAny(from) }], ports };
  });
};

const namedAny = (names: readonly string[]): object => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [...names] }],
});
