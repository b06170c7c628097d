/** NodeInputs from a World: what the agents of its nodes would know. Not shipped. */

import type { ClusterView, PodView } from '../cluster/view.ts';
import type { NodeDesired } from '../node/desired.ts';
import { createNodePlanner } from '../node/desired-for.ts';
import type { NodeInput, NodeSettings } from '../node/input.ts';
import { type PodObject, projectPod } from '../project/index.ts';

/** Settings as the configuration gives them by default, for both families. */
export const nodeSettings: NodeSettings = {
  hasIpv4: true,
  hasIpv6: true,
  device: 'egress.vxlan',
  holder: 'egw-eip',
  vxlanId: 100,
  port: 7789,
  hasChecksums: true,
  hasGro: false,
  notAnnounced: [/^cali/],
  isStrict: false,
};

/** What the agent of a node knows; its host has the parent interface that its tunnel reports. */
export const nodeInput = (
  view: ClusterView,
  node: string,
  pods: readonly PodView[],
  over: Partial<NodeInput> = {},
): NodeInput => {
  const parent = view.tunnels.find((tunnel) => tunnel.node === node)?.parent ?? { ipv4: undefined, ipv6: undefined };
  return {
    node,
    settings: nodeSettings,
    host: {
      parent: { name: 'eth0', mtu: 1500, ...parent },
      interfaces: [{ name: 'eth0', mac: '66:00:00:00:00:11', networks: ['192.0.2.0/24', '10.6.0.0/16', 'fd06::/16'] }],
      defaults: [],
    },
    ranges: view.ranges,
    tunnels: view.tunnels,
    policies: view.policies,
    namespaces: view.namespaces,
    pods: pods.filter((pod) => pod.node === node),
    unclaimable: new Map(),
    gatewayNumbers: new Map(),
    ownership: undefined,
    ...over,
  };
};

/** What every node of the view should hold. */
export const desireds = (view: ClusterView, pods: readonly PodView[]): ReadonlyMap<string, NodeDesired> =>
  new Map(view.nodes.map(({ name }) => [name, createNodePlanner()(nodeInput(view, name, pods))]));

/** A pod with labels on a node. */
export const podOn = (
  node: string,
  name: string,
  ips: readonly string[],
  labels: Readonly<Record<string, string>> = {},
): PodView => {
  const slash = name.indexOf('/');
  const object: PodObject = {
    metadata: { namespace: name.slice(0, slash), name: name.slice(slash + 1), labels },
    spec: { nodeName: node },
    status: { phase: 'Running', podIPs: ips.map((address) => ({ ip: address })) },
  };
  return projectPod(object);
};
