/**
 * AdmissionView is what the rules know about the cluster: views of core, and answers to the few questions that would
 * otherwise need a walk over every policy.
 */

import type {
  ClusterRanges,
  GatewayView,
  NamespaceView,
  NodeView,
  PolicySpecView,
  PolicyView,
  Settings,
} from '../../core/cluster/view.ts';
import { chooseGateway, type GatewayLookup, lookupOf } from '../../core/gateways/choice.ts';
import { type IntervalSet, type Ip, setOfIps, union } from '../../core/ip/index.ts';

/** What is known when a request is judged. Reading it changes nothing and costs no call. */
export interface AdmissionView {
  readonly settings: Settings;
  readonly ranges: ClusterRanges;
  /** Made by clusterPartsOf from `ranges` and `nodes`, once per change of these. */
  readonly clusterParts: readonly (readonly [part: string, addresses: IntervalSet])[];
  readonly nodes: readonly NodeView[];
  readonly gateways: readonly GatewayView[];
  /** Undefined when there is no such namespace, or not yet. */
  readonly namespace: (name: string) => NamespaceView | undefined;
  readonly policies: PolicyLookup;
}

/** Questions about policies that are answered from an index. */
export interface PolicyLookup {
  /** The policies whose spec names this gateway; the empty text asks for those that name none. */
  readonly naming: (gateway: string) => Iterable<PolicyView>;
  /** The policies that have this address, or ask for it. */
  readonly holding: (ip: Ip) => Iterable<PolicyView>;
  /** A few policies that come before this one and may be about the same pods. */
  readonly rivalsOf: (policy: PolicyView, spec: PolicySpecView) => readonly PolicyView[];
}

const families = [
  { field: 'ipv4', name: 'IPv4', setting: 'hasIpv4', key: 'feature.enableIPv4' },
  { field: 'ipv6', name: 'IPv6', setting: 'hasIpv6', key: 'feature.enableIPv6' },
] as const;

/** An address family, as fields, people and the configuration call it. */
export type FamilySetting = (typeof families)[number];

/** The first family that is used although the configuration turns it off; undefined when there is none. */
export const familyOff = (
  isUsed: (field: FamilySetting['field']) => boolean,
  { settings }: AdmissionView,
): FamilySetting | undefined => families.find(({ field, setting }) => isUsed(field) && !settings[setting]);

/** What `chooseGateway` looks at for these policies. */
export const lookupFor = (policies: readonly PolicyView[], { gateways, namespace }: AdmissionView): GatewayLookup => {
  const names = new Set(policies.map((policy) => policy.namespace));
  const namespaces = [...names].map((name) => (name === undefined ? undefined : namespace(name)));
  return lookupOf(
    gateways,
    namespaces.filter((view) => view !== undefined),
  );
};

/** The policies that use a gateway, by name or as their default. Those that are being deleted use nothing any more. */
export const policiesOf = (gateway: string, world: AdmissionView): PolicyView[] => {
  const unnamed = [...world.policies.naming('')];
  const lookup = lookupFor(unnamed, world);
  const byDefault = unnamed.filter((policy) => {
    const chosen = policy.spec && chooseGateway(policy, policy.spec, lookup);
    return chosen?.ok && chosen.value.name === gateway;
  });
  return [...world.policies.naming(gateway), ...byDefault].filter(({ isDeleting }) => !isDeleting);
};

/** The addresses that a policy has or asks for. */
export const addressesOf = ({ recorded, spec }: PolicyView): Ip[] => {
  const asked = spec?.address.kind === 'given' ? spec.address.eip : undefined;
  const all = new Set<Ip | undefined>([recorded.eip.ipv4, recorded.eip.ipv6, asked?.ipv4, asked?.ipv6]);
  return [...all].filter((ip) => ip !== undefined);
};

/** The address ranges of the cluster by what people call them; node addresses come from the Nodes themselves too. */
export const clusterPartsOf = (ranges: ClusterRanges, nodes: readonly NodeView[]): AdmissionView['clusterParts'] => [
  ['nodes', union(ranges.nodes, setOfIps(nodes.flatMap(({ addresses }) => addresses)))],
  ['API servers', ranges.apiServers],
  ['pods', ranges.pods],
  ['Services', ranges.services],
];
