/** What EgressPolicy and EgressClusterPolicy have in common: everything but whom they apply to. */
import { z } from 'zod';
import { addressEntry, maxEntries, optionalAddress } from './address-entry.ts';
import { conditions, observedGeneration } from './condition.ts';
import type { Immutable } from './immutable.ts';
import { LabelSelector } from './label-selector.ts';
import { withRules } from './rule.ts';

/** A DNS subdomain, as the names of cluster-scoped objects are. RE2 and JavaScript read it alike. */
const namePattern = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$';

const gatewayName = withRules(
  z
    .string()
    .max(253)
    .describe(
      'Name of the EgressGateway to leave through. Empty: the gateway that the namespace label `spidernet.io/egressgateway-default` names, else the cluster default. It may be changed; the policy moves without an outage.',
    ),
  {
    rule: `self == '' || self.matches('${namePattern}')`,
    message:
      'egressGatewayName must be the name of an EgressGateway (lower-case letters, digits, "-" and "."), or empty',
    holds: (text) => text === '' || new RegExp(namePattern).test(text),
  },
).optional();

const EgressIp = withRules(
  z.object({
    ipv4: optionalAddress('ipv4', 4, 'The IPv4 EIP to use; it must be in the pool of the gateway. Empty: allocated.'),
    ipv6: optionalAddress('ipv6', 6, 'The IPv6 EIP to use; it must be in the pool of the gateway. Empty: allocated.'),
    useNodeIP: z
      .boolean()
      .default(false)
      .describe('Whether to leave with the address of the gateway node instead of an EIP.'),
    allocatorPolicy: z
      .enum(['default', 'rr', 'random', 'limit', ''])
      .default('default')
      .describe(
        'How an EIP is chosen when none is given: `default` (also the empty text) takes the default EIP of the gateway, `rr` an unused EIP and shares only when the pool is used up, `random` any EIP, `limit` fills an EIP up to `eipLimit` policies before the next.',
      ),
  }),
  {
    rule: "!self.useNodeIP || ((!has(self.ipv4) || self.ipv4 == '') && (!has(self.ipv6) || self.ipv6 == ''))",
    message: 'useNodeIP must not be true together with ipv4 or ipv6: give an EIP or ask for the node IP, not both',
    fieldPath: '.useNodeIP',
    reason: 'FieldValueForbidden',
    holds: ({ useNodeIP, ipv4 = '', ipv6 = '' }) => !useNodeIP || (ipv4 === '' && ipv6 === ''),
  },
);

/** The pods of a policy, by label. */
export const podSelector = LabelSelector.describe(
  'Labels of the pods whose traffic leaves through the gateway. Excludes `podSubnet`.',
).optional();

/** The pods of a policy, by address. */
export const podSubnet = z
  .array(addressEntry('podSubnet'))
  .max(maxEntries)
  .describe('Addresses, ranges and CIDRs of the pods whose traffic leaves through the gateway. Excludes `podSelector`.')
  .optional();

/** CEL: `podSubnet` of the object at hand has an entry. */
export const hasPodSubnet = '(has(self.podSubnet) && self.podSubnet.size() > 0)';

/** Fields of the spec of both policy kinds. */
export const policyFields = {
  egressGatewayName: gatewayName,
  egressIP: EgressIp.prefault({ allocatorPolicy: 'default', useNodeIP: false }).describe(
    'Which address the pods leave with.',
  ),
  destSubnet: z
    .array(addressEntry('destSubnet'))
    .max(maxEntries)
    .describe(
      'Destinations that are reached through the gateway: addresses, ranges and CIDRs. Empty: everything that EgressClusterInfo does not list as part of the cluster.',
    )
    .optional(),
  exceptSubnet: z
    .array(addressEntry('exceptSubnet'))
    .max(maxEntries)
    .describe('Destinations that this policy leaves alone, even if `destSubnet` has them.')
    .optional(),
  priority: z
    .int()
    .min(0)
    .describe(
      'The lower number wins when several policies match a packet; absent counts as 0. On a tie a namespaced policy wins over a cluster policy, then the older one, then the first by name.',
    )
    .optional(),
  onExistingConnections: z
    .enum(['Cut', 'Keep'])
    .default('Keep')
    .describe(
      'What happens to connections that pods opened before the policy was about them, or while another policy was: `Keep` lets them go on with the address they have until they end, `Cut` ends them. Connections that began when the policy was in force but the kernel did not know yet, as after a boot, are always cut.',
    ),
  onUnavailable: z
    .enum(['Drop', 'NodeIP'])
    .default('Drop')
    .describe(
      'What happens to matching traffic while no gateway node can serve it: `Drop` refuses it, `NodeIP` lets it leave with the address of its own node.',
    ),
} as const;

/** The EIP of a policy, one address per family. */
export const Eip = z.object({
  ipv4: z.string().describe('The IPv4 EIP; empty when the policy uses the node IP or has no IPv4 EIP.').optional(),
  ipv6: z.string().describe('The IPv6 EIP; empty when the policy uses the node IP or has no IPv6 EIP.').optional(),
});

/** The record of an allocation: the controller rebuilds its memory from it. */
export const PolicyStatus = z.object({
  eip: Eip.describe('The EIP that was allocated.').optional(),
  gateway: z
    .string()
    .describe('The gateway whose node serves the policy; recorded where `useNodeIP` leaves no EIP that tells it.')
    .optional(),
  node: z
    .string()
    .describe('The gateway node that carries the EIP, or that serves the policy with its own address.')
    .optional(),
  slot: z
    .int()
    .min(1)
    .max(16383)
    .describe('The number that packets of this policy carry through the tunnel.')
    .optional(),
  epoch: z
    .int()
    .min(0)
    .describe(
      'The epoch of the EIP that was known when the node was recorded. Agents move an EIP by this record only if no later epoch has begun.',
    )
    .optional(),
  matchedPods: z.int().min(0).describe('How many pods the policy applies to.').optional(),
  observedGeneration,
  conditions,
});
export type PolicyStatus = Immutable<z.infer<typeof PolicyStatus>>;
