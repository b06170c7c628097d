/** Every metric of the agent: its name, what it says, and its labels. */
import type { MetricDefinition } from '../../runtime/process/metric-definitions.ts';

export const agentMetricDefinitions = {
  passSeconds: {
    name: 'sallyport_node_pass_seconds',
    help: 'Duration of one pass: gather, decide, apply.',
    labels: ['result'],
  },
  passAge: {
    name: 'sallyport_node_pass_input_age_seconds',
    help: 'Time from the first change that asked for a pass to its end, when the kernel reflects it.',
    labels: [],
  },
  changes: {
    name: 'sallyport_node_changes_total',
    help: 'Changes made to the kernel because something was to be changed, by part.',
    labels: ['part'],
  },
  repairs: {
    name: 'sallyport_node_drift_repairs_total',
    help: 'Changes of somebody else to our part of the kernel that were put back, by part.',
    labels: ['part'],
  },
  cuts: {
    name: 'sallyport_connections_cut_total',
    help: 'Open connections that were cut because they began without the policies of their pods.',
    labels: [],
  },
  problems: {
    name: 'sallyport_node_problems',
    help: 'What the agent could not do, by reason.',
    labels: ['reason'],
  },
  eips: {
    name: 'sallyport_node_eips',
    help: 'EIPs that the node holds (state held), and those that it is to hold and may not claim (state unclaimed).',
    labels: ['state'],
  },
  conflicts: {
    name: 'sallyport_eip_conflicts_total',
    help: 'Answers of other machines for an EIP that the node is to hold or holds.',
    labels: ['eip'],
  },
  inUse: {
    name: 'sallyport_eip_in_use',
    help: '1 for each EIP of this node that another machine claims now, with the MAC address of that machine.',
    labels: ['eip', 'mac'],
  },
  uplinkLost: {
    name: 'sallyport_uplink_lost',
    help: '1 for each interface and family (ipv4, ipv6) by which EIPs do not reach the outside from this node.',
    labels: ['interface', 'family'],
  },
  takeovers: {
    name: 'sallyport_failover_takeovers_total',
    help: 'EIPs that this node has come to own, by cause.',
    labels: ['cause'],
  },
  yields: {
    name: 'sallyport_failover_yields_total',
    help: 'EIPs that this node has let go, by cause.',
    labels: ['cause'],
  },
  detection: {
    name: 'sallyport_failover_detection_seconds',
    help: 'Time from the last word of the owner before to the first claim of this node, at a take-over.',
    labels: [],
  },
  claim: {
    name: 'sallyport_failover_claim_seconds',
    help: 'Time from the first claim of this node to the majority, at a take-over.',
    labels: [],
  },
  silence: {
    name: 'sallyport_failover_silence_seconds',
    help: 'The longest time for which another node may be silent now before this one takes it for lost; longer than configured where processors are short.',
    labels: [],
  },
  widenings: {
    name: 'sallyport_failover_silence_widenings_total',
    help: 'How often that time became longer, because messages or timers came late.',
    labels: [],
  },
  switch: {
    name: 'sallyport_failover_switch_seconds',
    help: 'Time from the word of a new owner to the kernel sending there, on this node.',
    labels: [],
  },
  mirrored: {
    name: 'sallyport_mirror_connections',
    help: 'Connections of EIPs of this node that other nodes are told about (side owner), and those of other nodes that this one would carry on (side successor).',
    labels: ['side'],
  },
  mirrorLag: {
    name: 'sallyport_mirror_lag_seconds',
    help: 'Age of the oldest change of a connection that a successor has not confirmed.',
    labels: [],
  },
  mirrorBehind: {
    name: 'sallyport_mirror_behind',
    help: 'EIPs of this node, once for each successor that does not know all of their connections yet.',
    labels: [],
  },
  mirrorEvents: {
    name: 'sallyport_mirror_events_total',
    help: 'Connections made at take-overs (made), refused by the kernel then (refused), that found no room to be mirrored (dropped); times that a successor was told everything anew (reset).',
    labels: ['kind'],
  },
  policyPackets: {
    name: 'sallyport_policy_packets_total',
    help: 'Packets that pods of this node have sent under a policy.',
    labels: ['policy'],
  },
  policyBytes: {
    name: 'sallyport_policy_bytes_total',
    help: 'Bytes that pods of this node have sent under a policy.',
    labels: ['policy'],
  },
  eipPackets: {
    name: 'sallyport_eip_packets_total',
    help: 'Packets that left this node with an EIP (sent) or came back to it (received).',
    labels: ['eip', 'direction'],
  },
  eipBytes: {
    name: 'sallyport_eip_bytes_total',
    help: 'Bytes that left this node with an EIP (sent) or came back to it (received).',
    labels: ['eip', 'direction'],
  },
  drops: {
    name: 'sallyport_dropped_packets_total',
    help: 'Packets that were dropped because they could not leave with their EIP, by reason.',
    labels: ['reason'],
  },
  conntrackEntries: {
    name: 'sallyport_conntrack_entries',
    help: 'Connections in the connection table of the node.',
    labels: [],
  },
  conntrackLimit: {
    name: 'sallyport_conntrack_limit',
    help: 'Connections that fit into the connection table of the node.',
    labels: [],
  },
  conntrackFailures: {
    name: 'sallyport_conntrack_failures_total',
    help: 'New connections of the node that were lost: no source port was free (insert_failed) or no room (dropped).',
    labels: ['kind'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;
