/** Reasons of nodes: the tunnel, the kernel, and the EIPs on it. An agent writes them into the report of its EgressTunnel. */
import { failing, good, happened, type ReasonDescription, refused, unknown } from './reason.ts';

/** Reasons by name; use them through reasons.ts. */
export const nodeReasons = {
  TunnelAllocated: good('Allocated', 'The node has a mark, tunnel addresses and a MAC address.'),
  TunnelRangeExhausted: refused(
    ['Allocated'],
    'The tunnel range has no address left for this node.',
    'Set a larger tunnelIpv4Subnet or tunnelIpv6Subnet in the configuration.',
  ),
  TunnelRangeOverlaps: failing(
    ['Allocated'],
    'The tunnel range overlaps addresses that others use.',
    'Set tunnelIpv4Subnet or tunnelIpv6Subnet in the configuration to a range that nobody uses; tunnels get other addresses then, which interrupts them for a moment.',
  ),
  TunnelReady: good('Ready', 'The tunnel device is up and other nodes are reached through it.'),
  TunnelAddressMissing: failing(
    ['Ready', 'Programmed'],
    'The controller has not given the node a tunnel address yet.',
    'Look at the controller.',
  ),
  ParentInterfaceMissing: failing(
    ['Ready', 'Programmed'],
    'The network interface that should carry the tunnel does not exist.',
    'Correct tunnelDetectMethod or tunnelDetectCustomInterface, or bring the interface up.',
  ),
  ParentAddressMissing: failing(
    ['Ready', 'Programmed'],
    'The network interface that should carry the tunnel has no usable address.',
    'Give it an address, or choose another interface in the configuration.',
  ),
  TunnelPortTaken: failing(
    ['Ready', 'Programmed'],
    'Another program or tunnel on the node uses the VXLAN port or identifier.',
    'Choose another vxlan.port or vxlan.id in the configuration.',
  ),
  DeviceNameTaken: failing(
    ['Ready', 'Programmed'],
    'Another device on the node has the name of the tunnel device or of the EIP device.',
    'Remove that device, or choose another vxlan.name in the configuration.',
  ),
  TunnelTooNarrow: failing(
    ['Ready', 'Programmed'],
    'The path between the nodes is too narrow for tunnel packets.',
    'Raise the MTU of the interface that the message names.',
  ),
  HeartbeatLost: failing(
    ['Ready'],
    'The agent of the node has not been heard of for longer than eipEvictionTimeout.',
    'Look at the node and its agent.',
  ),
  NodeNotReady: failing(['Ready'], 'Kubernetes says that the node is not ready.', 'Look at the node.'),
  AgentStarting: unknown(
    'Ready',
    'The agent of the node has not reported yet.',
    'Wait a moment, then look at the agent.',
  ),
  VxlanMissing: refused(['Ready', 'Programmed'], 'The kernel of the node has no VXLAN.', 'Load the module vxlan.'),
  GbpMissing: refused(
    ['Ready', 'Programmed'],
    'The kernel of the node cannot carry the slot in VXLAN packets (group policy extension).',
    'Use a kernel with VXLAN GBP (Linux 4.0 or newer).',
  ),
  NftMissing: refused(
    ['Ready', 'Programmed'],
    'The kernel of the node, or the image, has no nftables.',
    'Load the module nf_tables.',
  ),
  CapabilityMissing: refused(
    ['Ready', 'Programmed'],
    'The agent may not change the network of the node.',
    'Give the agent NET_ADMIN and NET_RAW, as the chart does.',
  ),
  SysctlRefused: failing(
    ['Ready', 'Programmed'],
    'A kernel setting that is needed could not be made.',
    'Make the setting that the message names on the node.',
  ),
  NftRefused: failing(
    ['Programmed'],
    'The kernel refused rules; what it had stays in force.',
    'Report the message; other policies are not touched.',
  ),
  RouteRefused: failing(
    ['Programmed'],
    'The kernel refused a route, rule, neighbour or address.',
    'Look for other programs that manage routes on the node that the message names.',
  ),
  GatewayUnreachable: failing(
    ['Programmed'],
    'The node has no way to the gateway node of the policy.',
    'Look at the EgressTunnels of the two nodes that the message names.',
  ),
  RangesUnknown: failing(
    ['Programmed'],
    'It is not known yet what belongs to the cluster, so policies without destSubnet do nothing.',
    'Look at the controller, which writes the status of EgressClusterInfo.',
  ),
  EipDeviceFailed: failing(
    ['Programmed'],
    'The device that holds EIPs could not be made.',
    'Load the module dummy or bridge on the node.',
  ),
  EipInUse: failing(
    ['Programmed', 'Ready', 'Event'],
    'Another machine answers for the EIP. If it did before the EIP was claimed, the EIP is not claimed; else it is kept and defended.',
    'Take the address off the machine whose MAC address the message names, or remove it from the pool.',
  ),
  EipConflictEnded: happened('Another machine that claimed an EIP was not heard for 10 seconds, though it was asked.'),
  AnnounceFailed: failing(
    ['Programmed'],
    'The EIP could not be announced on any interface.',
    'Bring an interface up that announcedInterfacesToExclude does not match.',
  ),
  DetectionSlowed: good(
    'Slowed',
    'The node notices the loss of a gateway node later than configured, because it or nodes that it watches have too little processor. EIPs stay where they are meanwhile.',
    'Give the nodes more processor, or see what takes it; a minute after messages come in time again the condition is gone.',
  ),
  UplinkLost: {
    ...good(
      'UplinkLost',
      'An interface that EIPs need has no carrier, or its router is silent in one family. EIPs of that family go to a node that reaches the outside, if there is one.',
      'Look at the interface and the router that the message names.',
    ),
    places: ['UplinkLost', 'Event'],
  },
  UplinkRestored: happened('An interface reaches the outside again in a family in which it did not.'),
  EipTakenOver: happened('A gateway node has taken over an EIP from a node that fell silent.'),
  OwnershipYielded: happened('A node has given up an EIP because another node owns it in a later epoch.'),
  DriftRepaired: happened('Rules, routes or addresses on a node were changed by somebody else and have been put back.'),
} as const satisfies Record<string, ReasonDescription>;
