/** The cluster of the cases, as manifests that kubectl takes; and the AdmissionView of such manifests. */
import { Config } from '../../../api/config.ts';
import {
  type ApiObject,
  type NodeObject,
  projectClusterInfo,
  projectClusterPolicy,
  projectGateway,
  projectNamespace,
  projectNode,
  projectPolicy,
  projectSettings,
} from '../../../core/project/index.ts';
import type { ObjectMeta } from '../../../runtime/kube/resource.ts';
import { PolicyRegister } from '../policy-register.ts';
import { type AdmissionView, clusterPartsOf } from '../view.ts';

/** An object as somebody writes it. */
export interface Manifest extends ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly endpoints?: readonly object[];
}

const apiVersion = 'egressgateway.spidernet.io/v1beta1';

/** An EgressGateway that selects node n1 unless told otherwise. */
export const gateway = (name: string, spec: object, metadata: object = {}): Manifest => ({
  apiVersion,
  kind: 'EgressGateway',
  metadata: { name, ...metadata },
  spec: { nodeSelector: { selector: { matchLabels: { egress: 'true' } } }, ...spec },
});

/** An EgressPolicy (`namespace/name`) or EgressClusterPolicy (`name`) about pods with the label app=<name>. */
export const policy = (key: string, spec: object, status?: object): Manifest => {
  const [name = '', namespace] = key.split('/').toReversed();
  return {
    apiVersion,
    kind: namespace === undefined ? 'EgressClusterPolicy' : 'EgressPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: { appliedTo: { podSelector: { matchLabels: { app: name } } }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
};

const core = (kind: string, name: string, rest: object = {}): Manifest => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...rest,
});

/** The pools of the gateway edge. */
export const edgePools = {
  ipv4: ['10.6.1.1-10.6.1.4'],
  ipv6: ['fd00:6::1-fd00:6::4'],
  ipv4DefaultEIP: '10.6.1.1',
  ipv6DefaultEIP: 'fd00:6::1',
};

/** Everything that is there before a case begins. */
export const usualCluster: readonly Manifest[] = [
  core('Node', 'n1', {
    metadata: { name: 'n1', labels: { egress: 'true' } },
    status: { addresses: [{ type: 'InternalIP', address: '172.18.0.3' }] },
  }),
  core('Namespace', 'shop'),
  core('Namespace', 'team'),
  core('Namespace', 'lost', { metadata: { name: 'lost', labels: { 'spidernet.io/egressgateway-default': 'gone' } } }),
  {
    apiVersion,
    kind: 'EgressClusterInfo',
    metadata: { name: 'default' },
    status: {
      egressIgnoreCIDR: { clusterIP: { ipv4: ['10.96.0.0/16'] }, podCIDR: { ipv4: ['10.244.0.0/16'] } },
    },
  },
  gateway('edge', { clusterDefault: true, ippools: edgePools }),
  gateway('team', { ippools: { ipv4: ['10.6.2.1-10.6.2.2'] }, allowedNamespaces: { names: ['team'] } }),
  gateway('twin', {
    ippools: {
      ipv4: ['10.6.3.1-10.6.3.2'],
      ipv6: ['fd00:63::1-fd00:63::2'],
      ipv4DefaultEIP: '10.6.3.1',
      ipv6DefaultEIP: 'fd00:63::1',
    },
  }),
  gateway('bare', {}),
  policy('shop/web', { egressGatewayName: 'edge' }, { eip: { ipv4: '10.6.1.2', ipv6: 'fd00:6::2' }, node: 'n1' }),
  policy('batch', { egressGatewayName: 'edge' }, { eip: { ipv4: '10.6.1.1', ipv6: 'fd00:6::1' }, node: 'n1' }),
  { apiVersion, kind: 'EgressTunnel', metadata: { name: 'n1' }, status: { mark: '0x26d9b700' } },
];

/** The configuration of the cases: both families, or IPv4 only. */
export const configOf = (families: 'both' | 'ipv4'): Config =>
  Config.parse({ feature: { enableIPv6: families === 'both' } });

/** The same object in a cluster: same kind, namespace and name. */
export const isSameObject = (a: Manifest, b: Manifest): boolean =>
  a.kind === b.kind && a.metadata.namespace === b.metadata.namespace && a.metadata.name === b.metadata.name;

/** What the rules see of a cluster of these manifests. */
export const viewOf = (manifests: readonly Manifest[], config: Config): AdmissionView => {
  const of = (kind: string): readonly Manifest[] => manifests.filter((manifest) => manifest.kind === kind);
  // A parse boundary: the manifests of this file have the shape of a Node.
  const nodes = of('Node').map((manifest) => projectNode(manifest as unknown as NodeObject));
  const namespaces = new Map(of('Namespace').map((manifest) => [manifest.metadata.name, projectNamespace(manifest)]));
  const ranges = projectClusterInfo(of('EgressClusterInfo')[0]);
  const policies = new PolicyRegister();
  for (const manifest of of('EgressPolicy')) policies.put(projectPolicy(manifest));
  for (const manifest of of('EgressClusterPolicy')) policies.put(projectClusterPolicy(manifest));
  return {
    settings: projectSettings(config, ''),
    ranges,
    clusterParts: clusterPartsOf(ranges, nodes),
    nodes,
    gateways: of('EgressGateway').map(projectGateway),
    namespace: (name) => namespaces.get(name),
    policies,
  };
};
