/** What a proxy is made of, from its plan. Everything has the name of its BCSEgressController. */
import { resourceOf } from '../../api/kinds.ts';
import { labels } from '../../api/names.ts';
import { servicePorts } from '../../core/proxy/claims.ts';
import type { ProxyPlan } from '../../core/proxy/plan.ts';
import { proxyPorts } from '../../core/proxy/served.ts';
import type { ProxyView } from '../../core/proxy/view.ts';
import { labelText, metadataFor, type Owner, type Wanted } from './kind.ts';
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
export const proxyObjects = (plan: ProxyPlan, view: ProxyView, uid: string, settings: ProxySettings): Wanted[] => {
  const { name, namespace, run } = view;
  const owner: Owner = { resource: resourceOf('BCSEgressController'), name, namespace, uid };
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
): Wanted => {
  const owner: Owner = { resource: resourceOf('BCSEgressController'), name, namespace, uid };
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

/** Everybody may use the rules; reports are for the operator, because they name the destinations of all tenants. */
const networkPolicySpec = (
  { rules }: ProxyPlan,
  marks: Readonly<Record<string, string>>,
  { operatorNamespace }: ProxySettings,
): object => {
  const ofRules = rules.rules.flatMap((rule) => (rule.kind === 'tcp' ? [rule.listenPort] : []));
  const ports = [...ofRules, proxyPorts.http, proxyPorts.tls].toSorted((a, b) => a - b);
  return {
    podSelector: { matchLabels: marks },
    policyTypes: ['Ingress'],
    ingress: [
      { ports: ports.map((port) => ({ protocol: 'TCP', port })) },
      {
        from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } } }],
        ports: [{ protocol: 'TCP', port: proxyPorts.report }],
      },
    ],
  };
};
