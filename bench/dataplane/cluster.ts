/**
 * A workload as Kubernetes objects, read and planned by the code of the controller: what the agents of a worker and of a
 * gateway node know. All pods are on the worker, and every policy has an EIP of its own on the gateway node.
 */

import { nodeSettingsOf } from '../../src/agent/inputs/settings.ts';
import { Config } from '../../src/api/config.ts';
import type { HostView, NodeInput, NodeOwnership } from '../../src/core/node/input.ts';
import { eipKey } from '../../src/core/ownership/node-group.ts';
import { type ApiObject, type PodObject, projectPod } from '../../src/core/project/index.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../../src/core/testing/objects.ts';
import { viewOf, type World } from '../../src/core/testing/world.ts';
import { addresses, podNetwork } from './site.ts';
import { type Pair, type WorkloadPolicy, workloadOf } from './workload.ts';

export const settings = nodeSettingsOf(Config.parse({ feature: { enableIPv6: true } }));

const namespace = 'bench';
/** 8,190 addresses of each family in the subnets of the nodes. */
const pool = { ipv4: ['10.6.32.0/19'], ipv6: ['fd06::e:1-fd06::e:1ffe'] };

/** What all agents know alike, and the pods of the worker. */
export type Known = Pick<NodeInput, 'ranges' | 'tunnels' | 'policies' | 'namespaces' | 'pods'>;

export interface Cluster {
  readonly world: World;
  readonly known: Known;
  /** The EIP of the policy that the measured pod is under. */
  readonly eip: Pair;
}

/** The cluster of a workload, with every EIP chosen: one for each policy, or so many that all share. */
export function clusterOf(size: number, eips?: number): Cluster {
  const workload = workloadOf(size);
  const world = worldOf(
    [
      nodeObject('worker', Object.values(addresses.worker), {}),
      nodeObject('gateway', Object.values(addresses.gateway), { egress: 'true' }),
    ],
    [gatewayObject('gateway', pool)],
    workload.map((policy, index) => policyFor(policy, eips === undefined ? undefined : eipAt(index % eips))),
  );
  world.namespaces.set(namespace, { metadata: { name: namespace } });
  world.clusterInfo = {
    metadata: { name: 'default' },
    status: { egressIgnoreCIDR: { podCIDR: listsOf(podNetwork), clusterIP: listsOf(serviceNetwork) } },
  };
  step(world);
  const view = viewOf(world);
  const { ranges, tunnels, policies, namespaces } = view;
  const { eip } = policies.find(({ name }) => name === workload.at(-1)?.name)?.recorded ?? {};
  if (eip?.ipv4 === undefined || eip.ipv6 === undefined) throw new Error('the measured policy has no EIP');
  const pods = workload.flatMap((policy) =>
    policy.pods.map((ips, number) => projectPod(podObject(`${policy.name}-${number}`, policy.name, ips))),
  );
  return { world, known: { ranges, tunnels, policies, namespaces, pods }, eip: { ipv4: eip.ipv4, ipv6: eip.ipv6 } };
}

const eipAt = (place: number): Pair => ({ ipv4: `10.6.40.${place + 1}`, ipv6: `fd06::e:${(place + 1).toString(16)}` });

/** A policy of a workload, which selects pods by its own name; with an EIP that it is given, or one of its own. */
export const policyFor = ({ name, destinations }: WorkloadPolicy, eip?: Pair): ApiObject =>
  policyObject(`${namespace}/${name}`, {
    gateway: 'gateway',
    allocator: 'rr',
    ...eip,
    destSubnet: [...destinations.ipv4, ...destinations.ipv6],
  });

/** A pod of the worker under a policy of the workload. */
export const podObject = (name: string, policy: string, ips: Pair): PodObject => ({
  metadata: { name, namespace, labels: { app: policy } },
  spec: { nodeName: 'worker' },
  status: { phase: 'Running', podIPs: [{ ip: ips.ipv4 }, { ip: ips.ipv6 }] },
});

/** What the agent of a node knows. */
export const inputFor = (node: 'worker' | 'gateway', known: Known, host: HostView): NodeInput => ({
  node,
  settings,
  host,
  ranges: known.ranges,
  tunnels: known.tunnels,
  policies: known.policies,
  namespaces: known.namespaces,
  pods: node === 'worker' ? known.pods : [],
  unclaimable: new Map(),
  gatewayNumbers: new Map(),
  ownership: agreedOn(node, known),
});

/** Nodes have agreed that the recorded owner of each EIP has it, so that tables have a gate as those of agents do. */
const agreedOn = (node: string, { policies }: Known): NodeOwnership => {
  const recorded = policies.map((policy) => policy.recorded).filter((one) => one.node === node);
  const eips = recorded.map(({ eip }) => eipKey(eip)).filter((eip) => eip !== undefined);
  return {
    owners: new Map(),
    holds: new Map(eips.map((eip) => [eip, { eip, epoch: 1, mode: 'owned' }])),
    standbys: new Set(),
    gateways: new Set(['gateway']),
  };
};

const serviceNetwork: Pair = { ipv4: '10.96.0.0/12', ipv6: 'fd96::/108' };

const listsOf = ({ ipv4, ipv6 }: Pair) => ({ ipv4: [ipv4], ipv6: [ipv6] });
