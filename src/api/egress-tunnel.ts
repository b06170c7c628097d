/** EgressTunnel: one per node. The controller writes the addresses, the agent of the node its report. */
import { z } from 'zod';
import { conditions, observedGeneration } from './condition.ts';
import { RecordedElectorate } from './egress-cluster-info.ts';
import type { Immutable } from './immutable.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';
import { withRules } from './rule.ts';

/** The phases of a tunnel; what each means is in the description of `phase`. */
export const tunnelPhases = ['Pending', 'Init', 'Failed', 'Ready', 'HeartbeatTimeout', 'NodeNotReady'] as const;
export type TunnelPhase = (typeof tunnelPhases)[number];

const markPattern = '^0x[0-9a-f]{1,8}$';

const mark = withRules(
  z
    .string()
    .max(10)
    .describe('The packet mark that stands for this node, made from the node name. It never changes once it is set.'),
  {
    rule: `self == '' || self.matches('${markPattern}')`,
    message: 'mark must be a hexadecimal number of at most 32 bits such as 0x26d9b700',
    holds: (text) => text === '' || new RegExp(markPattern).test(text),
  },
  {
    rule: "oldSelf == '' || self == oldSelf",
    message: 'mark must not change once it is set: delete the EgressTunnel to have it made anew',
    reason: 'FieldValueForbidden',
    holds: 'server',
  },
).optional();

const Parent = z.object({
  name: z.string().describe('Name of the network interface under the tunnel.').optional(),
  ipv4: z.string().describe('IPv4 address of that interface.').optional(),
  ipv6: z.string().describe('IPv6 address of that interface.').optional(),
});

const Tunnel = z.object({
  ipv4: z.string().describe('IPv4 address of the node inside the tunnel network.').optional(),
  ipv6: z.string().describe('IPv6 address of the node inside the tunnel network.').optional(),
  mac: z.string().describe('MAC address of the tunnel device.').optional(),
  parent: Parent.describe('The interface that carries the tunnel packets.').optional(),
});

const HeldEip = z.object({
  ip: z.string().describe('The EIP.'),
  epoch: z.int().min(0).describe('How often the EIP has changed its node; the higher epoch is the owner.'),
});

const EipConflict = z.object({
  ip: z.string().describe('The EIP.'),
  mac: z.string().describe('MAC address of the other machine. No node of the cluster has it.'),
  interface: z.string().describe('Interface of the node on which the machine was heard.'),
});

const HeldGroup = z.object({
  gateway: z.string().describe('The gateway of the policies.'),
  node: z.string().describe('The node that the policies are recorded with; another one than this after a take-over.'),
  epoch: z.int().min(0).describe('How often the policies have changed the node that serves them.'),
});

const Problem = z.object({
  reason: z.string().describe('Why, as one of the reasons listed in the reference.'),
  message: z.string().describe('The same for people, with names and values.'),
  policy: z.string().describe('The policy concerned as `namespace/name`, or `name` for a cluster policy.').optional(),
});

const NodeReport = z.object({
  appliedRevision: z
    .string()
    .describe('The resourceVersion up to which the kernel of the node reflects all EgressPolicies.')
    .optional(),
  appliedClusterRevision: z
    .string()
    .describe('The resourceVersion up to which the kernel of the node reflects all EgressClusterPolicies.')
    .optional(),
  eips: z.array(HeldEip).describe('The EIPs that the node holds.').optional(),
  nodeGroups: z
    .array(HeldGroup)
    .describe('The policies that leave with the address of this node, as gateway nodes have agreed.')
    .optional(),
  electorate: RecordedElectorate.describe(
    'The electorate in force in the agent; reported by gateway nodes and voters only.',
  ).optional(),
  macAddresses: z
    .array(z.string())
    .describe(
      'MAC addresses by which a gateway node announces EIPs. Other nodes know by them who is no foreign machine.',
    )
    .optional(),
  conflicts: z
    .array(EipConflict)
    .describe('The EIPs of the node that another machine claims too; absent when there are none.')
    .optional(),
  detectionMilliseconds: z
    .int()
    .min(1)
    .describe(
      'After how long at the most the node takes another one for lost, while that is longer than configured because processors are short; absent otherwise.',
    )
    .optional(),
  problems: z
    .array(Problem)
    .describe('What the agent could not do; at most 50, those of the whole node first.')
    .optional(),
  unlistedProblems: z
    .int()
    .min(0)
    .describe('How many problems there are besides those listed; absent when all are.')
    .optional(),
});

/** The addresses that the controller gave, and the report of the agent. */
export const EgressTunnelStatus = z.object({
  phase: z
    .enum(tunnelPhases)
    .default('Pending')
    .describe(
      'Pending: no tunnel address yet. Init: addresses are set, the device is not. Ready: in use. Failed: the device could not be made, or no tunnel address or mark is left for the node. HeartbeatTimeout: the agent is silent. NodeNotReady: Kubernetes says so.',
    ),
  tunnel: Tunnel.describe('Addresses of the tunnel device.').optional(),
  mark,
  lastHeartbeatTime: z
    .string()
    .meta({ format: 'date-time' })
    .describe('When the agent of the node was last heard of.')
    .optional(),
  report: NodeReport.describe('What the agent of the node last reported.').optional(),
  observedGeneration,
  conditions,
});
/** As it is written: an agent says nothing about the phase. */
export type EgressTunnelStatus = Immutable<z.input<typeof EgressTunnelStatus>>;

/** A whole EgressTunnel. */
export const EgressTunnel = objectOf(`${gatewayGroup}/v1beta1`, 'EgressTunnel', {
  spec: z.object({}).describe('Nothing can be asked of a tunnel.').optional(),
  // The API server fills it in: a tunnel that nobody has written about yet, of whomever, shows what it waits for.
  status: EgressTunnelStatus.prefault({ phase: 'Pending' }).describe('The tunnel of the node.'),
}).describe('EgressTunnel is the tunnel end of one node; it has the name of the node. It is made by the controller.');
export type EgressTunnel = Immutable<z.infer<typeof EgressTunnel>>;
