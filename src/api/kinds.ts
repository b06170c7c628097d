/** The table of all kinds: what the CRDs, the client, the webhooks and the reference pages know about each of them. */
import type { z } from 'zod';
import { BCSEgress } from './bcs-egress.ts';
import { BCSEgressController } from './bcs-egress-controller.ts';
import { EgressClusterInfo } from './egress-cluster-info.ts';
import { EgressClusterPolicy } from './egress-cluster-policy.ts';
import { EgressClusterEndpointSlice, EgressEndpointSlice } from './egress-endpoint-slice.ts';
import { EgressGateway } from './egress-gateway.ts';
import { EgressPolicy } from './egress-policy.ts';
import { EgressTunnel } from './egress-tunnel.ts';
import type { Immutable } from './immutable.ts';
import { gatewayGroup, proxyGroup } from './object-meta.ts';

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  /** Columns above 0 are shown with `-o wide` only. */
  readonly priority?: number;
}

/** One row of the table. */
export interface KindDescription {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly shortNames: readonly string[];
  /** The kind's own category, as existing scripts use it; every kind is in the category `sallyport` too. */
  readonly category: string;
  readonly columns: readonly PrinterColumn[];
  readonly schema: z.ZodType;
}

/** The address of a kind on the API server. `group` is empty for the core group. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const text = (name: string, jsonPath: string, description: string): PrinterColumn => ({
  name,
  type: 'string',
  jsonPath,
  description,
});
const count = (name: string, jsonPath: string, description: string): PrinterColumn => ({
  ...text(name, jsonPath, description),
  type: 'integer',
});
const age: PrinterColumn = {
  name: 'age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the object was made.',
};
const condition = (type: string) =>
  text(type.toLowerCase(), `.status.conditions[?(@.type=="${type}")].status`, `Status of the condition ${type}.`);

const policyColumns = (nodeColumn: string) => [
  text('gateway', '.spec.egressGatewayName', 'Gateway that the policy names.'),
  text('ipv4', '.status.eip.ipv4', 'IPv4 EIP.'),
  text('ipv6', '.status.eip.ipv6', 'IPv6 EIP.'),
  text(nodeColumn, '.status.node', 'Gateway node that carries the EIP.'),
  condition('Programmed'),
  age,
];

/** Every kind by its name. Names of columns that earlier versions had are theirs. */
export const kinds = {
  EgressGateway: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egressgateways',
    scope: 'Cluster',
    shortNames: ['egw'],
    category: 'egressgateway',
    columns: [
      text('ipv4DefaultEIP', '.spec.ippools.ipv4DefaultEIP', 'Default IPv4 EIP.'),
      text('ipv6DefaultEIP', '.spec.ippools.ipv6DefaultEIP', 'Default IPv6 EIP.'),
      {
        ...text('clusterDefault', '.spec.clusterDefault', 'Whether policies without a gateway use this one.'),
        type: 'boolean',
      },
      count('ipv4Total', '.status.ipUsage.ipv4Total', 'Addresses in the IPv4 pool.'),
      count('ipv4Free', '.status.ipUsage.ipv4Free', 'Unused addresses in the IPv4 pool.'),
      count('ipv6Total', '.status.ipUsage.ipv6Total', 'Addresses in the IPv6 pool.'),
      count('ipv6Free', '.status.ipUsage.ipv6Free', 'Unused addresses in the IPv6 pool.'),
      condition('Ready'),
      age,
    ],
    schema: EgressGateway,
  },
  EgressPolicy: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egresspolicies',
    scope: 'Namespaced',
    shortNames: ['egp'],
    category: 'egresspolicy',
    columns: policyColumns('egressNode'),
    schema: EgressPolicy,
  },
  EgressClusterPolicy: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egressclusterpolicies',
    scope: 'Cluster',
    shortNames: ['egcp'],
    category: 'egressclusterpolicy',
    columns: policyColumns('egressTunnel'),
    schema: EgressClusterPolicy,
  },
  EgressTunnel: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egresstunnels',
    scope: 'Cluster',
    shortNames: ['egt'],
    category: 'egresstunnel',
    columns: [
      text('tunnelMac', '.status.tunnel.mac', 'MAC address of the tunnel device.'),
      text('tunnelIPv4', '.status.tunnel.ipv4', 'IPv4 address inside the tunnel network.'),
      text('tunnelIPv6', '.status.tunnel.ipv6', 'IPv6 address inside the tunnel network.'),
      text('mark', '.status.mark', 'Packet mark of the node.'),
      text('phase', '.status.phase', 'Phase of the tunnel.'),
      age,
    ],
    schema: EgressTunnel,
  },
  EgressEndpointSlice: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egressendpointslices',
    scope: 'Namespaced',
    shortNames: ['egep'],
    category: 'egressendpointslice',
    columns: [],
    schema: EgressEndpointSlice,
  },
  EgressClusterEndpointSlice: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egressclusterendpointslices',
    scope: 'Cluster',
    shortNames: ['egcep'],
    category: 'egressclusterendpointslice',
    columns: [],
    schema: EgressClusterEndpointSlice,
  },
  EgressClusterInfo: {
    group: gatewayGroup,
    version: 'v1beta1',
    plural: 'egressclusterinfos',
    scope: 'Cluster',
    shortNames: ['egci'],
    category: 'egressclusterinfo',
    columns: [
      text('podCidrMode', '.status.podCidrMode', 'Where the pod ranges come from.'),
      condition('Detected'),
      age,
    ],
    schema: EgressClusterInfo,
  },
  BCSEgress: {
    group: proxyGroup,
    version: 'v1alpha1',
    plural: 'bcsegresses',
    scope: 'Namespaced',
    shortNames: [],
    category: 'bcsegress',
    columns: [
      text('state', '.status.state', 'State of the rules on the proxy.'),
      count('tcpActives', '.status.tcpActives', 'Open connections of TCP rules.'),
      count('httpActives', '.status.httpActives', 'Open connections of HTTP rules.'),
      text('controller', '.spec.controller.name', 'The proxy that serves the rules.'),
      { ...text('reason', '.status.reason', 'Why the state is Unknown or Error.'), priority: 1 },
      age,
    ],
    schema: BCSEgress,
  },
  BCSEgressController: {
    group: proxyGroup,
    version: 'v1',
    plural: 'bcsegresscontrollers',
    scope: 'Namespaced',
    shortNames: [],
    category: 'bcsegresscontroller',
    columns: [
      count('ready', '.status.readyReplicas', 'Replicas that serve rules.'),
      count('min', '.spec.minReplicas', 'The fewest replicas.'),
      count('max', '.spec.maxReplicas', 'The most replicas.'),
      text('image', '.spec.image', 'Image of the proxy.'),
      age,
    ],
    schema: BCSEgressController,
  },
} as const satisfies Record<string, KindDescription>;

export type KindName = keyof typeof kinds;

/** The type of the objects of a kind. */
export type ObjectOf<Kind extends KindName> = Immutable<z.infer<(typeof kinds)[Kind]['schema']>>;

/** Tells whether the name is one of our kinds. */
export function isKindName(name: string): name is KindName {
  return Object.hasOwn(kinds, name);
}

/** Returns what a client needs to reach objects of the kind. */
export function resourceOf(kind: KindName): Resource {
  const { group, version, plural, scope } = kinds[kind];
  return { group, version, plural, kind, namespaced: scope === 'Namespaced' };
}
