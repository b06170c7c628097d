/**
 * ClusterView is everything that decisions are made from: the few fields of the API objects that matter, already read.
 * The functions in project/ make it; plan() and explain() take it. Lists may come in any order.
 *
 * A part of an object that cannot be read is a finding in its `problems`, and stands in the view as the value that
 * selects or offers nothing. An object whose spec cannot be read at all has no `spec`.
 */
import type { NodePolicy } from '../../api/egress-gateway.ts';
import type { TunnelPhase } from '../../api/egress-tunnel.ts';
import type { Cidr, IntervalSet, Ip, IpFamily, Ipv4, Ipv6 } from '../ip/index.ts';
import type { Finding } from './finding.ts';
import type { Labels, Selector } from './labels.ts';

declare const brand: unique symbol;

/** `namespace/name` of an EgressPolicy, `name` of an EgressClusterPolicy. Made by policyKey. */
export type PolicyKey = string & { readonly [brand]: 'PolicyKey' };

/** The key of a policy; a cluster policy has no namespace. */
export const policyKey = (namespace: string | undefined, name: string): PolicyKey =>
  // Names hold no slash, so no two policies share a key: this is the only place that makes one.
  (namespace === undefined ? name : `${namespace}/${name}`) as PolicyKey;

/** At most one address of each family. */
export interface AddressPair {
  readonly ipv4: Ipv4 | undefined;
  readonly ipv6: Ipv6 | undefined;
}

/** The address of a family, if the pair has one. */
export const ofPair = ({ ipv4, ipv6 }: AddressPair, family: IpFamily): Ip | undefined => (family === 4 ? ipv4 : ipv6);

/** An egress IP: one address, or a pair of both families that stays together. */
export interface Eip extends AddressPair {}

/** What is known about the cluster. */
export interface ClusterView {
  readonly settings: Settings;
  readonly ranges: ClusterRanges;
  readonly nodes: readonly NodeView[];
  readonly tunnels: readonly TunnelView[];
  readonly gateways: readonly GatewayView[];
  readonly policies: readonly PolicyView[];
  readonly namespaces: readonly NamespaceView[];
}

/**
 * Who votes. Two owners are impossible because any two majorities share a voter; so an electorate changes by one voter at
 * a time, the API server included, and not again before the nodes have the last one.
 */
export interface Electorate {
  readonly generation: number;
  /** Nodes, at most 30, in the same order everywhere. */
  readonly voters: readonly string[];
  /** Whether the API server has a vote, by a lease: the one that decides where there are two nodes. */
  readonly hasApi: boolean;
}

/** What the configuration says. */
export interface Settings {
  readonly hasIpv4: boolean;
  readonly hasIpv6: boolean;
  /** Addresses that tunnel devices may have, by family. */
  readonly tunnelRanges: { readonly ipv4: IntervalSet; readonly ipv6: IntervalSet };
  /** Makes the choices of the allocator `random` differ between clusters; the same text gives the same choices. */
  readonly seed: string;
}

/** Addresses that belong to the cluster, by what they are; from EgressClusterInfo. */
export interface ClusterRanges {
  /** False until somebody has detected them: then nothing may be called outside the cluster. */
  readonly isKnown: boolean;
  readonly services: IntervalSet;
  readonly nodes: IntervalSet;
  /** They need not be nodes. */
  readonly apiServers: IntervalSet;
  readonly pods: IntervalSet;
  readonly custom: IntervalSet;
}

export interface NodeView {
  readonly name: string;
  readonly isReady: boolean;
  /** True when somebody wants no EIPs on it. */
  readonly isDraining: boolean;
  readonly labels: Labels;
  readonly addresses: readonly Ip[];
  readonly podCidrs: readonly Cidr[];
}

export interface NamespaceView {
  readonly name: string;
  readonly labels: Labels;
}

/** An EgressTunnel: what the controller recorded, and what the agent of the node says. */
export interface TunnelView {
  readonly node: string;
  readonly createdAtMs: number;
  readonly isDeleting: boolean;
  readonly recorded: RecordedTunnel;
  /** Addresses of the interface that carries the tunnel, as the agent reports them. */
  readonly parent: AddressPair;
  /** Whether the agent was heard of in time: a fact for plan(), which knows no clock. */
  readonly heartbeat: 'fresh' | 'stale' | 'never';
  readonly device: DeviceView;
  /** EIPs that the agent says its kernel holds. */
  readonly held: readonly { readonly ip: Ip; readonly epoch: number }[];
  /** EIPs that the node holds and another machine claims. */
  readonly conflicts: readonly EipConflict[];
  /** After how long the node notices a loss, while that is longer than configured. */
  readonly detectionMs: number | undefined;
  /** What the agent says of families by which EIPs do not reach the outside from the node; undefined when they do. */
  readonly uplink: Finding | undefined;
  /** The MAC addresses by which the node announces EIPs. */
  readonly macs: readonly string[];
  /** The electorate in force in the agent; undefined when it reports none. */
  readonly electorate: Electorate | undefined;
}

export interface RecordedTunnel extends AddressPair {
  readonly mark: string | undefined;
  readonly mac: string | undefined;
  readonly phase: TunnelPhase | undefined;
}

/** Another machine, which is no node of the cluster, says that it has an EIP. */
export interface EipConflict {
  readonly ip: Ip;
  readonly mac: string;
  /** The interface of the node on which it was heard. */
  readonly interface: string;
}

/** The tunnel device as the agent reports it. */
export type DeviceView =
  | { readonly kind: 'unreported' }
  | { readonly kind: 'up' }
  | { readonly kind: 'failed'; readonly finding: Finding };

export interface GatewayView {
  readonly name: string;
  readonly createdAtMs: number;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly spec: GatewaySpecView | undefined;
  /** Where somebody wants EIPs to be. */
  readonly moves: ReadonlyMap<Ip, string>;
  readonly problems: readonly Finding[];
}

export interface GatewaySpecView {
  readonly pools: { readonly ipv4: IntervalSet; readonly ipv6: IntervalSet };
  readonly defaultEip: Eip;
  readonly nodes: Selector;
  readonly nodePolicy: NodePolicy;
  readonly nodeLimit: number;
  readonly eipLimit: number;
  /** Undefined: every namespace. */
  readonly allowedNamespaces:
    | { readonly names: readonly string[]; readonly selector: Selector | undefined }
    | undefined;
  readonly isClusterDefault: boolean;
  /** Whether connections are mirrored to the next node of their EIP. */
  readonly keepsConnections: boolean;
}

export interface PolicyView {
  readonly key: PolicyKey;
  readonly kind: 'EgressPolicy' | 'EgressClusterPolicy';
  /** Undefined for a cluster policy. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly createdAtMs: number;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly spec: PolicySpecView | undefined;
  readonly recorded: RecordedBinding;
  readonly problems: readonly Finding[];
}

export interface PolicySpecView {
  /** Empty: the default of the namespace or cluster. */
  readonly gatewayName: string;
  readonly address: AddressRequest;
  readonly appliedTo: AppliedTo;
  /** Undefined: everything outside the cluster. */
  readonly destinations: IntervalSet | undefined;
  readonly exceptions: IntervalSet;
  readonly priority: number;
  readonly onUnavailable: 'Drop' | 'NodeIP';
  readonly onExistingConnections: 'Cut' | 'Keep';
}

export type AddressRequest =
  | { readonly kind: 'nodeIp' }
  | { readonly kind: 'given'; readonly eip: Eip }
  | { readonly kind: 'allocated'; readonly allocator: 'default' | 'rr' | 'random' | 'limit' };

/** Whom a policy is about. `namespaces` is undefined for a namespaced policy, which is about its own. */
export type AppliedTo =
  | { readonly kind: 'labels'; readonly pods: Selector; readonly namespaces: Selector | undefined }
  | { readonly kind: 'subnet'; readonly subnet: IntervalSet; readonly namespaces: Selector | undefined };

/** The binding that the status of a policy records. A binding without addresses but with a slot uses the node IP. */
export interface RecordedBinding {
  readonly eip: Eip;
  /** Recorded without an EIP only: what has an EIP is of the gateway that has it in its pools. */
  readonly gateway: string | undefined;
  readonly node: string | undefined;
  readonly slot: number | undefined;
  /** The epoch of the EIP that was known when the node was recorded; 0 when none was. */
  readonly epoch: number;
}

/** A pod, as far as policies look at it. */
export interface PodView {
  readonly namespace: string;
  readonly name: string;
  readonly node: string | undefined;
  readonly labels: Labels;
  readonly ipv4: readonly Ipv4[];
  readonly ipv6: readonly Ipv6[];
  readonly isHostNetwork: boolean;
  /** Succeeded or Failed: its address may belong to another pod by now. */
  readonly isFinished: boolean;
}
