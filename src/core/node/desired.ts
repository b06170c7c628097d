/**
 * NodeDesired: everything that the kernel of one node should hold because of Sallyport, as one plain value.
 * desired-for.ts makes it; src/dataplane compares it with the kernel and makes it so. Lists are sorted and hold no doubles;
 * maps have no order.
 */
import type { Finding } from '../cluster/finding.ts';
import type { PolicyKey } from '../cluster/view.ts';
import type { Ip, IpFamily, Ipv6 } from '../ip/index.ts';
import type { ExistingRules } from './existing.ts';

/** What one node should hold. */
export interface NodeDesired {
  readonly table: TableDesired;
  readonly network: NetworkDesired;
  /** Kernel settings by path below /proc/sys (`net/ipv4/ip_forward`). A path that does not exist is a problem. */
  readonly sysctls: ReadonlyMap<string, string>;
  /** What decides whether connections that are there already may go on. */
  readonly existing: ExistingRules;
  /** EIPs that this node owns. */
  readonly claims: readonly Claim[];
  /** EIP -> the epoch of its owner, for those of `claims` that have one. */
  readonly epochs: ReadonlyMap<Ip, number>;
  /** EIPs that this node is to own by record, and that lie ready until nodes have agreed. */
  readonly expected: readonly Claim[];
  /** EIPs of other nodes that lie ready here: everything is as for an owned one, but the gate is shut. */
  readonly standbys: readonly Claim[];
  /** EIPs that this node is to own but that are in `unclaimable` now: the agent goes on asking the network about them. */
  readonly unclaimed: readonly Claim[];
  /** Those of them about which the network is being asked, behind a gate: the table has them already, only the address is missing. */
  readonly awaited: readonly Claim[];
  /** What stands for the node groups that this node serves, or may come to serve, with its own address. */
  readonly nodeGroups: ReadonlySet<Ip>;
  /** What cannot be done on this node and why. Everything else is done all the same. */
  readonly problems: readonly NodeProblem[];
  /** The numbers of gateway nodes that marks and routing tables are made of; input of the next NodeDesired. */
  readonly gatewayNumbers: ReadonlyMap<string, number>;
}

/** What the nftables table holds: its chains follow from the settings alone, everything else is an element. */
export interface TableDesired {
  readonly settings: TableSettings;
  readonly elements: TableElements;
}

/** All that the text of the chains depends on. */
export interface TableSettings {
  /** Name of the tunnel device. */
  readonly device: string;
  /** The interface that carries the tunnel; undefined while there is none. */
  readonly parent: string | undefined;
  /** UDP port of the tunnel. */
  readonly port: number;
  /** The largest TCP segments that fit through the tunnel. */
  readonly mss: { readonly ipv4: number; readonly ipv6: number };
  /** Whether EIPs leave only while this node owns them, as nodes agree among themselves; see src/dataplane/gate. */
  readonly isGated: boolean;
  /** Whether a pod that the agent does not know yet is kept from the outside. */
  readonly isStrict: boolean;
}

/**
 * The sets and maps of the table, by name. What they mean is in ruleset.ts of src/dataplane/nft. A set is a map to the
 * empty text. Keys and values are written as nft prints them: marks as 0x and eight lower-case digits, ranges as a CIDR
 * where they are one, else `first-last`, single addresses plain, parts of a joined key with ` . ` between them.
 */
export const containers = {
  vteps4: { key: 'ipv4_addr' },
  vteps6: { key: 'ipv6_addr' },
  eips4: { key: 'ipv4_addr' },
  eips6: { key: 'ipv6_addr' },
  cluster4: { key: 'ipv4_addr', isInterval: true },
  cluster6: { key: 'ipv6_addr', isInterval: true },
  range4: { key: 'ipv4_addr', isInterval: true },
  range6: { key: 'ipv6_addr', isInterval: true },
  known4: { key: 'ipv4_addr' },
  known6: { key: 'ipv6_addr' },
  pod4: { key: 'ipv4_addr', value: 'mark' },
  pod6: { key: 'ipv6_addr', value: 'mark' },
  net4: { key: 'ipv4_addr', value: 'mark', isInterval: true },
  net6: { key: 'ipv6_addr', value: 'mark', isInterval: true },
  dst4: { key: 'mark . ipv4_addr', value: 'mark', isInterval: true },
  dst6: { key: 'mark . ipv6_addr', value: 'mark', isInterval: true },
  dflt4: { key: 'mark', value: 'mark' },
  dflt6: { key: 'mark', value: 'mark' },
  slot_fwd: { key: 'mark', value: 'mark' },
  slot_eip4: { key: 'mark', value: 'ipv4_addr' },
  slot_eip6: { key: 'mark', value: 'ipv6_addr' },
  vtep_node: { key: 'ether_addr', value: 'mark' },
} as const satisfies Record<string, { readonly key: string; readonly value?: string; readonly isInterval?: true }>;
export type ContainerName = keyof typeof containers;
export type TableElements = Readonly<Record<ContainerName, ReadonlyMap<string, string>>>;

/** Links, addresses, routes and the rest of what `ip` and `bridge` manage. */
export interface NetworkDesired {
  readonly links: readonly LinkDesired[];
  readonly addresses: readonly AddressDesired[];
  readonly rules: readonly RuleDesired[];
  readonly routes: readonly RouteDesired[];
  readonly neighbours: readonly NeighbourDesired[];
  readonly forwardings: readonly ForwardingDesired[];
  readonly proxies: readonly ProxyDesired[];
}

/** Our devices: the tunnel, and the holder of EIPs, which is a dummy device or, where there is none, an empty bridge. */
export type LinkDesired =
  | {
      readonly kind: 'vxlan';
      readonly name: string;
      readonly id: number;
      readonly port: number;
      readonly parent: string;
      readonly local: Ip;
      readonly mac: string;
      readonly mtu: number;
      readonly hasChecksums: boolean;
      /** Whether the device joins the packets of a connection that arrive on it (GRO); ADR 0024. */
      readonly hasGro: boolean;
    }
  | { readonly kind: 'holder'; readonly name: string };

/** An address on one of our devices; IPv6 ones never wait for duplicate detection. */
export interface AddressDesired {
  readonly device: string;
  readonly ip: Ip;
  readonly prefixLength: number;
}

/** A routing rule of ours: packets whose mark, under the mask, has this value look into a table, or jump to a rule. */
export interface RuleDesired {
  readonly family: IpFamily;
  readonly priority: number;
  readonly mark: number;
  readonly mask: number;
  readonly action:
    | { readonly kind: 'lookup'; readonly table: number }
    | { readonly kind: 'goto'; readonly priority: number };
}

/** The default route of one of our tables. */
export interface RouteDesired {
  readonly table: number;
  readonly via: Ip;
  readonly device: string;
}

/** A permanent neighbour on the tunnel device, and the way to it: a route to this one address. */
export interface NeighbourDesired {
  readonly device: string;
  readonly ip: Ip;
  readonly mac: string;
}

/** Where the tunnel device sends frames for a MAC address. */
export interface ForwardingDesired {
  readonly device: string;
  readonly mac: string;
  readonly to: Ip;
}

/** An IPv6 address that the node answers for on a device (proxy NDP). */
export interface ProxyDesired {
  readonly device: string;
  readonly ip: Ipv6;
}

/** An EIP of this node and the interfaces on which it is announced and probed for. */
export interface Claim {
  readonly ip: Ip;
  readonly interfaces: readonly string[];
}

/** Something that could not be done, for the report of the node. */
export interface NodeProblem {
  readonly finding: Finding;
  /** Undefined: the whole node is concerned. */
  readonly policy: PolicyKey | undefined;
}
