/**
 * What a plan writes into statuses, without conditions: those carry times, which the controller knows. Reading these
 * back with project/ and planning again gives the same plan.
 */
import type { EgressGatewayStatus } from '../../api/egress-gateway.ts';
import type { EgressTunnelStatus } from '../../api/egress-tunnel.ts';
import type { PolicyStatus } from '../../api/policy.ts';
import type { Eip, PolicyKey } from '../cluster/view.ts';
import type { EipPlan, GatewayPlan } from '../plan/gateway-plan.ts';
import type { PolicyPlan } from '../plan/policy-plan.ts';
import type { TunnelPlan } from '../tunnels/tunnels.ts';

/**
 * The binding of a policy: the record that allocation is stable against. Empty for a refused policy. Without an EIP there is
 * no `eip`: an API server that takes the last field out of an object makes it null, which it then refuses.
 */
export const recordPolicy = ({
  binding,
  gateway,
}: PolicyPlan): Pick<PolicyStatus, 'eip' | 'gateway' | 'node' | 'slot' | 'epoch'> => {
  if (binding === undefined) return {};
  const { eip, node, slot, epoch } = binding;
  const recorded = recordEip(eip);
  return {
    ...(Object.keys(recorded).length === 0 ? { gateway } : { eip: recorded }),
    ...(node === undefined ? {} : { node }),
    ...(slot === undefined ? {} : { slot }),
    ...(epoch === 0 ? {} : { epoch }),
  };
};

/** The nodes of a gateway with their EIPs, and the use of its pools. */
export const recordGateway = ({ nodes, usage }: GatewayPlan): Pick<EgressGatewayStatus, 'nodeList' | 'ipUsage'> => ({
  nodeList: nodes.map(({ name, phase, eips }) => ({
    name,
    status: phase,
    // Absent where there are none, as users of the Go implementation find it.
    ...(eips.length === 0 ? {} : { eips: eips.map(recordGatewayEip) }),
  })),
  ipUsage: usage,
});

const recordGatewayEip = (eip: EipPlan) => ({
  ...recordEip(eip),
  ...(eip.epoch === 0 ? {} : { epoch: eip.epoch }),
  policies: eip.policies.map(referenceOf),
});

/** The mark, addresses and phase of a tunnel; the parent interface is written by the agent. */
export const recordTunnel = (plan: TunnelPlan): Pick<EgressTunnelStatus, 'phase' | 'mark' | 'tunnel'> => {
  const { phase, mark, mac } = plan;
  return {
    phase,
    ...(mark === undefined ? {} : { mark }),
    tunnel: { ...recordEip(plan), ...(mac === undefined ? {} : { mac }) },
  };
};

const recordEip = (eip: Eip | undefined): { ipv4?: string; ipv6?: string } => ({
  ...(eip?.ipv4 === undefined ? {} : { ipv4: eip.ipv4 }),
  ...(eip?.ipv6 === undefined ? {} : { ipv6: eip.ipv6 }),
});

const referenceOf = (key: PolicyKey): { name: string; namespace: string } => {
  const slash = key.indexOf('/');
  return { name: key.slice(slash + 1), namespace: slash < 0 ? '' : key.slice(0, slash) };
};
