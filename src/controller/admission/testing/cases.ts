/** Every rule with at least one request that it objects to. The first case of a rule is in the reference page. */
import { edgePools, gateway, type Manifest, policy } from './cluster.ts';

/** One request in the usual cluster, and the answer. An object that the cluster has already is updated. */
export interface Case {
  readonly rule: string;
  readonly title: string;
  readonly object: Manifest;
  readonly operation?: 'delete' | 'status';
  readonly families?: 'both' | 'ipv4';
  /** Objects that are otherwise than usual. */
  readonly meanwhile?: readonly Manifest[];
  /** The reason of a refusal; absent for a warning. */
  readonly reason?: string;
  readonly message: string;
}

const oddSelector = { matchLabels: { 'no label': 'x' } };
const noDefault = gateway('edge', { ippools: edgePools });
const lessOfEdge = {
  ipv4: ['10.6.1.1', '10.6.1.3-10.6.1.4'],
  ipv6: ['fd00:6::1', 'fd00:6::3-fd00:6::4'],
  ipv4DefaultEIP: '10.6.1.1',
  ipv6DefaultEIP: 'fd00:6::1',
};
const tunnel = (mark: string | undefined): Manifest => ({
  apiVersion: 'egressgateway.spidernet.io/v1beta1',
  kind: 'EgressTunnel',
  metadata: { name: 'n1' },
  status: mark === undefined ? {} : { mark },
});

const gatewayCases: readonly Case[] = [
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
    rule: 'gateway-unused',
    title: 'deleting a gateway that both kinds of policy use',
    object: gateway('edge', {}),
    operation: 'delete',
    reason: 'GatewayInUse',
    message:
      'metadata.name: Gateway edge is used by EgressClusterPolicy batch, EgressPolicy shop/web. Move or delete the policies that the message names first.',
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

const policyCases: readonly Case[] = [
  {
    rule: 'policy-readable',
    title: 'a label key that no label can have',
    object: policy('shop/new', { egressGatewayName: 'edge', appliedTo: { podSelector: oddSelector } }),
    reason: 'SelectorInvalid',
    message:
      'spec: EgressPolicy shop/new: appliedTo.podSelector has the label key "no label", which no label can have. Correct the key, operator or value that the message names.',
  },
  {
    rule: 'policy-gateway',
    title: 'a gateway that does not exist',
    object: policy('shop/new', { egressGatewayName: 'egde' }),
    reason: 'GatewayNotFound',
    message:
      'spec.egressGatewayName: Policy shop/new names the gateway egde, which does not exist. Create the gateway, or correct egressGatewayName. There are: bare, edge, team, twin.',
  },
  {
    rule: 'policy-gateway',
    title: 'a cluster policy moved to a gateway that does not exist',
    object: policy('batch', { egressGatewayName: 'egde' }),
    reason: 'GatewayNotFound',
    message:
      'spec.egressGatewayName: Policy batch names the gateway egde, which does not exist. Create the gateway, or correct egressGatewayName. There are: bare, edge, team, twin.',
  },
  {
    rule: 'policy-gateway',
    title: 'a namespace label that names no gateway',
    object: policy('lost/new', {}),
    reason: 'GatewayNotFound',
    message:
      'spec.egressGatewayName: The label spidernet.io/egressgateway-default of namespace lost (policy lost/new) names the gateway gone, which does not exist. Create the gateway, or correct egressGatewayName. There are: bare, edge, team, twin.',
  },
  {
    rule: 'policy-gateway',
    title: 'no name and no default',
    object: policy('shop/new', {}),
    meanwhile: [noDefault],
    reason: 'NoDefaultGateway',
    message:
      'spec.egressGatewayName: Policy shop/new names no gateway, and no gateway is a default for it. Set egressGatewayName, label the namespace, or make a gateway the cluster default. There are: bare, edge, team, twin.',
  },
  {
    rule: 'policy-namespace',
    title: 'a gateway of another team',
    object: policy('shop/new', { egressGatewayName: 'team' }),
    reason: 'NamespaceNotAllowed',
    message:
      'spec.egressGatewayName: Gateway team does not serve namespace shop of policy shop/new. Add the namespace to allowedNamespaces of the gateway, or use another gateway. Gateways that do: bare, edge, twin.',
  },
  {
    rule: 'policy-gateway-stays',
    title: 'a gateway that is being deleted',
    object: policy('shop/new', { egressGatewayName: 'leaving' }),
    meanwhile: [
      gateway('leaving', {}, { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/kept'] }),
    ],
    reason: 'GatewayDeleting',
    message: 'spec.egressGatewayName: Gateway leaving is being deleted and takes no policies. Use another gateway.',
  },
  {
    rule: 'policy-family',
    title: 'an IPv6 EIP while IPv6 is off',
    object: policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv6: 'fd00:6::3' } }),
    families: 'ipv4',
    reason: 'FamilyDisabled',
    message:
      'spec.egressIP.ipv6: fd00:6::3 is IPv6, which feature.enableIPv6 of the configuration turns off. Set enableIPv4 or enableIPv6 in the configuration, or remove the addresses of that family.',
  },
  {
    rule: 'policy-pool',
    title: 'an EIP of a gateway without addresses',
    object: policy('shop/new', { egressGatewayName: 'bare' }),
    reason: 'PoolEmpty',
    message:
      'spec.egressIP.useNodeIP: Gateway bare has no addresses to give; it serves policies with useNodeIP only. Add addresses to the gateway, or set useNodeIP.',
  },
  {
    rule: 'policy-eip',
    title: 'an EIP that is not in the pool',
    object: policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv4: '10.9.9.9' } }),
    reason: 'EipOutsidePool',
    message:
      'spec.egressIP.ipv4: 10.9.9.9 is not in the pool of gateway edge, which holds 10.6.1.1-10.6.1.4. Ask for an address of the pool, or add the address to it.',
  },
  {
    rule: 'policy-eip',
    title: 'an IPv6 EIP of a gateway that has IPv4 only',
    object: policy('team/new', { egressGatewayName: 'team', egressIP: { ipv6: 'fd00:6::1' } }),
    reason: 'EipOutsidePool',
    message:
      'spec.egressIP.ipv6: fd00:6::1 is not in the pool of gateway team, which holds no ipv6 address. Ask for an address of the pool, or add the address to it.',
  },
  {
    rule: 'policy-pair',
    title: 'halves of two pairs',
    object: policy('shop/new', { egressGatewayName: 'edge', egressIP: { ipv4: '10.6.1.2', ipv6: 'fd00:6::3' } }),
    reason: 'EipPairTaken',
    message:
      'spec.egressIP: 10.6.1.2 with fd00:6::3 is not one pair: policy shop/web has 10.6.1.2 with fd00:6::2. Ask for the two addresses of one pair, or for one address only.',
  },
  {
    rule: 'policy-pair',
    title: 'a half of the default EIP',
    object: policy('shop/new', { egressGatewayName: 'twin', egressIP: { ipv4: '10.6.3.2', ipv6: 'fd00:63::1' } }),
    reason: 'EipPairTaken',
    message:
      'spec.egressIP: 10.6.3.2 with fd00:63::1 is not one pair: the default EIP of gateway twin is 10.6.3.1 with fd00:63::1. Ask for the two addresses of one pair, or for one address only.',
  },
  {
    rule: 'policy-destinations',
    title: 'destinations inside the cluster',
    object: policy('shop/new', { egressGatewayName: 'edge', destSubnet: ['10.96.0.0/24', '192.0.2.0/24'] }),
    message:
      'spec.destSubnet: 10.96.0.0/24 belongs to the Services of the cluster and would leave it through the gateway. Remove it, or list it in exceptSubnet.',
  },
  {
    rule: 'policy-shadowed',
    title: 'pods of a policy that comes first',
    object: policy('shop/new', {
      egressGatewayName: 'edge',
      priority: 10,
      appliedTo: { podSelector: { matchLabels: { app: 'web', tier: 'front' } } },
    }),
    message:
      'spec: shop/web comes first: priority 0 is before 10. It takes all of the traffic of shop/new. Change priority, the pods or the destinations of one of the two if this is not wanted.',
  },
];

const guardCases: readonly Case[] = [
  {
    rule: 'cluster-info-kept',
    title: 'deleting the cluster info',
    object: {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressClusterInfo',
      metadata: { name: 'default' },
    },
    operation: 'delete',
    reason: 'ClusterInfoKept',
    message: 'metadata.name: "default" cannot be deleted. Edit it instead.',
  },
  {
    rule: 'tunnel-mark-kept',
    title: 'taking a mark away',
    object: tunnel(undefined),
    operation: 'status',
    reason: 'Forbidden',
    message:
      'status.mark: 0x26d9b700 must stay: it is made from the node name, and other nodes send by it. Delete the EgressTunnel to have it made anew.',
  },
  {
    rule: 'slice-by-hand',
    title: 'a slice written by hand',
    object: {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressEndpointSlice',
      metadata: { name: 'by-hand', namespace: 'shop' },
      endpoints: [],
    },
    message: 'endpoints: The controller writes slices from policies and pods, and undoes what is changed by hand.',
  },
];

/** All cases, in the order of the rules. */
export const cases: readonly Case[] = [...gatewayCases, ...policyCases, ...guardCases];
