/** Short forms of API objects for tests. Not shipped. */
import { type Plan, plan } from '../plan/plan.ts';
import type { ApiObject, NodeObject } from '../project/index.ts';
import { agentsReport, emptyWorld, record, viewOf, type World } from './world.ts';

/** A time stamp; larger numbers are younger. */
export const timeAt = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();

export interface GatewayShape {
  readonly at?: number;
  readonly ipv4?: readonly string[];
  readonly ipv6?: readonly string[];
  readonly default4?: string;
  readonly default6?: string;
  readonly selector?: object;
  readonly policy?: string;
  readonly limit?: number;
  readonly eipLimit?: number;
  readonly clusterDefault?: boolean;
  readonly allowedNamespaces?: object;
  readonly isDeleting?: boolean;
}

/** An EgressGateway; it selects nodes labelled egress=true unless told otherwise. */
export const gatewayObject = (name: string, shape: GatewayShape = {}): ApiObject => ({
  metadata: {
    name,
    uid: `uid-${name}`,
    creationTimestamp: timeAt(shape.at ?? 0),
    ...(shape.isDeleting ? { deletionTimestamp: timeAt(0) } : {}),
  },
  spec: {
    ippools: {
      ipv4: shape.ipv4 ?? [],
      ipv6: shape.ipv6 ?? [],
      ...(shape.default4 === undefined ? {} : { ipv4DefaultEIP: shape.default4 }),
      ...(shape.default6 === undefined ? {} : { ipv6DefaultEIP: shape.default6 }),
    },
    nodeSelector: {
      selector: shape.selector ?? { matchLabels: { egress: 'true' } },
      ...(shape.policy === undefined ? {} : { policy: shape.policy }),
      ...(shape.limit === undefined ? {} : { limit: shape.limit }),
    },
    ...(shape.eipLimit === undefined ? {} : { eipLimit: shape.eipLimit }),
    ...(shape.clusterDefault === undefined ? {} : { clusterDefault: shape.clusterDefault }),
    ...(shape.allowedNamespaces === undefined ? {} : { allowedNamespaces: shape.allowedNamespaces }),
  },
});

export interface PolicyShape {
  readonly at?: number;
  readonly uid?: string;
  readonly gateway?: string;
  readonly allocator?: string;
  readonly ipv4?: string;
  readonly ipv6?: string;
  readonly useNodeIP?: boolean;
  readonly appliedTo?: object;
  readonly destSubnet?: readonly string[];
  readonly exceptSubnet?: readonly string[];
  readonly priority?: number;
  readonly onUnavailable?: string;
  readonly onExistingConnections?: string;
  readonly isDeleting?: boolean;
}

/** A policy by key: `ns/name` is an EgressPolicy, `name` an EgressClusterPolicy. */
export const policyObject = (key: string, shape: PolicyShape = {}): ApiObject => {
  const slash = key.indexOf('/');
  return {
    metadata: {
      name: key.slice(slash + 1),
      ...(slash < 0 ? {} : { namespace: key.slice(0, slash) }),
      uid: shape.uid ?? `uid-${key}`,
      generation: 1,
      creationTimestamp: timeAt(shape.at ?? 0),
      ...(shape.isDeleting ? { deletionTimestamp: timeAt(0) } : {}),
    },
    spec: {
      egressGatewayName: shape.gateway ?? '',
      egressIP: {
        allocatorPolicy: shape.allocator ?? 'default',
        useNodeIP: shape.useNodeIP ?? false,
        ipv4: shape.ipv4 ?? '',
        ipv6: shape.ipv6 ?? '',
      },
      appliedTo: shape.appliedTo ?? { podSelector: { matchLabels: { app: key.slice(slash + 1) } } },
      ...(shape.destSubnet === undefined ? {} : { destSubnet: shape.destSubnet }),
      ...(shape.exceptSubnet === undefined ? {} : { exceptSubnet: shape.exceptSubnet }),
      ...(shape.priority === undefined ? {} : { priority: shape.priority }),
      ...(shape.onUnavailable === undefined ? {} : { onUnavailable: shape.onUnavailable }),
      ...(shape.onExistingConnections === undefined ? {} : { onExistingConnections: shape.onExistingConnections }),
    },
  };
};

/** A Node with one address per family. */
export const nodeObject = (
  name: string,
  addresses: readonly string[] = [],
  labels: Readonly<Record<string, string>> = { egress: 'true' },
  isReady = true,
): NodeObject => ({
  metadata: { name, labels },
  status: {
    addresses: addresses.map((address) => ({ type: 'InternalIP', address })),
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
  },
});

/** Puts objects into a cluster with nodes a, b, ... whose tunnels are Ready. */
export const worldOf = (
  nodes: readonly NodeObject[],
  gateways: readonly ApiObject[],
  policies: readonly ApiObject[],
): World => {
  const world = emptyWorld();
  for (const node of nodes) world.nodes.set(node.metadata.name, node);
  record(world, plan(viewOf(world)));
  agentsReport(world);
  for (const gateway of gateways) world.gateways.set(gateway.metadata.name, gateway);
  for (const policy of policies) putPolicy(world, policy);
  return world;
};

/** Creates or replaces a policy; a replaced one keeps its status, as on an API server. */
export const putPolicy = (world: World, policy: ApiObject): void => {
  const { namespace, name } = policy.metadata;
  const key = namespace === undefined ? name : `${namespace}/${name}`;
  const status = world.policies.get(key)?.status;
  world.policies.set(key, status === undefined ? policy : { ...policy, status });
};

/** Plans and writes the plan down; agents then report. */
export const step = (world: World): Plan => {
  const planned = plan(viewOf(world));
  record(world, planned);
  agentsReport(world);
  return planned;
};

/** The binding of a policy as one line: `10.6.1.1,fd00::1 on a`, `node IP on a`, `10.6.1.1 on a (not serving)`, or the reason. */
export const bindingText = (planned: Plan, key: string): string => {
  const policy = planned.policies.find((candidate) => candidate.key === key);
  if (policy === undefined) return 'no plan';
  const { binding } = policy;
  if (binding === undefined) return policy.accepted.reason;
  const addresses = [binding.eip?.ipv4, binding.eip?.ipv6].filter((ip) => ip !== undefined).join();
  return `${addresses || 'node IP'} on ${binding.node ?? 'no node'}${binding.isServing ? '' : ' (not serving)'}`;
};
