/**
 * Which gateway a policy uses: the one it names, else the default of its namespace, else the default of the cluster;
 * and whether that gateway takes policies of the namespace.
 */
import { labels as labelNames } from '../../api/names.ts';
import { type Decided, decided, refusedWith } from '../cluster/finding.ts';
import { matches } from '../cluster/labels.ts';
import type { GatewayView, NamespaceView, PolicySpecView, PolicyView } from '../cluster/view.ts';
import { compareGatewayAge } from '../policies/precedence.ts';

/** What the choice looks at, indexed once per plan. */
export interface GatewayLookup {
  readonly gatewayByName: ReadonlyMap<string, GatewayView>;
  readonly namespaceByName: ReadonlyMap<string, NamespaceView>;
  readonly clusterDefault: GatewayView | undefined;
}

/** Indexes gateways and namespaces. */
export const lookupOf = (gateways: readonly GatewayView[], namespaces: readonly NamespaceView[]): GatewayLookup => ({
  gatewayByName: new Map(gateways.map((gateway) => [gateway.name, gateway])),
  namespaceByName: new Map(namespaces.map((namespace) => [namespace.name, namespace])),
  clusterDefault: gateways.filter(({ spec }) => spec?.isClusterDefault).toSorted(compareDefaults)[0],
});

/** Orders gateways that want to be the cluster default: one that stays before one that goes, then the older. */
const compareDefaults = (a: GatewayView, b: GatewayView): number =>
  Number(a.isDeleting) - Number(b.isDeleting) || compareGatewayAge(a, b);

/** The gateway of a policy, or why it has none. */
export const chooseGateway = (
  policy: PolicyView,
  spec: PolicySpecView,
  lookup: GatewayLookup,
): Decided<GatewayView> => {
  const found = findGateway(policy, spec, lookup);
  if (!found.ok) return found;
  const gateway = found.value;
  if (gateway.spec === undefined) {
    return refusedWith('GatewayNotAccepted', `Gateway ${gateway.name} of policy ${policy.key} cannot be read.`);
  }
  const { allowedNamespaces } = gateway.spec;
  if (policy.namespace === undefined || allowedNamespaces === undefined) return found;
  const labels = lookup.namespaceByName.get(policy.namespace)?.labels ?? {};
  const isAllowed =
    allowedNamespaces.names.includes(policy.namespace) ||
    (allowedNamespaces.selector !== undefined && matches(allowedNamespaces.selector, labels));
  if (isAllowed) return found;
  return refusedWith(
    'NamespaceNotAllowed',
    `Gateway ${gateway.name} does not serve namespace ${policy.namespace} of policy ${policy.key}.`,
  );
};

const findGateway = (policy: PolicyView, spec: PolicySpecView, lookup: GatewayLookup): Decided<GatewayView> => {
  const { gatewayByName, namespaceByName, clusterDefault } = lookup;
  const named = (name: string, who: string): Decided<GatewayView> => {
    const gateway = gatewayByName.get(name);
    return gateway === undefined
      ? refusedWith('GatewayNotFound', `${who} names the gateway ${name}, which does not exist.`)
      : decided(gateway);
  };
  if (spec.gatewayName !== '') return named(spec.gatewayName, `Policy ${policy.key}`);
  const label = labelNames.namespaceDefaultGateway;
  const byLabel = policy.namespace === undefined ? '' : namespaceByName.get(policy.namespace)?.labels[label];
  if (byLabel) return named(byLabel, `The label ${label} of namespace ${policy.namespace} (policy ${policy.key})`);
  return clusterDefault === undefined
    ? refusedWith('NoDefaultGateway', `Policy ${policy.key} names no gateway, and no gateway is a default for it.`)
    : decided(clusterDefault);
};
