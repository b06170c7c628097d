/** The rules about an EgressPolicy or EgressClusterPolicy that is written. Its deletion is always allowed. */
import { type Finding, finding, listed } from '../../core/cluster/finding.ts';
import type { Eip, GatewaySpecView, GatewayView, PolicySpecView, PolicyView } from '../../core/cluster/view.ts';
import { chooseGateway } from '../../core/gateways/choice.ts';
import { contains, difference, formatSet, intersection } from '../../core/ip/index.ts';
import { indexPolicies } from '../../core/policies/policy-index.ts';
import { precedenceSentence } from '../../core/policies/precedence.ts';
import { shadowsOf } from '../../core/policies/shadows.ts';
import type { AdmissionRule, Advice, Objection, Subject } from './rule.ts';
import { type AdmissionView, familyOff, lookupFor } from './view.ts';

type PolicyRule = AdmissionRule<PolicyView>;

const gatewayOf = ({ spec }: PolicyView): unknown => spec?.gatewayName;
const bindingOf = ({ spec }: PolicyView): unknown => [spec?.gatewayName, spec?.address];

/** In this order: the object alone, its gateway, its address, then advice. */
export const policyRules: readonly PolicyRule[] = [
  // The API server's own rules come first; this one has what CEL cannot say, such as the form of label keys.
  { name: 'policy-readable', effect: 'refuse', about: ({ problems }) => problems, check: unreadable },
  { name: 'policy-gateway', effect: 'refuse', about: gatewayOf, check: withSpec(noGateway) },
  { name: 'policy-namespace', effect: 'refuse', about: gatewayOf, check: withSpec(namespaceNotAllowed) },
  { name: 'policy-gateway-stays', effect: 'refuse', about: gatewayOf, check: withGateway(gatewayDeleting) },
  { name: 'policy-family', effect: 'refuse', about: bindingOf, check: withSpec(eipOfFamilyOff) },
  { name: 'policy-pool', effect: 'refuse', about: bindingOf, check: withGateway(poolEmpty) },
  { name: 'policy-eip', effect: 'refuse', about: bindingOf, check: withGateway(eipOutside) },
  // The two addresses of an EIP stay together as long as a policy uses one of them.
  { name: 'policy-pair', effect: 'refuse', about: bindingOf, check: withGateway(pairTaken) },
  {
    name: 'policy-destinations',
    effect: 'warn',
    about: ({ spec }) => spec?.destinations,
    check: withSpec(insideCluster),
  },
  { name: 'policy-shadowed', effect: 'warn', about: ({ spec }) => spec, check: withSpec(shadowed) },
];

/** A spec that cannot be read has been objected to already; there is nothing more to say about it. */
function withSpec<Answer>(
  check: (spec: PolicySpecView, policy: PolicyView, world: AdmissionView) => Answer | undefined,
): (subject: Subject<PolicyView>, world: AdmissionView) => Answer | undefined {
  return ({ view }, world) => view.spec && check(view.spec, view, world);
}

/** The same for rules about a gateway that was found and takes the policy. */
function withGateway(
  check: (gateway: Gateway, spec: PolicySpecView, policy: PolicyView, world: AdmissionView) => Objection | undefined,
): (subject: Subject<PolicyView>, world: AdmissionView) => Objection | undefined {
  return withSpec((spec, policy, world) => {
    const chosen = chooseGateway(policy, spec, lookupFor([policy], world));
    if (!chosen.ok || chosen.value.spec === undefined) return undefined;
    return check({ ...chosen.value, spec: chosen.value.spec }, spec, policy, world);
  });
}

interface Gateway extends GatewayView {
  readonly spec: GatewaySpecView;
}

function unreadable({ view: { problems } }: Subject<PolicyView>): Objection | undefined {
  const [found] = problems;
  return found && { field: 'spec', ...found };
}

function noGateway(spec: PolicySpecView, policy: PolicyView, world: AdmissionView): Objection | undefined {
  const chosen = chooseGateway(policy, spec, lookupFor([policy], world));
  if (chosen.ok || chosen.finding.reason === 'NamespaceNotAllowed') return undefined;
  const names = world.gateways.map(({ name }) => name).toSorted();
  return gatewayObjection(
    chosen.finding,
    names.length === 0 ? 'There is no gateway yet.' : `There are: ${listed(names)}.`,
  );
}

function namespaceNotAllowed(spec: PolicySpecView, policy: PolicyView, world: AdmissionView): Objection | undefined {
  const lookup = lookupFor([policy], world);
  const chosen = chooseGateway(policy, spec, lookup);
  if (chosen.ok || chosen.finding.reason !== 'NamespaceNotAllowed') return undefined;
  const open = world.gateways
    .filter(({ name }) => chooseGateway(policy, { ...spec, gatewayName: name }, lookup).ok)
    .map(({ name }) => name);
  const allowed =
    open.length === 0 ? 'No gateway serves this namespace.' : `Gateways that do: ${listed(open.toSorted())}.`;
  return gatewayObjection(chosen.finding, allowed);
}

const gatewayObjection = (found: Finding, allowed: string): Objection => ({
  field: 'spec.egressGatewayName',
  ...found,
  sentence: `${found.sentence} ${allowed}`,
});

function gatewayDeleting({ name, isDeleting }: Gateway): Objection | undefined {
  if (!isDeleting) return undefined;
  return {
    field: 'spec.egressGatewayName',
    ...finding('GatewayDeleting', `Gateway ${name} is being deleted and takes no policies.`),
  };
}

function eipOfFamilyOff({ address }: PolicySpecView, _: PolicyView, world: AdmissionView): Objection | undefined {
  if (address.kind !== 'given') return undefined;
  const off = familyOff((field) => address.eip[field] !== undefined, world);
  if (off === undefined) return undefined;
  const what = `${address.eip[off.field]} is ${off.name}, which ${off.key} of the configuration turns off.`;
  return { field: `spec.egressIP.${off.field}`, ...finding('FamilyDisabled', what) };
}

function poolEmpty({ name, spec: { pools } }: Gateway, { address }: PolicySpecView): Objection | undefined {
  if (address.kind === 'nodeIp' || pools.ipv4.intervals.length + pools.ipv6.intervals.length > 0) return undefined;
  const what = `Gateway ${name} has no addresses to give; it serves policies with useNodeIP only.`;
  return { field: 'spec.egressIP.useNodeIP', ...finding('PoolEmpty', what) };
}

function eipOutside({ name, spec: { pools } }: Gateway, { address }: PolicySpecView): Objection | undefined {
  if (address.kind !== 'given') return undefined;
  for (const family of ['ipv4', 'ipv6'] as const) {
    const ip = address.eip[family];
    if (ip === undefined || contains(pools[family], ip)) continue;
    const held = listed(formatSet(pools[family])) || `no ${family} address`;
    const what = `${ip} is not in the pool of gateway ${name}, which holds ${held}.`;
    return { field: `spec.egressIP.${family}`, ...finding('EipOutsidePool', what) };
  }
  return undefined;
}

function pairTaken(
  { name, spec: { defaultEip } }: Gateway,
  { address }: PolicySpecView,
  policy: PolicyView,
  world: AdmissionView,
): Objection | undefined {
  if (address.kind !== 'given' || address.eip.ipv4 === undefined || address.eip.ipv6 === undefined) return undefined;
  const { ipv4, ipv6 } = address.eip;
  const holders = [ipv4, ipv6].flatMap((ip) => [...world.policies.holding(ip)]);
  const rival = holders.find(({ key, recorded }) => key !== policy.key && splits(recorded.eip, { ipv4, ipv6 }));
  const pair = rival?.recorded.eip ?? (splits(defaultEip, { ipv4, ipv6 }) ? defaultEip : undefined);
  if (pair === undefined) return undefined;
  const owner = rival === undefined ? `the default EIP of gateway ${name} is` : `policy ${rival.key} has`;
  const what = `${ipv4} with ${ipv6} is not one pair: ${owner} ${pair.ipv4} with ${pair.ipv6}.`;
  return { field: 'spec.egressIP', ...finding('EipPairTaken', what) };
}

/** True when a pair has one of the two addresses asked for together with another address. */
const splits = (pair: Eip, { ipv4, ipv6 }: Eip): boolean =>
  pair.ipv4 !== undefined && pair.ipv6 !== undefined && (pair.ipv4 === ipv4) !== (pair.ipv6 === ipv6);

function insideCluster(
  { destinations, exceptions }: PolicySpecView,
  _: PolicyView,
  world: AdmissionView,
): Advice | undefined {
  if (destinations === undefined) return undefined;
  const parts = [...world.clusterParts, ['extra ranges', world.ranges.custom] as const];
  for (const [part, set] of parts) {
    const inside = intersection(difference(destinations, exceptions), set);
    if (inside.intervals.length === 0) continue;
    const sentence = `${listed(formatSet(inside))} belongs to the ${part} of the cluster and would leave it through the gateway. Remove it, or list it in exceptSubnet.`;
    return { field: 'spec.destSubnet', sentence };
  }
  return undefined;
}

function shadowed(spec: PolicySpecView, policy: PolicyView, world: AdmissionView): Advice | undefined {
  const rivals = world.policies.rivalsOf(policy, spec);
  if (rivals.length === 0) return undefined;
  const own = policy.namespace === undefined ? undefined : world.namespace(policy.namespace);
  const index = indexPolicies([...rivals, policy]);
  const shadows = shadowsOf(index, world.ranges, own === undefined ? [] : [own]).get(policy.key);
  const [first] = shadows ?? [];
  const winner = rivals.find(({ key }) => key === first?.by);
  if (first === undefined || winner === undefined) return undefined;
  const what = `${precedenceSentence(winner, policy)} It takes ${first.extent} of the traffic of ${policy.key}.`;
  return { field: 'spec', ...finding('ShadowedByPolicy', what) };
}
