/** Short forms of the objects of the egress proxy, for tests. Not shipped. */
import type { ProxyReport } from '../../api/proxy-report.ts';
import type { ClusterRanges } from '../cluster/view.ts';
import type { ApiObject } from '../project/index.ts';
import { projectClusterInfo } from '../project/index.ts';
import { type ProxiesPlan, planProxies } from '../proxy/plan.ts';
import { projectEgress } from '../proxy/project.ts';
import { projectProxy } from '../proxy/project-proxy.ts';
import type { ProxiesView } from '../proxy/view.ts';
import { timeAt } from './objects.ts';

export interface EgressShape {
  readonly at?: number;
  readonly generation?: number;
  readonly seen?: number;
  readonly isDeleting?: boolean;
  readonly controller?: object;
  readonly tcp?: readonly object[];
  readonly http?: readonly object[];
  readonly sources?: object;
  readonly spec?: object;
}

/** A BCSEgress by `namespace/name`; the operator has seen it unless told otherwise. */
export const egressObject = (key: string, shape: EgressShape = {}): ApiObject => {
  const [namespace = '', name = ''] = key.split('/');
  const {
    at = 0,
    generation = 1,
    seen = generation,
    isDeleting = false,
    controller,
    tcp = [],
    http = [],
    sources,
    spec,
  } = shape;
  return {
    metadata: {
      name,
      namespace,
      generation,
      creationTimestamp: timeAt(at),
      ...(isDeleting ? { deletionTimestamp: timeAt(at + 1) } : {}),
    },
    spec: spec ?? {
      ...(controller === undefined ? {} : { controller }),
      ...(sources === undefined ? {} : { sources }),
      rules: { tcp, http },
    },
    status: { observedGeneration: seen },
  };
};

/** A BCSEgressController by `namespace/name`. */
export const proxyObject = (key = 'bcs-system/egress-controller', spec: object = {}): ApiObject => {
  const [namespace = '', name = ''] = key.split('/');
  return { metadata: { name, namespace, generation: 1, creationTimestamp: timeAt(0) }, spec };
};

export interface ProxiesShape {
  readonly egresses?: readonly ApiObject[];
  readonly proxies?: readonly ApiObject[];
  readonly labels?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly reservedNames?: readonly string[];
  readonly ranges?: ClusterRanges;
}

const usualRanges = projectClusterInfo({
  metadata: { name: 'default' },
  status: {
    egressIgnoreCIDR: {
      clusterIP: { ipv4: ['10.96.0.0/12'] },
      podCIDR: { ipv4: ['10.244.0.0/16'] },
      nodeIP: { ipv4: ['10.77.0.11'] },
      apiServer: { ipv4: ['192.0.2.10'] },
    },
  },
});

/** The view of objects; without proxies there is the default one. The cluster has 10.96.0.0/12 and 10.244.0.0/16. */
export const proxiesView = ({
  egresses = [],
  proxies = [proxyObject()],
  labels = {},
  reservedNames = ['cluster.local'],
  ranges = usualRanges,
}: ProxiesShape): ProxiesView => ({
  egresses: egresses.map(projectEgress),
  proxies: proxies.map(projectProxy),
  namespaces: new Map(Object.entries(labels)),
  ranges,
  reservedNames,
});

/** The plan of objects. */
export const planOf = (shape: ProxiesShape): ProxiesPlan => planProxies(proxiesView(shape));

/** A report of a replica that serves all that the plan gives the proxy. */
export const reportOf = ({ proxies, egresses }: ProxiesPlan, key = 'bcs-system/egress-controller'): ProxyReport => {
  const plan = proxies.get(key);
  return {
    engine: 'envoy',
    revision: plan?.rules.revision ?? '',
    egresses: Object.fromEntries(
      (plan?.references ?? []).map((reference) => [reference, egresses.get(reference)?.view.generation ?? 0]),
    ),
    rules: (plan?.rules.rules ?? []).map(({ id }) => ({
      id,
      state: 'live',
      actives: 1,
      connections: 1,
      bytesSent: 0,
      bytesReceived: 0,
      addresses: [],
    })),
    refused: {},
  };
};
