/** Requests about policies that rules object to. */
import { type Case, oddSelector } from './case.ts';
import { edgePools, gateway, policy } from './cluster.ts';

const noDefault = gateway('edge', { ippools: edgePools });

export const policyCases: readonly Case[] = [
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
