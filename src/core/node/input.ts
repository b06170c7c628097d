/** NodeInput: what NodeDesired is made from. Everything the agent of a node knows, already read. */
import type { Finding } from '../cluster/finding.ts';
import type { AddressPair, ClusterRanges, NamespaceView, PodView, PolicyView, TunnelView } from '../cluster/view.ts';
import type { Ip, IpFamily } from '../ip/index.ts';
import type { EipHold } from '../ownership/port.ts';

/**
 * What the agent of a node knows. Lists keep their identity while nothing in them changes: the work of the last call is
 * used again for those that are the same value.
 */
export interface NodeInput {
  /** Name of the node. */
  readonly node: string;
  readonly settings: NodeSettings;
  readonly host: HostView;
  /** Undefined until EgressClusterInfo was read: then nothing may be called outside the cluster. */
  readonly ranges: ClusterRanges | undefined;
  readonly tunnels: readonly TunnelView[];
  readonly policies: readonly PolicyView[];
  readonly namespaces: readonly NamespaceView[];
  /** Pods of this node only. */
  readonly pods: readonly PodView[];
  /** EIPs that may not be claimed now, and why: another machine answers for them, or it is not known yet. */
  readonly unclaimable: ReadonlyMap<Ip, Finding | 'probing'>;
  /** From the last NodeDesired, or read from the kernel at the start. */
  readonly gatewayNumbers: ReadonlyMap<string, number>;
  /** What nodes have agreed on among themselves; undefined where they do not: then what is recorded decides. */
  readonly ownership: NodeOwnership | undefined;
}

/**
 * Who owns which EIP by the protocol of src/core/ownership, as this node knows it. Each part keeps its identity while
 * nothing in it changes. Of a pair, the IPv4 address stands for both.
 */
export interface NodeOwnership {
  /** EIP -> its owner, where it is another one than the record says. */
  readonly owners: ReadonlyMap<Ip, string>;
  /** EIP -> what this node does for it. */
  readonly holds: ReadonlyMap<Ip, EipHold>;
  /** EIPs that this node may have to take over: all but the answering lies ready. */
  readonly standbys: ReadonlySet<Ip>;
  /** Nodes that may come to own an EIP: ways to them lie ready. */
  readonly gateways: ReadonlySet<string>;
}

/** What the configuration says about a node. */
export interface NodeSettings {
  readonly hasIpv4: boolean;
  readonly hasIpv6: boolean;
  readonly device: string;
  readonly holder: string;
  readonly vxlanId: number;
  readonly port: number;
  readonly hasChecksums: boolean;
  readonly hasGro: boolean;
  /** Names of interfaces that match one of these carry no announcements. */
  readonly notAnnounced: readonly RegExp[];
  /** Whether a pod of this node that is not known yet is kept from the outside. */
  readonly isStrict: boolean;
}

/** What the agent read from the kernel. */
export interface HostView {
  /** The interface that carries the tunnel, or why there is none. */
  readonly parent: ParentView | { readonly finding: Finding };
  /** All interfaces that are up and speak Ethernet, without our own and those of pods. */
  readonly interfaces: readonly InterfaceView[];
  /** The default routes of others, of each family the best first. */
  readonly defaults: readonly DefaultRoute[];
}

export interface DefaultRoute {
  readonly family: IpFamily;
  readonly interface: string;
  /** The router, of several the first; undefined where there is none in between. */
  readonly nextHop: Ip | undefined;
}

export interface ParentView extends AddressPair {
  readonly name: string;
  readonly mtu: number;
}

/** The parent interface of a host, if it has one. */
export const parentIn = ({ parent }: HostView): ParentView | undefined => ('finding' in parent ? undefined : parent);

export interface InterfaceView {
  readonly name: string;
  readonly mac: string;
  /** Networks that are reached on the interface without a router, as CIDRs. */
  readonly networks: readonly string[];
}
