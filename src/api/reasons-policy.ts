/** Reasons of gateways, policies and cluster info. */
import { failing, forbidden, good, happened, type ReasonDescription, refused, unknown } from './reason.ts';

/** Reasons by name; use them through reasons.ts. */
export const policyReasons = {
  Valid: good('Accepted', 'The object is valid and is acted on.'),
  NodePolicyUnknown: good(
    'Accepted',
    'The text in nodeSelector.policy means nothing; it works as "average".',
    'Write average, minimum or limit, or leave the field out.',
  ),
  SpecInvalid: refused(
    ['Accepted', 'Admission'],
    'The spec holds a value that is not allowed.',
    'Correct the field that the message names.',
  ),
  SelectorInvalid: refused(
    ['Accepted', 'Admission'],
    'A label selector cannot be read.',
    'Correct the key, operator or value that the message names.',
  ),
  FamilyDisabled: refused(
    ['Accepted', 'Admission'],
    'The object uses an address family that the configuration turns off.',
    'Set enableIPv4 or enableIPv6 in the configuration, or remove the addresses of that family.',
  ),
  PoolsOverlap: refused(
    ['Accepted', 'Admission'],
    'The pools share addresses with those of another gateway.',
    'Remove the addresses that the message names from one of the two gateways.',
  ),
  PoolOverlapsCluster: refused(
    ['Accepted', 'Admission'],
    'The pools hold addresses of nodes, pods or Services.',
    'Use addresses that nothing in the cluster has.',
  ),
  PoolsUnequal: refused(
    ['Accepted', 'Admission'],
    'The IPv4 and the IPv6 pool do not hold the same number of addresses.',
    'Add or remove addresses until the numbers in the message are equal, or give one family only.',
  ),
  PoolBelowUse: refused(
    ['Accepted', 'Admission'],
    'Addresses that policies use are no longer in the pool.',
    'Put them back, or move the policies that the message names first.',
  ),
  DefaultEipOutsidePool: refused(
    ['Accepted', 'Admission'],
    'The default EIP is not in the pool.',
    'Choose a default EIP from the pool, or leave the field empty.',
  ),
  ClusterDefaultTaken: refused(
    ['Accepted', 'Admission'],
    'Another gateway is the cluster default already.',
    'Set clusterDefault to false on one of the two.',
  ),
  GatewayNotFound: refused(
    ['Accepted', 'Admission'],
    'The gateway that the policy names does not exist.',
    'Create the gateway, or correct egressGatewayName.',
  ),
  NoDefaultGateway: refused(
    ['Accepted', 'Admission'],
    'The policy names no gateway, and neither the namespace nor the cluster has a default.',
    'Set egressGatewayName, label the namespace, or make a gateway the cluster default.',
  ),
  GatewayNotAccepted: refused(
    ['Accepted'],
    'The gateway of the policy is not accepted itself.',
    'See the condition Accepted of the gateway.',
  ),
  GatewayDeleting: refused(
    ['Accepted', 'Admission'],
    'The gateway of the policy is being deleted and takes no new policies.',
    'Use another gateway.',
  ),
  NamespaceNotAllowed: refused(
    ['Accepted', 'Admission'],
    'The gateway does not serve policies of this namespace.',
    'Add the namespace to allowedNamespaces of the gateway, or use another gateway.',
  ),
  EipOutsidePool: refused(
    ['Accepted', 'Admission'],
    'The EIP that the policy asks for is not in the pool of the gateway.',
    'Ask for an address of the pool, or add the address to it.',
  ),
  EipPairTaken: refused(
    ['Accepted', 'Admission'],
    'The IPv4 and the IPv6 EIP that the policy asks for belong to different pairs.',
    'Ask for the two addresses of one pair, or for one address only.',
  ),
  PoolEmpty: refused(
    ['Accepted', 'Admission'],
    'The gateway has no addresses, and the policy does not ask for the node IP.',
    'Add addresses to the gateway, or set useNodeIP.',
  ),
  NotAccepted: refused(
    ['Allocated', 'Programmed'],
    'Nothing is done because the object is not accepted.',
    'See the condition Accepted.',
  ),
  EipAllocated: good('Allocated', 'The policy has an EIP and a gateway node.'),
  NodeIpAllocated: good('Allocated', 'The policy has a gateway node and leaves with its address.'),
  NoMatchingNode: failing(
    ['Allocated', 'Ready'],
    'No node matches the selector of the gateway.',
    'Label a node, or correct nodeSelector.',
  ),
  NoReadyNode: failing(
    ['Allocated', 'Ready'],
    'Nodes match the selector of the gateway, but none of them is ready.',
    'See the EgressTunnels of the nodes that the message names.',
  ),
  NodeLacksFamily: failing(
    ['Allocated'],
    'No gateway node has an address of the family that the policy needs.',
    'Give the gateway nodes an address of that family, or use an EIP.',
  ),
  SlotsExhausted: failing(
    ['Allocated'],
    'All 16,383 slots are in use; every pair of policy and EIP needs one.',
    'Join policies, or delete policies that are not needed.',
  ),
  NotAllocated: failing(
    ['Programmed'],
    'There is nothing to program because nothing is allocated.',
    'See the condition Allocated.',
  ),
  KernelsInStep: good('Programmed', 'The kernel of every node concerned holds this generation.'),
  WaitingForNodes: failing(
    ['Programmed'],
    'Some nodes have not reported this generation yet, or the gateway node does not answer for the EIP yet.',
    'Wait a moment; if it lasts, look at the agents of the nodes that the message names.',
  ),
  NodeSilent: unknown(
    'Programmed',
    'A node concerned does not report; its kernel keeps the rules it has.',
    'Look at the agent of the node that the message names.',
  ),
  GatewayNodeNotReady: unknown(
    'Programmed',
    'Kubernetes says that the gateway node is not ready; whether it still carries the policy is not known.',
    'Look at the node that the message names.',
  ),
  ProblemsNotListed: unknown(
    'Programmed',
    'A node concerned has more problems than its report has room for; the policy may be among them.',
    'Solve the problems that `egctl status` lists for the node; the others then follow.',
  ),
  TrafficDropped: failing(
    ['Programmed'],
    'No gateway node can serve, and matching traffic is dropped as the policy says.',
    'Bring a gateway node back, or set onUnavailable to NodeIP.',
  ),
  TrafficOnNodeIp: failing(
    ['Programmed'],
    'No gateway node can serve, and matching traffic leaves with node IPs as the policy says.',
    'Bring a gateway node back, or set onUnavailable to Drop.',
  ),
  ShadowedByPolicy: good(
    'Shadowed',
    'Another policy matches the same traffic and comes first.',
    'Change priority, the pods or the destinations of one of the two if this is not wanted.',
  ),
  NodesReady: good('Ready', 'At least one node can carry EIPs.'),
  RangesDetected: good('Detected', 'Every range that was to be detected has been found.'),
  PodCidrNotFound: failing(
    ['Detected'],
    'No pod range was found; traffic between pods may be taken for traffic to the outside.',
    'Set podCidrMode to what the cluster uses, or list the pod ranges in extraCidr.',
  ),
  ServiceCidrNotFound: failing(
    ['Detected'],
    'No Service range was found; traffic to Services may be taken for traffic to the outside.',
    'List the Service ranges in extraCidr.',
  ),
  CalicoNotFound: failing(
    ['Detected'],
    'podCidrMode is calico, but the cluster has no Calico IPPools.',
    'Install Calico, or choose another podCidrMode.',
  ),
  GatewayInUse: refused(
    ['Accepted', 'Admission'],
    'The gateway is being deleted and serves the policies that still use it.',
    'Move or delete the policies that the message names; the gateway goes with the last of them.',
  ),
  ClusterInfoKept: forbidden(
    'The EgressClusterInfo named default cannot be deleted: without it, traffic inside the cluster would leave it.',
    'Edit it instead.',
  ),
  EipMoved: happened('An EIP is on another gateway node now.'),
  PolicyRebound: happened('A policy uses another gateway or EIP now.'),
  EipReleased: happened('The last policy of an EIP is gone; the EIP is free again.'),
} as const satisfies Record<string, ReasonDescription>;
