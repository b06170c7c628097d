/** Requests about gateways that rules object to. */
import { type Case, oddSelector } from './case.ts';
import { edgePools, gateway } from './cluster.ts';

const lessOfEdge = {
  ipv4: ['10.6.1.1', '10.6.1.3-10.6.1.4'],
  ipv6: ['fd00:6::1', 'fd00:6::3-fd00:6::4'],
  ipv4DefaultEIP: '10.6.1.1',
  ipv6DefaultEIP: 'fd00:6::1',
};
export const gatewayCases: readonly Case[] = [
  {
    rule: 'gateway-readable',
    title: 'a label key that no label can have',
    object: gateway('new', { nodeSelector: { selector: oddSelector } }),
    reason: 'SelectorInvalid',
    message:
      'spec: EgressGateway new: nodeSelector.selector has the label key "no label", which no label can have. Correct the key, operator or value that the message names.',
  },
  {
    rule: 'gateway-family',
    title: 'an IPv6 pool while IPv6 is off',
    object: gateway('new', { ippools: { ipv6: ['fd00:7::1'] } }),
    families: 'ipv4',
    reason: 'FamilyDisabled',
    message:
      'spec.ippools.ipv6: fd00:7::1 is IPv6, which feature.enableIPv6 of the configuration turns off. Set enableIPv4 or enableIPv6 in the configuration, or remove the addresses of that family.',
  },
  {
    rule: 'gateway-pools-equal',
    title: 'pools that CEL cannot count',
    object: gateway('new', { ippools: { ipv4: ['10.6.7.1-10.6.7.2'], ipv6: ['fd00:7::ffff-fd00:7::1:1'] } }),
    reason: 'PoolsUnequal',
    message:
      'spec.ippools: ipv4 holds 2 addresses and ipv6 holds 3; both must hold the same number. Add or remove addresses until the numbers in the message are equal, or give one family only.',
  },
  {
    rule: 'gateway-default-eip',
    title: 'a default EIP outside a range that CEL cannot read',
    object: gateway('new', { ippools: { ipv6: ['fd00:7::ffff-fd00:7::1:1'], ipv6DefaultEIP: 'fd00:8::1' } }),
    reason: 'DefaultEipOutsidePool',
    message:
      'spec.ippools: EgressGateway new has the default EIP fd00:8::1, which its pool does not hold. Choose a default EIP from the pool, or leave the field empty. The pools hold fd00:7::ffff-fd00:7::1:1.',
  },
  {
    rule: 'gateway-pools-apart',
    title: 'an address that another gateway has',
    object: gateway('new', { ippools: { ipv4: ['10.6.1.4-10.6.1.9'] } }),
    reason: 'PoolsOverlap',
    message:
      'spec.ippools: 10.6.1.4 is in the pools of gateway edge too; an address may be in one gateway only. Remove the addresses that the message names from one of the two gateways.',
  },
  {
    rule: 'gateway-pools-outside',
    title: 'the address of a node',
    object: gateway('new', { ippools: { ipv4: ['172.18.0.0/24'] } }),
    reason: 'PoolOverlapsCluster',
    message:
      'spec.ippools: 172.18.0.3 belongs to the nodes of the cluster. Use addresses that nothing in the cluster has.',
  },
  {
    rule: 'gateway-pools-outside',
    title: 'a pod range',
    object: gateway('new', { ippools: { ipv4: ['10.244.1.7'] } }),
    reason: 'PoolOverlapsCluster',
    message:
      'spec.ippools: 10.244.1.7 belongs to the pods of the cluster. Use addresses that nothing in the cluster has.',
  },
  {
    rule: 'gateway-pools-outside',
    title: 'a Service range',
    object: gateway('new', { ippools: { ipv4: ['10.96.0.10-10.96.0.12'] } }),
    reason: 'PoolOverlapsCluster',
    message:
      'spec.ippools: 10.96.0.10-10.96.0.12 belongs to the Services of the cluster. Use addresses that nothing in the cluster has.',
  },
  {
    rule: 'gateway-pools-in-use',
    title: 'an EIP in use leaves the pool',
    object: gateway('edge', { clusterDefault: true, ippools: lessOfEdge }),
    reason: 'PoolBelowUse',
    message:
      'spec.ippools: 10.6.1.2, fd00:6::2 would leave the pools but is in use by EgressPolicy shop/web. Put them back, or move the policies that the message names first.',
  },
  {
    rule: 'gateway-cluster-default',
    title: 'a second cluster default',
    object: gateway('new', { clusterDefault: true }),
    reason: 'ClusterDefaultTaken',
    message:
      'spec.clusterDefault: true, but gateway edge is the cluster default already; only one gateway may be. Set clusterDefault to false on one of the two.',
  },
  {
    rule: 'gateway-in-use',
    title: 'deleting a gateway that both kinds of policy use',
    object: gateway('edge', {}),
    operation: 'delete',
    message:
      'metadata.name: Gateway edge serves EgressClusterPolicy batch, EgressPolicy shop/web until they are gone, and takes no new policies. Move or delete the policies that the message names; the gateway goes with the last of them.',
  },
  {
    rule: 'gateway-node-policy',
    title: 'a node policy that means nothing',
    object: gateway('new', {
      nodeSelector: { selector: { matchLabels: { egress: 'true' } }, policy: 'AverageSelection' },
    }),
    message:
      'spec.nodeSelector.policy: EgressGateway new: nodeSelector.policy "AverageSelection" works as average. Write average, minimum or limit, or leave the field out.',
  },
  {
    rule: 'gateway-nodes',
    title: 'a selector that no node matches',
    object: gateway('new', { nodeSelector: { selector: { matchLabels: { zone: 'moon' } } } }),
    message:
      'spec.nodeSelector.selector: None of 1 nodes matches, so gateway new cannot carry an EIP. Label a node, or correct nodeSelector.',
  },
  {
    rule: 'gateway-namespaces',
    title: 'namespaces with policies are left out',
    object: gateway('edge', { clusterDefault: true, ippools: edgePools, allowedNamespaces: { names: ['team'] } }),
    message:
      'spec.allowedNamespaces: It leaves out the namespaces of EgressPolicy shop/web, which will not be served any more. Add them, or move the policies to another gateway first.',
  },
];
