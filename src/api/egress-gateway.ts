/** EgressGateway: the nodes that carry egress IPs (EIPs), and the pools these come from. */
import { z } from 'zod';
import { addressEntry, maxEntries, optionalAddress } from './address-entry.ts';
import { conditions, observedGeneration } from './condition.ts';
import type { Immutable } from './immutable.ts';
import { isSelective, LabelSelector, selectsSomething } from './label-selector.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';
import { defaultInPool, equalPools } from './pool-rules.ts';
import { withRules } from './rule.ts';

const Pools = withRules(
  z.object({
    ipv4: z
      .array(addressEntry('ipv4', 4))
      .max(maxEntries)
      .describe('IPv4 addresses, `a-b` ranges and CIDRs from which EIPs are taken. Empty: node IPs only.')
      .optional(),
    ipv6: z
      .array(addressEntry('ipv6', 6))
      .max(maxEntries)
      .describe(
        'The same for IPv6. If both families are given, they hold the same number of addresses: the API server refuses what certainly differs, the admission webhook counts exactly.',
      )
      .optional(),
    ipv4DefaultEIP: optionalAddress(
      'ipv4DefaultEIP',
      4,
      'The EIP of policies with the allocator `default`. Empty: chosen from the pool when the gateway is created.',
    ),
    ipv6DefaultEIP: optionalAddress('ipv6DefaultEIP', 6, 'The same for IPv6.'),
  }),
  equalPools,
  defaultInPool(4),
  defaultInPool(6),
);

/** The modes of `nodeSelector.policy` that mean something; any other text works as `average`. */
export const nodePolicies = ['average', 'minimum', 'limit'] as const;
export type NodePolicy = (typeof nodePolicies)[number];

const NodeSelector = withRules(
  z.object({
    selector: LabelSelector.describe('Labels of the nodes that may carry EIPs. It must ask for something.').optional(),
    policy: z
      .string()
      .max(63)
      .describe(
        'How a node is chosen for an EIP: `average` (default) takes the node with the fewest EIPs, `minimum` fills as few nodes as possible, `limit` fills a node up to `limit` policies before the next. An EIP is on one node, so policies that share it count there, also beyond the limit. Other text is accepted because earlier versions ignored this field; it works as `average` and is reported in the condition Accepted.',
      )
      .optional(),
    limit: z
      .int()
      .min(1)
      .max(65535)
      .default(5)
      .describe('With policy `limit`: how many policies a node takes before new EIPs go to the next node.'),
  }),
  {
    rule: selectsSomething('self.selector'),
    message: 'selector must have at least one entry in matchLabels or matchExpressions',
    fieldPath: '.selector',
    reason: 'FieldValueRequired',
    holds: ({ selector }) => isSelective(selector),
  },
);

const AllowedNamespaces = z.object({
  names: z
    .array(z.string().min(1).max(63))
    .max(maxEntries)
    .describe('Names of namespaces whose policies may use this gateway.')
    .optional(),
  selector: LabelSelector.describe(
    'Labels of namespaces whose policies may use this gateway, besides `names`.',
  ).optional(),
});

/** What is asked of a gateway; a parse fills in the defaults. */
export const EgressGatewaySpec = z.object({
  clusterDefault: z
    .boolean()
    .default(false)
    .describe('Whether policies that name no gateway use this one. At most one gateway may say so.'),
  ippools: Pools.describe('The addresses that this gateway may use as EIPs.').optional(),
  nodeSelector: NodeSelector.describe('Which nodes carry the EIPs, and how they share them.'),
  eipLimit: z
    .int()
    .min(1)
    .max(65535)
    .default(5)
    .describe(
      'With the allocator `limit` of a policy: how many policies an EIP takes before the next EIP is preferred.',
    ),
  allowedNamespaces: AllowedNamespaces.describe(
    'Namespaces whose EgressPolicies may use this gateway. Absent: all. Cluster policies are not bound by it.',
  ).optional(),
  keepConnections: z
    .boolean()
    .default(true)
    .describe(
      'Whether the connections of an EIP are mirrored to the node that would take it over, so that they outlive the loss of its node.',
    ),
});
export type EgressGatewaySpec = Immutable<z.infer<typeof EgressGatewaySpec>>;

const PolicyReference = z.object({
  name: z.string().describe('Name of the policy.').optional(),
  namespace: z.string().describe('Namespace of the policy; empty for an EgressClusterPolicy.').optional(),
});

const EipAssignment = z.object({
  ipv4: z.string().describe('The IPv4 EIP; empty when the policies use the node IP.').optional(),
  ipv6: z.string().describe('The IPv6 EIP; empty when the policies use the node IP.').optional(),
  epoch: z
    .int()
    .min(0)
    .describe('The epoch of the EIP that was known when the node was recorded: how often it has changed its owner.')
    .optional(),
  policies: z.array(PolicyReference).describe('The policies that leave with this EIP.').optional(),
});

const GatewayNode = z.object({
  name: z.string().describe('Name of the node.').optional(),
  status: z.string().describe('Phase of the EgressTunnel of the node.').optional(),
  eips: z.array(EipAssignment).describe('The EIPs that this node carries.').optional(),
});

const total = (what: string) => z.int().min(0).describe(what).optional();

const IpUsage = z.object({
  ipv4Total: total('Number of addresses in the IPv4 pool.'),
  ipv4Free: total('Number of IPv4 addresses that no policy uses.'),
  ipv6Total: total('Number of addresses in the IPv6 pool, at most 9007199254740991.'),
  ipv6Free: total('Number of IPv6 addresses that no policy uses, at most 9007199254740991.'),
});

/** A view of the allocation, derived from the status of the policies. */
export const EgressGatewayStatus = z.object({
  nodeList: z.array(GatewayNode).describe('The nodes that match the selector, with the EIPs they carry.').optional(),
  ipUsage: IpUsage.describe('How much of the pools is in use.').optional(),
  observedGeneration,
  conditions,
});
export type EgressGatewayStatus = Immutable<z.infer<typeof EgressGatewayStatus>>;

/** A whole EgressGateway. */
export const EgressGateway = objectOf(`${gatewayGroup}/v1beta1`, 'EgressGateway', {
  spec: EgressGatewaySpec.describe('What is asked of this gateway.'),
  status: EgressGatewayStatus.describe('What the controller made of it.').optional(),
}).describe('EgressGateway selects the nodes through which policies leave the cluster, and the pools of their EIPs.');
export type EgressGateway = Immutable<z.infer<typeof EgressGateway>>;
