/** PolicyPlan: what was decided about one policy, with a finding for each of its conditions. */
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { Eip, PolicyKey, PolicyView } from '../cluster/view.ts';
import type { GatewayNode, Placement } from '../gateways/placement.ts';
import { type Shadow, shadowedFinding } from '../policies/shadows.ts';

/** A policy together with the address, node and slot it has. */
export interface Binding {
  /** Undefined: the address of the node. */
  readonly eip: Eip | undefined;
  /** Undefined while no node of the gateway can be named. */
  readonly node: string | undefined;
  /** Undefined when all slots are in use. */
  readonly slot: number | undefined;
  /** True when traffic can leave this way now. */
  readonly isServing: boolean;
  /** The epoch of the EIP to record with the node; 0 when none is known. */
  readonly epoch: number;
}

/** What was decided about a policy. */
export interface PolicyPlan {
  readonly key: PolicyKey;
  readonly gateway: string | undefined;
  /** Undefined when the policy is refused. */
  readonly binding: Binding | undefined;
  /**
   * What happens to matching traffic: it goes to the gateway, is dropped, or leaves with the address of its own node.
   * Undefined when the policy cannot be read, so that nobody knows which traffic that is.
   */
  readonly traffic: 'gateway' | 'drop' | 'nodeIp' | undefined;
  readonly accepted: Finding;
  readonly allocated: Finding;
  /** Undefined when no other policy wins over this one, as far as can be said. */
  readonly shadowed: Finding | undefined;
  readonly shadows: readonly Shadow[];
}

/** True when two plans of a policy say the same, so that nothing has to be done that was not done for the other. */
export const isSamePolicyPlan = (a: PolicyPlan, b: PolicyPlan): boolean => a === b || saysTheSame(a, b);

const saysTheSame = (a: PolicyPlan, b: PolicyPlan): boolean =>
  a.key === b.key &&
  a.gateway === b.gateway &&
  a.traffic === b.traffic &&
  a.binding?.node === b.binding?.node &&
  a.binding?.slot === b.binding?.slot &&
  a.binding?.epoch === b.binding?.epoch &&
  a.binding?.isServing === b.binding?.isServing &&
  a.binding?.eip?.ipv4 === b.binding?.eip?.ipv4 &&
  a.binding?.eip?.ipv6 === b.binding?.eip?.ipv6 &&
  isSameFinding(a.accepted, b.accepted) &&
  isSameFinding(a.allocated, b.allocated) &&
  isSameFinding(a.shadowed, b.shadowed);

const isSameFinding = (a: Finding | undefined, b: Finding | undefined): boolean =>
  a?.reason === b?.reason && a?.sentence === b?.sentence;

/** The plan of a policy that gets nothing. */
export const refusedPolicy = (
  policy: PolicyView,
  gateway: string | undefined,
  accepted: Finding,
  shadows: readonly Shadow[],
): PolicyPlan => ({
  key: policy.key,
  gateway,
  binding: undefined,
  traffic: withoutGateway(policy),
  accepted,
  allocated: finding('NotAccepted', `Policy ${policy.key} is not accepted, so it has no address.`),
  shadowed: shadowedFinding(policy.key, shadows),
  shadows,
});

/** What a policy was given. */
export interface Grant {
  readonly gateway: string;
  readonly eip: Eip | undefined;
  readonly place: Placement;
  readonly slot: number | undefined;
  /** The nodes of the gateway. */
  readonly nodes: readonly GatewayNode[];
}

/** The plan of a policy that was accepted; parts of it that cannot be read are told in `accepted`. */
export const acceptedPolicy = (policy: PolicyView, grant: Grant, shadows: readonly Shadow[]): PolicyPlan => {
  const { gateway, eip, place, slot } = grant;
  const isServing = place.isServing && slot !== undefined;
  return {
    key: policy.key,
    gateway,
    binding: { eip, node: place.node, slot, isServing, epoch: place.epoch },
    traffic: isServing ? 'gateway' : withoutGateway(policy),
    accepted: policy.problems[0] ?? finding('Valid', `Policy ${policy.key} uses gateway ${gateway}.`),
    allocated: allocatedFinding(policy.key, grant),
    shadowed: shadowedFinding(policy.key, shadows),
    shadows,
  };
};

/**
 * True when acceptedPolicy would say again what the plan says, so that the plan can stay: most policies are served as
 * before, and making their sentences anew would cost a third of a plan.
 */
export const isStillServed = (
  { gateway, binding, accepted, shadows }: PolicyPlan,
  { problems: [problem] }: PolicyView,
  grant: Grant,
  shadowsNow: readonly Shadow[],
): boolean =>
  binding?.isServing === true &&
  grant.place.isServing &&
  gateway === grant.gateway &&
  binding.node === grant.place.node &&
  binding.slot === grant.slot &&
  binding.epoch === grant.place.epoch &&
  (binding.eip === undefined) === (grant.eip === undefined) &&
  binding.eip?.ipv4 === grant.eip?.ipv4 &&
  binding.eip?.ipv6 === grant.eip?.ipv6 &&
  (problem === undefined ? accepted.reason === 'Valid' : accepted === problem) &&
  isSameShadows(shadows, shadowsNow);

const isSameShadows = (a: readonly Shadow[], b: readonly Shadow[]): boolean =>
  a === b ||
  (a.length === b.length && a.every(({ by, extent }, index) => by === b[index]?.by && extent === b[index]?.extent));

const withoutGateway = ({ spec }: PolicyView): PolicyPlan['traffic'] => {
  if (spec === undefined) return undefined;
  return spec.onUnavailable === 'NodeIP' ? 'nodeIp' : 'drop';
};

const allocatedFinding = (key: PolicyKey, { gateway, eip, place, slot, nodes }: Grant): Finding => {
  if (slot === undefined) return finding('SlotsExhausted', `No slot is left for policy ${key}.`);
  const { node, isServing } = place;
  if (!isServing) return noNodeFinding(key, gateway, nodes);
  if (eip === undefined) {
    return finding('NodeIpAllocated', `Policy ${key} leaves with the address of node ${node} (slot ${slot}).`);
  }
  const addresses = [eip.ipv4, eip.ipv6].filter((ip) => ip !== undefined).join(' and ');
  return finding('EipAllocated', `Policy ${key} leaves with ${addresses} through node ${node} (slot ${slot}).`);
};

const noNodeFinding = (key: PolicyKey, gateway: string, nodes: readonly GatewayNode[]): Finding => {
  if (nodes.length === 0) {
    return finding('NoMatchingNode', `Gateway ${gateway} of policy ${key} selects no node.`);
  }
  if (nodes.some(({ isReady }) => isReady)) {
    return finding('NodeLacksFamily', `No node of gateway ${gateway} has the address that policy ${key} needs.`);
  }
  const names = listed(nodes.map(({ name }) => name));
  return finding('NoReadyNode', `Gateway ${gateway} of policy ${key} has no ready node; not ready: ${names}.`);
};
