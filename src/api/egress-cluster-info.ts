/** EgressClusterInfo: the one object that says which destinations belong to the cluster itself. */
import { z } from 'zod';
import { addressEntry, maxEntries } from './address-entry.ts';
import { AddressLists, conditions, observedGeneration } from './condition.ts';
import type { Immutable } from './immutable.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';
import { withRules } from './rule.ts';

/** The only name an EgressClusterInfo may have. */
export const clusterInfoName = 'default';

const AutoDetect = z.object({
  podCidrMode: z
    .enum(['auto', 'k8s', 'calico', ''])
    .default('auto')
    .describe(
      'Where the pod ranges come from: `k8s` (the nodes), `calico` (its IPPools), `auto` (Calico if it is there, else the nodes) or the empty text (not detected).',
    ),
  clusterIP: z.boolean().default(true).describe('Whether the Service ranges are detected.'),
  nodeIP: z.boolean().default(true).describe('Whether the addresses of the nodes are detected.'),
});

/** What is to be detected; a parse fills in the defaults. */
export const EgressClusterInfoSpec = z.object({
  autoDetect: AutoDetect.prefault({}).describe('What is found out without being told.'),
  extraCidr: z
    .array(addressEntry('extraCidr'))
    .max(maxEntries)
    .describe('More destinations that count as part of the cluster: addresses, ranges and CIDRs.')
    .optional(),
});
export type EgressClusterInfoSpec = Immutable<z.infer<typeof EgressClusterInfoSpec>>;

const IgnoredCidrs = z.object({
  clusterIP: AddressLists.describe('Ranges of Services.').optional(),
  nodeIP: AddressLists.describe('Addresses of nodes.').optional(),
  apiServer: AddressLists.describe('Addresses of the API servers.').optional(),
  podCIDR: AddressLists.describe('Ranges of pods.').optional(),
  custom: AddressLists.describe('What `extraCidr` and the configuration add.').optional(),
});

/** Who votes on the owners of EIPs. Agents report the one that is in force with them. */
export const RecordedElectorate = z.object({
  generation: z.int().min(1).describe('Grows by one with every change.'),
  voters: z.array(z.string()).max(30).describe('The nodes that vote, by name.'),
  apiVotes: z.boolean().describe('Whether the API server has a vote too: only where there are two usable nodes.'),
});
export type RecordedElectorate = Immutable<z.infer<typeof RecordedElectorate>>;

/** What the controller detected; absent until it has looked. */
export const EgressClusterInfoStatus = z.object({
  podCidrMode: z.string().describe('The mode in force; with `auto` the one that was found.').optional(),
  clusterIP: AddressLists.describe('The Service ranges that were found.').optional(),
  nodeIP: z.record(z.string(), AddressLists).describe('The addresses of each node, by node name.').optional(),
  apiServer: AddressLists.describe(
    'The addresses of the API servers, which need not be nodes: the endpoints of Service `kubernetes`.',
  ).optional(),
  podCIDR: z.record(z.string(), AddressLists).describe('The pod ranges, by IPPool or node name.').optional(),
  extraCidr: z.array(z.string()).describe('`spec.extraCidr` as it is in force.').optional(),
  egressIgnoreCIDR: IgnoredCidrs.describe(
    'All of the above merged: what a policy without `destSubnet` leaves alone.',
  ).optional(),
  electorate: RecordedElectorate.describe(
    'Which nodes vote on the owners of EIPs. It changes by one vote at a time, when all who use it have the last one.',
  ).optional(),
  observedGeneration,
  conditions,
});
export type EgressClusterInfoStatus = Immutable<z.infer<typeof EgressClusterInfoStatus>>;

/** A whole EgressClusterInfo. */
export const EgressClusterInfo = withRules(
  objectOf(`${gatewayGroup}/v1beta1`, 'EgressClusterInfo', {
    spec: EgressClusterInfoSpec.prefault({}).describe('What is asked of the detection.'),
    status: EgressClusterInfoStatus.describe('What was detected.').optional(),
  }).describe('EgressClusterInfo holds the address ranges of the cluster. There is one, named `default`.'),
  {
    rule: `self.metadata.name == '${clusterInfoName}'`,
    message: `metadata.name must be "${clusterInfoName}": there is one EgressClusterInfo per cluster`,
    reason: 'FieldValueForbidden',
    holds: ({ metadata }) => metadata.name === clusterInfoName,
  },
);
export type EgressClusterInfo = Immutable<z.infer<typeof EgressClusterInfo>>;
