/**
 * On which node each EIP of a gateway is. An EIP stays where it is while that node is Ready; those of a lost node are
 * spread over all others by the mode of the gateway; nothing moves back by itself. Only somebody's wish comes before that.
 *
 * Gateway nodes move EIPs among themselves when one of them is lost (ownership/), and count how often: the epoch. A Ready
 * node that reports a later epoch than the record has the EIP now, whoever had it before. A node that is named here instead
 * of the one that has the EIP is named with the latest epoch, or agents would take it for news from before their own move.
 * A node that only Kubernetes calls NotReady, while its agent is heard and others watch it, keeps what it has: after an API
 * server was away, all nodes look like that for a moment.
 *
 * If no node is Ready, everything stays where it was recorded: when all nodes look lost, it is likelier that whoever
 * looks is cut off, and a move could only make it worse. Kubernetes stops evicting pods for the same reason when all
 * nodes look unhealthy (https://kubernetes.io/docs/concepts/architecture/nodes/, rate limits on eviction, 2026).
 */

import type { EipConflict, PolicyKey } from '../cluster/view.ts';
import { familyOf, type Ip, type IpFamily } from '../ip/index.ts';
import { hashText } from '../values/hash.ts';
import { type Carrier, type Selection, selectNode } from './selection.ts';

/** Something that one node carries: an EIP, or a policy that leaves with the address of the node. */
export interface Load {
  /** Decides ties; the address, or the policy. */
  readonly name: string;
  /** What nodes agree on: the EIP, or what stands for the node group that the policy is recorded in. */
  readonly ips: readonly Ip[];
  /** For a policy with the address of its node: what stands for its node group if it is recorded with another node. */
  readonly keyAt: ((node: string) => Ip) | undefined;
  readonly policies: readonly PolicyKey[];
  /** Nodes on record, the one of the latest epoch first, then the one of the oldest policy. */
  readonly recordedNodes: readonly string[];
  /** The latest epoch on record of what nodes agree on; 0 when there is none. */
  readonly epoch: number;
  /** Families that the node itself must have an address of. */
  readonly neededFamilies: readonly IpFamily[];
}

/** A node, with the EIPs that its agent reports to hold and their epochs. */
export interface Holder {
  readonly name: string;
  readonly held: ReadonlyMap<Ip, number>;
}

/** A node that the gateway selects. */
export interface GatewayNode extends Holder {
  /** hashText of the name. */
  readonly hash: number;
  readonly isReady: boolean;
  /** True for a node that is not Ready and may keep what it has; see keepsOn in tunnels.ts. */
  readonly isKeeping: boolean;
  /** True when its EIPs are to go elsewhere, if there is another node for them. */
  readonly isDraining: boolean;
  readonly families: readonly IpFamily[];
  /** EIPs that it holds and another machine claims. */
  readonly conflicts: readonly EipConflict[];
}

/** Where a load is. */
export interface Placement {
  readonly node: string | undefined;
  /** False when the node is not Ready, or there is none. */
  readonly isServing: boolean;
  /** The epoch to record with the node. */
  readonly epoch: number;
}

interface Counted extends Carrier {
  eips: number;
  policies: number;
  readonly node: GatewayNode;
}

/**
 * Places every load; `loads` are in the order in which new places are given, `nodes` are those of the gateway, `moves` say
 * where somebody wants EIPs to be, `others` are nodes that the gateway does not select and that may still hold its EIPs.
 */
export const placeAll = (
  loads: readonly Load[],
  nodes: readonly GatewayNode[],
  selection: Selection,
  moves: ReadonlyMap<Ip, string> = new Map(),
  others: readonly Holder[] = [],
): Map<Load, Placement> => {
  const matching = new Set(nodes.map(({ name }) => name));
  const ready = nodes.filter(({ isReady }) => isReady);
  const staying = ready.filter(({ isDraining }) => !isDraining);
  const counted = (node: GatewayNode): Counted => ({ name: node.name, hash: node.hash, eips: 0, policies: 0, node });
  const carriers = (staying.length > 0 ? staying : ready).map(counted);
  const keeping = nodes.filter(({ isKeeping, isDraining }) => isKeeping && !isDraining).map(counted);
  const carrierByName = new Map([...carriers, ...keeping].map((carrier) => [carrier.name, carrier]));
  const ownerOf = new Map<Load, string>();
  const put = (load: Load, carrier: Counted): void => {
    carrier.eips += 1;
    carrier.policies += load.policies.length;
    ownerOf.set(load, carrier.name);
  };

  // Of two that report the same epoch, the one that can carry counts.
  const unable = nodes.filter(({ name }) => !carrierByName.has(name));
  const latestOf = latestHolders([...carriers, ...keeping].map(({ node }) => node).concat(unable), others);
  const homeless: Load[] = [];
  for (const load of loads) {
    const wished = load.ips
      .map((ip) => moves.get(ip))
      .filter((name) => name !== undefined)
      .filter((name) => carrierByName.get(name)?.node.isReady === true);
    const latest = load.recordedNodes.length === 0 ? undefined : latestOf(load.ips);
    const takenOver = latest !== undefined && latest.epoch > load.epoch ? [latest.node] : [];
    const names = [...wished, ...takenOver, ...load.recordedNodes, ...(latest === undefined ? [] : [latest.node])];
    const kept = names.find((name) => canCarry(carrierByName.get(name), load));
    const carrier = kept === undefined ? undefined : carrierByName.get(kept);
    if (carrier === undefined) homeless.push(load);
    else put(load, carrier);
  }
  for (const load of homeless) {
    const able = load.neededFamilies.length === 0 ? carriers : carriers.filter((carrier) => canCarry(carrier, load));
    const carrier = selectNode(able, selection, load.policies.length, hashText(load.name));
    if (carrier !== undefined) put(load, carrier);
  }
  return new Map(
    loads.map((load) => {
      const owner = ownerOf.get(load);
      const node = owner ?? load.recordedNodes.find((name) => matching.has(name));
      const epoch = owner === undefined ? load.epoch : epochOf(load, owner, latestOf);
      return [load, { node, isServing: owner !== undefined, epoch }];
    }),
  );
};

const canCarry = (carrier: Counted | undefined, { neededFamilies }: Load): boolean =>
  carrier !== undefined && neededFamilies.every((family) => carrier.node.families.includes(family));

/** Who holds an EIP, as its agent reports. */
interface ReportedHolder {
  readonly node: string;
  readonly epoch: number;
}

/** Tells who holds any of these in the latest epoch; of several the first of the list. */
type LatestOf = (ips: readonly Ip[]) => ReportedHolder | undefined;

const latestHolders = (nodes: readonly Holder[], others: readonly Holder[]): LatestOf => {
  const latestByIp = new Map<Ip, ReportedHolder>();
  for (const { name, held } of [...nodes, ...others]) {
    for (const [ip, epoch] of held) {
      const latest = latestByIp.get(ip);
      if (latest === undefined || epoch > latest.epoch) latestByIp.set(ip, { node: name, epoch });
    }
  }
  return (ips) =>
    ips.reduce<ReportedHolder | undefined>((latest, ip) => {
      const held = latestByIp.get(ip);
      return held !== undefined && held.epoch > (latest?.epoch ?? -1) ? held : latest;
    }, undefined);
};

/**
 * What is on record, unless somebody else than the node has the EIP since, or another node is to be recorded. A policy with
 * the address of its node is in another node group then, which has epochs of its own.
 */
const epochOf = ({ epoch, ips, keyAt, recordedNodes }: Load, node: string, latestOf: LatestOf): number => {
  const isOnRecord = recordedNodes[0] === node;
  if (keyAt !== undefined && !isOnRecord) return latestOf([keyAt(node)])?.epoch ?? 0;
  const latest = latestOf(ips);
  if (latest === undefined || latest.epoch <= epoch) return epoch;
  return isOnRecord && latest.node === node ? epoch : latest.epoch;
};

/** The families of addresses, each once. */
export const familiesOf = (ips: readonly Ip[]): readonly IpFamily[] => [...new Set(ips.map(familyOf))];
