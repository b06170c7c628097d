/** BCSEgress: outside TCP ports and HTTP(S) hosts that pods reach through a shared proxy. */
import { z } from 'zod';
import { conditions, observedGeneration } from './condition.ts';
import { addressListPattern, domainPattern, hostPattern } from './host-text.ts';
import type { Immutable } from './immutable.ts';
import { LabelSelector } from './label-selector.ts';
import { objectOf, proxyGroup } from './object-meta.ts';
import { type Rule, withRules } from './rule.ts';

const maxRules = 256;
const namePattern = '^[a-z]([-a-z0-9]*[a-z0-9])?$';

const port = (description: string) => z.int().min(1).max(65535).describe(description);

const ruleName = withRules(
  z
    .string()
    .max(63)
    .describe(
      'Name of the rule in status, metrics and DNS; unique in this object. Absent: made from the ports or host.',
    ),
  {
    rule: `self.matches('${namePattern}')`,
    message: 'name must be lower-case letters, digits and "-", and start with a letter',
    holds: (text) => new RegExp(namePattern).test(text),
  },
).optional();

const TcpRule = withRules(
  z.object({
    name: ruleName,
    sourceport: port('Port on which the proxy listens inside the cluster; unique per proxy.'),
    destport: port('Port of the destinations.'),
    ips: withRules(
      z
        .string()
        .min(1)
        .max(512)
        .describe('Destinations: addresses with commas between, or one domain name. Excludes `domain`.'),
      {
        rule: `(self + ',').matches('${addressListPattern}') || self.matches('${domainPattern}')`,
        message:
          'ips must be IPv4 or IPv6 addresses with commas between (10.0.0.1,10.0.0.2), or one domain name (db.example.com)',
        holds: (text) => new RegExp(addressListPattern).test(`${text},`) || new RegExp(domainPattern).test(text),
      },
    ).optional(),
    domain: withRules(z.string().min(1).max(253).describe('Destination as a domain name. Excludes `ips`.'), {
      rule: `self.matches('${domainPattern}')`,
      message: 'domain must be a domain name with at least one dot, such as db.example.com',
      holds: (text) => new RegExp(domainPattern).test(text),
    }).optional(),
    algorithm: z
      .enum(['roundrobin', 'least_conn', 'hash'])
      .default('roundrobin')
      .describe('How connections are spread: in turn, to the least busy, or by client address.'),
    idleSeconds: z
      .int()
      .min(1)
      .max(604_800)
      .default(3600)
      .describe('How long a connection may be silent before the proxy ends it.'),
  }),
  {
    rule: 'has(self.ips) != has(self.domain)',
    message: 'a tcp rule must have exactly one of ips and domain',
    holds: ({ ips, domain }) => (ips === undefined) !== (domain === undefined),
  },
);

const HttpRule = withRules(
  z.object({
    name: ruleName,
    host: withRules(
      z
        .string()
        .min(1)
        .max(253)
        .describe('Host that pods may reach: a domain name, `*.` and a domain name, or an address.'),
      {
        rule: `self.matches('${hostPattern}')`,
        message:
          'host must be a domain name (api.example.com), a wildcard (*.example.com) or an address, without scheme, port or path',
        holds: (text) => new RegExp(hostPattern).test(text),
      },
    ),
    tls: z.boolean().default(false).describe('Whether the host is reached by HTTPS (CONNECT) instead of plain HTTP.'),
    destport: port('Port of the host. Absent: 443 with `tls`, else 80.').optional(),
    transparent: z
      .boolean()
      .default(false)
      .describe(
        'Whether the DNS of the cluster leads the name to the proxy, so that pods need no proxy settings. Only for a domain name on the usual port.',
      ),
  }),
  {
    // The API server judges a rule before it fills in the defaults of what it is about.
    rule: `!has(self.transparent) || !self.transparent || (self.host.matches('${domainPattern}') && (!has(self.destport) || self.destport == (has(self.tls) && self.tls ? 443 : 80)))`,
    message:
      'transparent must be false for a wildcard or an address, and for a port other than 443 with tls and 80 without',
    fieldPath: '.transparent',
    holds: ({ transparent, host, destport, tls }) =>
      !transparent ||
      (new RegExp(domainPattern).test(host) && (destport === undefined || destport === (tls ? 443 : 80))),
  },
);

type Named = readonly { readonly name?: string | undefined }[];

/**
 * CEL: no value is twice in the list. The list of values is made once and searched by the API server's own code: comparing
 * every item with every other in CEL took seconds for each write of an object with 456 rules, also of its status.
 */
const areUniqueInCel = (values: string) =>
  `[${values}].all(all, all.all(one, all.indexOf(one) == all.lastIndexOf(one)))`;

const uniqueNames: Rule<Named> = {
  rule: areUniqueInCel('self.filter(rule, has(rule.name)).map(rule, rule.name)'),
  message: 'name must be unique in this list',
  holds: (rules) => areUnique(rules.map(({ name }) => name).filter((name) => name !== undefined)),
};

const tcpRules = (description: string) =>
  withRules(z.array(TcpRule).max(maxRules), uniqueNames, {
    rule: areUniqueInCel('self.map(rule, rule.sourceport)'),
    message: 'sourceport must be unique in this list',
    holds: (rules) => areUnique(rules.map(({ sourceport }) => sourceport)),
  })
    .describe(description)
    .optional();

const httpRules = (description: string) =>
  withRules(z.array(HttpRule).max(maxRules), uniqueNames).describe(description).optional();

const Rules = z.object({
  tcp: tcpRules('TCP ports that are forwarded.'),
  http: httpRules('Hosts that pods may reach through the HTTP proxy.'),
});

const kubernetesName = (field: string, pattern: string, maxLength: number) =>
  withRules(z.string().min(1).max(maxLength), {
    rule: `self.matches('${pattern}')`,
    message: `${field} must be lower-case letters, digits and "-", and begin and end with a letter or digit`,
    holds: (text) => new RegExp(pattern).test(text),
  });
const labelPattern = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

const ControllerReference = z.object({
  namespace: kubernetesName('namespace', `^${labelPattern}$`, 63)
    .default('bcs-system')
    .describe('Namespace of the BCSEgressController.'),
  name: kubernetesName('name', `^${labelPattern}([.]${labelPattern})*$`, 253)
    .default('egress-controller')
    .describe('Name of the BCSEgressController.'),
});

const Sources = withRules(
  z.object({
    any: z
      .boolean()
      .default(false)
      .describe('Whether everybody who reaches the proxy may use the rules. Excludes the other fields.'),
    namespaces: z
      .array(z.string().min(1).max(63))
      .max(256)
      .describe('Other namespaces whose pods may use the rules, by name.')
      .optional(),
    selector: LabelSelector.describe('Other namespaces whose pods may use the rules, by their labels.').optional(),
  }),
  {
    // The API server judges it before it fills in the default of what it is about.
    rule: '!has(self.any) || !self.any || (!has(self.namespaces) && !has(self.selector))',
    message: 'any must be false beside namespaces and selector',
    fieldPath: '.any',
    holds: ({ any, namespaces, selector }) => !any || (namespaces === undefined && selector === undefined),
  },
);

/** The rules and the proxy that serves them; a parse fills in the defaults, but does not join the older spellings. */
export const BCSEgressSpec = z.object({
  controller: ControllerReference.prefault({}).describe('The proxy that serves these rules.'),
  rules: Rules.describe('What pods may reach through the proxy.').optional(),
  sources: Sources.describe(
    'Whose pods may use the rules. Those of the namespace of the object always may. Absent: what `sources` of the proxy says, which is nobody else.',
  ).optional(),
  tcps: tcpRules('An older spelling of `rules.tcp`; both lists are joined.'),
  https: httpRules('An older spelling of `rules.http`; both lists are joined.'),
});
export type BCSEgressSpec = Immutable<z.infer<typeof BCSEgressSpec>>;

const state = z.enum(['Pending', 'Synced', 'Unknown', 'Error']);

const RuleStatus = z.object({
  name: z.string().describe('Name of the rule.'),
  state: state.describe('State of this rule alone.'),
  reason: z.string().describe('Why the rule is in this state.').optional(),
  actives: z.int().min(0).describe('Open connections of the rule, over all replicas.').optional(),
  addresses: z.array(z.string()).describe('Addresses that the destination resolves to now.').optional(),
});

/** What the operator writes; absent until it has seen the object. */
export const BCSEgressStatus = z.object({
  state: state
    .describe(
      'Pending: not live yet. Synced: live on every ready replica. Unknown: the proxy is out of contact. Error: see `reason`.',
    )
    .optional(),
  reason: z.string().describe('Why the state is Unknown or Error, for people.').optional(),
  httpActives: z.int().min(0).describe('Open connections of all HTTP rules.').optional(),
  tcpActives: z.int().min(0).describe('Open connections of all TCP rules.').optional(),
  syncedAt: z
    .string()
    .describe('When the rules last became live after a change of them, as `YYYY-MM-DD hh:mm:ss` in UTC.')
    .optional(),
  syncedRevision: z.string().describe('Hash of the rules that `syncedAt` is about.').optional(),
  rules: z.array(RuleStatus).describe('State of each rule.').optional(),
  observedGeneration,
  conditions,
});
export type BCSEgressStatus = Immutable<z.infer<typeof BCSEgressStatus>>;

/** A whole BCSEgress. */
export const BCSEgress = objectOf(`${proxyGroup}/v1alpha1`, 'BCSEgress', {
  spec: BCSEgressSpec.describe('What is asked of the proxy.'),
  status: BCSEgressStatus.describe('What the operator made of it.').optional(),
}).describe('BCSEgress lists outside TCP destinations and HTTP(S) hosts that pods reach through a shared proxy.');
export type BCSEgress = Immutable<z.infer<typeof BCSEgress>>;

function areUnique(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}
