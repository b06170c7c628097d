/** The rules about an EgressGateway that is written, and the one about its deletion. */
import { isDeepStrictEqual } from 'node:util';
import type { Reason } from '../../api/reasons.ts';
import { type Finding, finding, listed } from '../../core/cluster/finding.ts';
import { matches } from '../../core/cluster/labels.ts';
import type { GatewaySpecView, GatewayView, PolicyView } from '../../core/cluster/view.ts';
import { chooseGateway } from '../../core/gateways/choice.ts';
import {
  compareIps,
  contains,
  count,
  difference,
  formatSet,
  type IntervalSet,
  intersection,
  union,
} from '../../core/ip/index.ts';
import type { AdmissionRule, Advice, Objection, Subject } from './rule.ts';
import { type AdmissionView, addressesOf, familyOff, lookupFor, policiesOf } from './view.ts';

type GatewayRule = AdmissionRule<GatewayView>;

const poolsOf = ({ spec }: GatewayView): unknown => spec?.pools;
const problemOf = ({ problems }: GatewayView, ...reasons: readonly Reason[]): Finding | undefined =>
  problems.find(({ reason }) => reasons.includes(reason));
const unreadableOf = (view: GatewayView): Finding | undefined => problemOf(view, 'SpecInvalid', 'SelectorInvalid');
const wrongDefaultOf = (view: GatewayView): Finding | undefined => problemOf(view, 'DefaultEipOutsidePool');
const nodePolicyOf = (view: GatewayView): Finding | undefined => problemOf(view, 'NodePolicyUnknown');

/** In this order: first what is wrong with the object alone, then what it has to do with others, then advice. */
export const gatewayRules: readonly GatewayRule[] = [
  // The API server's own rules come first; this one has what CEL cannot say, such as the form of label keys.
  { name: 'gateway-readable', effect: 'refuse', about: unreadableOf, check: unreadable },
  { name: 'gateway-family', effect: 'refuse', about: poolsOf, check: withSpec(poolOfFamilyOff) },
  { name: 'gateway-pools-equal', effect: 'refuse', about: poolsOf, check: withSpec(unequalPools) },
  { name: 'gateway-default-eip', effect: 'refuse', about: wrongDefaultOf, check: withSpec(defaultOutside) },
  // An address on two gateways would be announced by two nodes.
  { name: 'gateway-pools-apart', effect: 'refuse', about: poolsOf, check: withSpec(sharedPools) },
  // An EIP that is also the address of a node, pod or Service would take its traffic.
  { name: 'gateway-pools-outside', effect: 'refuse', about: poolsOf, check: withSpec(poolsInCluster) },
  // Seed 000: an EIP in use may not leave the pool.
  { name: 'gateway-pools-in-use', effect: 'refuse', about: poolsOf, check: withSpec(poolsBelowUse) },
  {
    name: 'gateway-cluster-default',
    effect: 'refuse',
    about: ({ spec }) => spec?.isClusterDefault,
    check: withSpec(secondDefault),
  },
  { name: 'gateway-node-policy', effect: 'warn', about: nodePolicyOf, check: withSpec(unknownNodePolicy) },
  { name: 'gateway-nodes', effect: 'warn', about: ({ spec }) => spec?.nodes, check: withSpec(noNode) },
  {
    name: 'gateway-namespaces',
    effect: 'warn',
    about: ({ spec }) => spec?.allowedNamespaces,
    check: withSpec(namespacesLeftOut),
  },
];

/** The rule about the deletion of a gateway. */
export const gatewayDeletionRules: readonly GatewayRule[] = [
  // The finalizer keeps it until then: who deletes a namespace and then its gateway need not wait in between (ADR 0036).
  { name: 'gateway-in-use', effect: 'warn', about: ({ name }) => name, check: inUse },
];

/** A spec that cannot be read has been objected to already; there is nothing more to say about it. */
function withSpec<Answer>(
  check: (spec: GatewaySpecView, subject: Subject<GatewayView>, world: AdmissionView) => Answer | undefined,
): (subject: Subject<GatewayView>, world: AdmissionView) => Answer | undefined {
  return (subject, world) => subject.view.spec && check(subject.view.spec, subject, world);
}

function unreadable({ view }: Subject<GatewayView>): Objection | undefined {
  const found = unreadableOf(view);
  return found && { field: 'spec', ...found };
}

function poolOfFamilyOff(
  { pools }: GatewaySpecView,
  _: Subject<GatewayView>,
  world: AdmissionView,
): Objection | undefined {
  const off = familyOff((field) => pools[field].intervals.length > 0, world);
  if (off === undefined) return undefined;
  const what = `${listed(formatSet(pools[off.field]))} is ${off.name}, which ${off.key} of the configuration turns off.`;
  return { field: `spec.ippools.${off.field}`, ...finding('FamilyDisabled', what) };
}

function unequalPools({ pools }: GatewaySpecView): Objection | undefined {
  const [many4, many6] = [count(pools.ipv4), count(pools.ipv6)];
  if (many4 === 0n || many6 === 0n || many4 === many6) return undefined;
  const what = `ipv4 holds ${many4} addresses and ipv6 holds ${many6}; both must hold the same number.`;
  return { field: 'spec.ippools', ...finding('PoolsUnequal', what) };
}

function defaultOutside({ pools }: GatewaySpecView, { view }: Subject<GatewayView>): Objection | undefined {
  const found = wrongDefaultOf(view);
  if (found === undefined) return undefined;
  const allowed = listed(formatSet(union(pools.ipv4, pools.ipv6))) || 'nothing';
  return {
    field: 'spec.ippools',
    ...found,
    sentence: `${found.sentence} The pools hold ${allowed}.`,
  };
}

function sharedPools(
  spec: GatewaySpecView,
  { view }: Subject<GatewayView>,
  { gateways }: AdmissionView,
): Objection | undefined {
  const ours = bothPools(spec);
  for (const { name, spec: other } of gateways) {
    if (name === view.name || other === undefined) continue;
    const shared = intersection(ours, bothPools(other));
    if (shared.intervals.length === 0) continue;
    const what = `${listed(formatSet(shared))} is in the pools of gateway ${name} too; an address may be in one gateway only.`;
    return { field: 'spec.ippools', ...finding('PoolsOverlap', what) };
  }
  return undefined;
}

function poolsInCluster(spec: GatewaySpecView, _: Subject<GatewayView>, world: AdmissionView): Objection | undefined {
  const ours = bothPools(spec);
  for (const [part, set] of world.clusterParts) {
    const taken = intersection(ours, set);
    if (taken.intervals.length === 0) continue;
    const what = `${listed(formatSet(taken))} belongs to the ${part} of the cluster.`;
    return { field: 'spec.ippools', ...finding('PoolOverlapsCluster', what) };
  }
  return undefined;
}

function poolsBelowUse(
  spec: GatewaySpecView,
  { view, old }: Subject<GatewayView>,
  world: AdmissionView,
): Objection | undefined {
  if (old?.spec === undefined) return undefined;
  const leaving = difference(bothPools(old.spec), bothPools(spec));
  if (leaving.intervals.length === 0) return undefined;
  const users = policiesOf(view.name, world);
  const used = new Set(users.flatMap(addressesOf));
  const lost = new Set([...used].filter((ip) => contains(leaving, ip)));
  if (lost.size === 0) return undefined;
  const losers = users.filter((policy) => addressesOf(policy).some((ip) => lost.has(ip)));
  const addresses = listed([...lost].toSorted(compareIps));
  const what = `${addresses} would leave the pools but is in use by ${listed(namesOf(losers))}.`;
  return { field: 'spec.ippools', ...finding('PoolBelowUse', what) };
}

function secondDefault(
  { isClusterDefault }: GatewaySpecView,
  { view }: Subject<GatewayView>,
  { gateways }: AdmissionView,
): Objection | undefined {
  if (!isClusterDefault) return undefined;
  const other = gateways.find(
    ({ name, spec, isDeleting }) => name !== view.name && spec?.isClusterDefault && !isDeleting,
  );
  if (other === undefined) return undefined;
  const what = `true, but gateway ${other.name} is the cluster default already; only one gateway may be.`;
  return { field: 'spec.clusterDefault', ...finding('ClusterDefaultTaken', what) };
}

function unknownNodePolicy(_: GatewaySpecView, { view }: Subject<GatewayView>): Advice | undefined {
  const found = nodePolicyOf(view);
  return found && { field: 'spec.nodeSelector.policy', ...found };
}

function noNode({ nodes }: GatewaySpecView, { view }: Subject<GatewayView>, world: AdmissionView): Advice | undefined {
  if (world.nodes.some(({ labels }) => matches(nodes, labels))) return undefined;
  const what = `None of ${world.nodes.length} nodes matches, so gateway ${view.name} cannot carry an EIP.`;
  return { field: 'spec.nodeSelector.selector', ...finding('NoMatchingNode', what) };
}

/** Policies that this change would cut off from their gateway. */
function namespacesLeftOut(
  { allowedNamespaces }: GatewaySpecView,
  { view, old }: Subject<GatewayView>,
  world: AdmissionView,
): Advice | undefined {
  if (old === undefined || isDeepStrictEqual(allowedNamespaces, old.spec?.allowedNamespaces)) return undefined;
  const users = policiesOf(view.name, world);
  const gateways = world.gateways.map((gateway) => (gateway.name === view.name ? view : gateway));
  const lookup = lookupFor(users, { ...world, gateways });
  const cut = users.filter((policy) => {
    const chosen = policy.spec && chooseGateway(policy, policy.spec, lookup);
    return chosen?.ok === false && chosen.finding.reason === 'NamespaceNotAllowed';
  });
  if (cut.length === 0) return undefined;
  const sentence = `It leaves out the namespaces of ${listed(namesOf(cut))}, which will not be served any more. Add them, or move the policies to another gateway first.`;
  return { field: 'spec.allowedNamespaces', sentence };
}

function inUse({ view: { name } }: Subject<GatewayView>, world: AdmissionView): Advice | undefined {
  const users = policiesOf(name, world);
  if (users.length === 0) return undefined;
  const what = `Gateway ${name} serves ${listed(namesOf(users))} until they are gone, and takes no new policies.`;
  return { field: 'metadata.name', ...finding('GatewayInUse', what) };
}

const bothPools = ({ pools }: GatewaySpecView): IntervalSet => union(pools.ipv4, pools.ipv6);

const namesOf = (policies: readonly PolicyView[]): string[] =>
  policies.map(({ kind, key }) => `${kind} ${key}`).toSorted();
