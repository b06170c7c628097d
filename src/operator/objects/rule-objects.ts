/**
 * The Service of a TCP rule, in the namespace of its BCSEgress. It has no selector, because a Service selects pods of its
 * own namespace only: its EndpointSlices name the ready pods of the proxy.
 */
import { resourceOf } from '../../api/kinds.ts';
import { labels, operatorName } from '../../api/names.ts';
import { type Ip, isIpv4, isIpv6 } from '../../core/ip/index.ts';
import type { RulePlan, RuleService } from '../../core/proxy/plan.ts';
import { type DesiredObject, labelText, metadataFor, type ObjectOwner, sliceManager } from './kind.ts';

/** A pod that serves. */
export interface ServingPod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly ips: readonly Ip[];
  readonly node: string | undefined;
}

/** The objects of all rules of a BCSEgress. */
export const ruleObjects = (
  egress: { readonly namespace: string; readonly name: string; readonly uid: string },
  rules: readonly RulePlan[],
  pods: readonly ServingPod[],
): DesiredObject[] => {
  const owner: ObjectOwner = { resource: resourceOf('BCSEgress'), ...egress };
  return rules.flatMap(({ service }) =>
    service === undefined
      ? []
      : [serviceOf(service, owner), ...sliceOf(service, owner, 'IPv4', pods), ...sliceOf(service, owner, 'IPv6', pods)],
  );
};

const marksOf = ({ name }: ObjectOwner): Readonly<Record<string, string>> => ({ [labels.egress]: labelText(name) });

const serviceOf = ({ name, ports }: RuleService, owner: ObjectOwner): DesiredObject => ({
  kind: 'services',
  object: {
    metadata: metadataFor(name, owner, marksOf(owner)),
    spec: {
      ipFamilyPolicy: 'PreferDualStack',
      ports: ports.map((port) => ({ name: portName(port), protocol: 'TCP', port, targetPort: port })),
    },
  },
});

/** One slice per family that pods have: with a thousand rules an empty one for each is a third of all writes. */
const sliceOf = (
  { name, ports }: RuleService,
  owner: ObjectOwner,
  addressType: 'IPv4' | 'IPv6',
  pods: readonly ServingPod[],
): DesiredObject[] => {
  const isOfFamily = addressType === 'IPv4' ? isIpv4 : isIpv6;
  const endpoints = pods.flatMap((pod) => {
    const [ip] = pod.ips.filter(isOfFamily);
    return ip === undefined ? [] : [endpointOf(pod, ip)];
  });
  if (endpoints.length === 0) return [];
  const object = {
    ...sliceFrame(name, owner, addressType),
    addressType,
    endpoints,
    ports: ports.map((port) => ({ name: portName(port), protocol: 'TCP', port })),
  } as DesiredObject['object'];
  return [{ kind: 'endpointSlices', object }];
};

const sliceFrame = (service: string, owner: ObjectOwner, addressType: string) => ({
  metadata: metadataFor(`${service}-${addressType.toLowerCase()}`, owner, {
    ...marksOf(owner),
    'kubernetes.io/service-name': service,
    // Says that it is not for the control plane of Kubernetes to tidy up.
    [sliceManager]: operatorName,
  }),
});

const endpointOf = ({ name, namespace, uid, node }: ServingPod, ip: Ip): object => ({
  addresses: [ip],
  conditions: { ready: true },
  ...(node === undefined ? {} : { nodeName: node }),
  targetRef: { kind: 'Pod', name, namespace, uid },
});

const portName = (port: number): string => `rule-${port}`;
