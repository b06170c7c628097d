/** BCSEgressController: how the proxy that serves BCSEgress objects is run. */
import { z } from 'zod';
import { addressEntry, maxAddressLength } from './address-entry.ts';
import { isAddress } from './cel.ts';
import { conditions, observedGeneration } from './condition.ts';
import { domainPattern } from './host-text.ts';
import type { Immutable } from './immutable.ts';
import { parsePosition } from './ip/address.ts';
import { LabelSelector } from './label-selector.ts';
import { objectOf, proxyGroup } from './object-meta.ts';
import { withRules } from './rule.ts';

/** Digits, a fraction and a Kubernetes suffix. The CRD asks `isQuantity`, which knows it better. */
const quantityText = /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

const amount = (field: string, unit: string, example: string, description: string) =>
  withRules(z.union([z.int(), z.string().max(32)]), {
    rule: 'type(self) == int ? self > 0 : (isQuantity(self) && quantity(self).isGreaterThan(quantity("0")))',
    message: `${field} must be above zero: a whole number of ${unit}, or a quantity such as ${example}`,
    holds: (value) =>
      typeof value === 'number' ? value > 0 : quantityText.test(value) && Number.parseFloat(value) > 0,
  })
    .default(4096)
    .describe(description);

const Resource = z.object({
  cpu: amount(
    'cpu',
    'thousandths of a core',
    '"2"',
    'CPU of one replica: a whole number of thousandths of a core, or a quantity.',
  ),
  mem: amount('mem', 'MiB', '"4Gi"', 'Memory of one replica: a whole number of MiB, or a quantity.'),
});

const nameserver = withRules(z.string().min(1).max(maxAddressLength).describe('One address of a DNS server.'), {
  rule: `${isAddress('self', 4)} || ${isAddress('self', 6)}`,
  message: 'nameservers: each entry must be an address such as 10.6.1.53 or fd00::53',
  holds: (text) => parsePosition(text).ok,
});

const suffix = (field: string) =>
  withRules(z.string().min(1).max(253).describe('A domain name; names that end with a dot and it are meant too.'), {
    rule: `self.matches('${domainPattern}')`,
    message: `${field}: each entry must be a domain name such as example.com, without "*."`,
    holds: (text) => new RegExp(domainPattern).test(text),
  });

const PortRange = withRules(
  z.object({
    first: z.int().min(1).max(65535).describe('The first port.'),
    last: z.int().min(1).max(65535).describe('The last port. Absent: the same as `first`.').optional(),
  }),
  {
    rule: '!has(self.last) || self.first <= self.last',
    message: 'first must not be above last',
    fieldPath: '.first',
    holds: ({ first, last = first }) => first <= last,
  },
);

const Tenant = z.object({
  namespaces: z.array(z.string().min(1).max(63)).max(256).describe('Namespaces that are meant, by name.').optional(),
  selector: LabelSelector.describe(
    'Namespaces that are meant, by their labels; those in `namespaces` are meant too.',
  ).optional(),
  domains: z
    .array(suffix('domains'))
    .max(32)
    .describe('Names that their rules may lead to, and publish: these, and all below them.')
    .optional(),
  ranges: z
    .array(addressEntry('ranges'))
    .max(16)
    .describe('Addresses that their rules may name. Without `domains` and `ranges` rules may lead anywhere.')
    .optional(),
  ports: z.array(PortRange).max(32).describe('Source ports that their rules may take. Absent: any.').optional(),
});

const replicas = () => z.int().min(1).max(1000);
const percentage = () => z.int().min(1).max(100);

/** How a proxy is to be run; a parse fills in the defaults. */
export const BCSEgressControllerSpec = withRules(
  z.object({
    selector: z
      .record(z.string().min(1).max(317), z.string().max(63))
      .meta({ maxProperties: 64 })
      .describe('Labels of the nodes on which the proxy may run. Absent: any node.')
      .optional(),
    image: z
      .string()
      .min(1)
      .max(512)
      .describe('Image of the proxy. Absent: the one that came with the operator.')
      .optional(),
    minReplicas: replicas().default(2).describe('The fewest replicas.'),
    maxReplicas: replicas().default(10).describe('The most replicas.'),
    CPUPercentage: percentage()
      .default(60)
      .describe('CPU use, in percent of `resource.cpu`, above which replicas are added.'),
    MemPercentage: percentage()
      .default(60)
      .describe('Memory use, in percent of `resource.mem`, above which replicas are added.'),
    MEMPercentage: percentage().describe('Another spelling of `MemPercentage`, which it replaces.').optional(),
    resource: Resource.prefault({}).describe('What one replica needs.'),
    engine: z
      .enum(['envoy', 'nginx'])
      .default('envoy')
      .describe('The program that moves the bytes. nginx does not serve CONNECT.'),
    nameservers: z
      .array(nameserver)
      .max(3)
      .describe('DNS servers outside the cluster that resolve destinations. Absent: those of the operator.')
      .optional(),
    sources: z
      .enum(['own', 'any'])
      .default('own')
      .describe(
        'Who may use rules of BCSEgress objects that do not say it themselves: pods of their own namespace, or everybody who reaches the proxy.',
      ),
    allowedRanges: z
      .array(addressEntry('allowedRanges'))
      .max(64)
      .describe(
        'Private ranges that names may resolve to, and ranges of the cluster or of link-local services that rules may name by address. Names never lead into the cluster, and nothing leads to loopback.',
      )
      .optional(),
    allowedNames: z
      .array(suffix('allowedNames'))
      .max(64)
      .describe(
        'Names that rules may publish in the DNS of the cluster: these, and all below them. Absent: any name that is not of the cluster itself. An empty list: none.',
      )
      .optional(),
    tenants: z
      .array(Tenant)
      .max(32)
      .describe('Which namespaces may use the proxy, and for what. Absent: every namespace, for everything.')
      .optional(),
  }),
  {
    // The API server judges the default of spec, an empty object, before it fills in the defaults inside.
    rule: '!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas',
    message: 'minReplicas must not be above maxReplicas',
    fieldPath: '.minReplicas',
    holds: ({ minReplicas, maxReplicas }) => minReplicas <= maxReplicas,
  },
);
export type BCSEgressControllerSpec = Immutable<z.infer<typeof BCSEgressControllerSpec>>;

const Reference = z.object({
  namespace: z.string().describe('Namespace of the BCSEgress.'),
  name: z.string().describe('Name of the BCSEgress.'),
});

/** What the operator writes; absent until it has seen the object. */
export const BCSEgressControllerStatus = z.object({
  readyReplicas: z.int().min(0).describe('Replicas that serve rules now.').optional(),
  references: z.array(Reference).describe('The BCSEgress objects that use this proxy.').optional(),
  observedGeneration,
  conditions,
});
export type BCSEgressControllerStatus = Immutable<z.infer<typeof BCSEgressControllerStatus>>;

/** A whole BCSEgressController. */
export const BCSEgressController = objectOf(`${proxyGroup}/v1`, 'BCSEgressController', {
  spec: BCSEgressControllerSpec.prefault({}).describe('How the proxy is to be run.'),
  status: BCSEgressControllerStatus.describe('What the operator made of it.').optional(),
}).describe('BCSEgressController describes one shared egress proxy: its image, nodes, size and scaling.');
export type BCSEgressController = Immutable<z.infer<typeof BCSEgressController>>;
