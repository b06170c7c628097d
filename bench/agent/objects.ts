/** What the API server of the benchmark holds: a cluster as it is on a real one, with all that nobody reads. */
import { agentDefaults } from '../../src/agent/flags.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import { failoverNames } from '../../src/api/names.ts';
import { type ApiObject, projectPolicy } from '../../src/core/project/index.ts';
import { putPolicy, step } from '../../src/core/testing/objects.ts';
import type { World } from '../../src/core/testing/world.ts';
import { coreResource, type KubeObject } from '../../src/runtime/kube/resource.ts';
import type { TestApiServer } from '../../src/runtime/testing/api-server.ts';
import { clusterOf, policyFor } from '../dataplane/cluster.ts';
import { type Pair, workloadOf } from '../dataplane/workload.ts';
import { makePod } from '../informer/pod.ts';

export const resources = {
  policies: resourceOf('EgressPolicy'),
  clusterPolicies: resourceOf('EgressClusterPolicy'),
  tunnels: resourceOf('EgressTunnel'),
  clusterInfos: resourceOf('EgressClusterInfo'),
  gateways: resourceOf('EgressGateway'),
  namespaces: coreResource('namespaces', 'Namespace', false),
  pods: coreResource('pods', 'Pod', true),
  nodes: coreResource('nodes', 'Node', false),
  secrets: coreResource('secrets', 'Secret', true),
  leases: { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true },
  events: { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true },
} as const;

/** What the node of the agent is to others: nothing, as without failover; one that hears who owns; one that votes; an owner. */
export const roles = ['alone', 'worker', 'witness', 'gateway'] as const;
export type Role = (typeof roles)[number];

/** The node whose agent is measured. */
export const nodeOf = (role: Role): 'worker' | 'gateway' => (role === 'gateway' ? 'gateway' : 'worker');

const namespace = 'bench';

/** Fills a server, and returns how to make changes that reach the kernel of the node. */
export function fill(server: TestApiServer, policies: number, pods: number, eips: number, role: Role) {
  const { world } = clusterOf(policies, eips);
  const node = nodeOf(role);
  if (role !== 'alone') agree(server, world, role);
  const put = (resource: (typeof resources)[keyof typeof resources], objects: Iterable<ApiObject>): void => {
    for (const object of objects) server.put(resource, asServed(object));
  };
  put(resources.policies, world.policies.values());
  put(resources.tunnels, world.tunnels.values());
  put(resources.gateways, world.gateways.values());
  put(resources.namespaces, [...world.namespaces.values(), { metadata: { name: 'sallyport' } }]);
  put(resources.nodes, world.nodes.values());
  if (world.clusterInfo !== undefined) put(resources.clusterInfos, [world.clusterInfo]);
  const workload = workloadOf(policies);
  for (let index = 0; index < pods; index += 1) {
    const policy = workload[Math.floor((index * policies) / pods)];
    const [ips] = policy?.pods ?? [];
    if (policy !== undefined && ips !== undefined) server.put(resources.pods, podAt(node, index, policy.name, ips));
  }
  return changesOf(server, world, node, pods);
}

/** What it takes for agents to agree on owners: a key, and who votes. */
function agree(server: TestApiServer, world: World, role: Role): void {
  const key = Buffer.alloc(32, 'bench').toString('base64');
  const metadata = { name: failoverNames.secret, namespace: agentDefaults.namespace };
  // A Secret has data, of which the type of objects in general knows nothing.
  server.put(resources.secrets, { metadata, data: { key } } as KubeObject);
  // Of the voters only the measured one runs.
  const voters = role === 'witness' ? ['gateway', 'other', 'worker'] : ['gateway'];
  const info = world.clusterInfo ?? { metadata: { name: 'default' } };
  const electorate = { generation: 1, voters, apiVotes: false };
  world.clusterInfo = { ...info, status: { ...Object(info.status), electorate } };
}

const extraPod: Pair = { ipv4: '10.244.254.1', ipv6: 'fd44::254:1' };

function changesOf(server: TestApiServer, world: World, node: string, pods: number) {
  const [model] = workloadOf(2);
  if (model === undefined) throw new Error('a workload of two policies has none');
  const extra = policyFor({ ...model, name: 'extra' });
  const key = `${namespace}/extra`;
  putPolicy(world, extra);
  step(world);
  const policy = world.policies.get(key) ?? extra;
  if (projectPolicy(policy).recorded.slot === undefined) throw new Error('the extra policy has no slot');
  const pod = podAt(node, pods, 'policy-7', extraPod);
  return {
    pod: {
      come: () => void server.put(resources.pods, pod),
      go: () => server.delete(resources.pods, `${namespace}/${pod.metadata.name}`),
    },
    policy: {
      come: () => void server.put(resources.policies, asServed(policy)),
      go: () => server.delete(resources.policies, key),
    },
  };
}

function podAt(node: string, index: number, policy: string, { ipv4, ipv6 }: Pair): KubeObject {
  // The pod of the benchmark of informers has both, which its type does not say.
  const pod = makePod(index) as KubeObject & { readonly spec: object; readonly status: object };
  const labels = { ...pod.metadata.labels, app: policy };
  const status = { ...pod.status, phase: 'Running', podIP: ipv4, podIPs: [{ ip: ipv4 }, { ip: ipv6 }] };
  const served = { metadata: { ...pod.metadata, namespace, labels }, spec: { ...pod.spec, nodeName: node }, status };
  return served;
}

/** With what servers and users add to each object. */
const asServed = (object: ApiObject): KubeObject => ({
  ...object,
  // Servers send more fields than anybody reads, and more than the type has.
  metadata: {
    ...object.metadata,
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
        metadata: object.metadata,
        spec: object.spec,
      }),
    },
    managedFields: [
      {
        manager: 'kubectl-client-side-apply',
        operation: 'Update',
        fieldsType: 'FieldsV1',
        fieldsV1: fieldsOf(object.spec),
      },
      { manager: 'sallyport', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: fieldsOf(object.status) },
    ],
  } as KubeObject['metadata'],
});

/** Names of fields as a server keeps who owns them. */
const fieldsOf = (value: unknown): object =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? {}
    : Object.fromEntries(Object.entries(value).map(([name, inner]) => [`f:${name}`, fieldsOf(inner)]));
