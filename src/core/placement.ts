/**
 * On which node each EIP of a gateway is. An EIP stays where it is while that node is Ready; those of a lost node are
 * spread over all others by the mode of the gateway; nothing moves back by itself. Only somebody's wish comes before that.
 *
 * If no node is Ready, everything stays where it was recorded: when all nodes look lost, it is likelier that whoever
 * looks is cut off, and a move could only make it worse. Kubernetes stops evicting pods for the same reason when all
 * nodes look unhealthy (https://kubernetes.io/docs/concepts/architecture/nodes/, rate limits on eviction, 2026).
 */
import { hashText } from './hash.ts';
import { familyOf, type Ip, type IpFamily } from './ip/index.ts';
import { type Carrier, type Selection, selectNode } from './selection.ts';
import type { PolicyKey } from './view.ts';

/** Something that one node carries: an EIP, or a policy that leaves with the address of the node. */
export interface Load {
  /** Decides ties; the address, or the policy. */
  readonly name: string;
  readonly ips: readonly Ip[];
  readonly policies: readonly PolicyKey[];
  /** Nodes on record, the one of the oldest policy first. */
  readonly recordedNodes: readonly string[];
  /** Families that the node itself must have an address of. */
  readonly neededFamilies: readonly IpFamily[];
}

/** A node that the gateway selects. */
export interface GatewayNode {
  readonly name: string;
  /** hashText of the name. */
  readonly hash: number;
  readonly isReady: boolean;
  /** True when its EIPs are to go elsewhere, if there is another node for them. */
  readonly isDraining: boolean;
  readonly families: readonly IpFamily[];
  /** EIPs that its agent reports to hold, with their epochs. */
  readonly held: ReadonlyMap<Ip, number>;
}

/** Where a load is. */
export interface Place {
  readonly node: string | undefined;
  /** False when the node is not Ready, or there is none. */
  readonly isServing: boolean;
}

interface Counted extends Carrier {
  eips: number;
  policies: number;
  readonly node: GatewayNode;
}

/**
 * Places every load; `loads` are in the order in which new places are given, `nodes` are those of the gateway, `moves` say
 * where somebody wants EIPs to be.
 */
export const placeAll = (
  loads: readonly Load[],
  nodes: readonly GatewayNode[],
  selection: Selection,
  moves: ReadonlyMap<Ip, string> = new Map(),
): Map<Load, Place> => {
  const matching = new Set(nodes.map(({ name }) => name));
  const ready = nodes.filter(({ isReady }) => isReady);
  const staying = ready.filter(({ isDraining }) => !isDraining);
  const carriers = (staying.length > 0 ? staying : ready).map(
    (node): Counted => ({ name: node.name, hash: node.hash, eips: 0, policies: 0, node }),
  );
  const carrierByName = new Map(carriers.map((carrier) => [carrier.name, carrier]));
  const ownerOf = new Map<Load, string>();
  const put = (load: Load, carrier: Counted): void => {
    carrier.eips += 1;
    carrier.policies += load.policies.length;
    ownerOf.set(load, carrier.name);
  };

  const homeless: Load[] = [];
  for (const load of loads) {
    const wished = load.ips.map((ip) => moves.get(ip)).filter((name) => name !== undefined);
    const kept = [...wished, ...load.recordedNodes].find((name) => canCarry(carrierByName.get(name), load));
    const carrier = kept === undefined ? takenOverBy(load, carriers) : carrierByName.get(kept);
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
      return [load, { node, isServing: owner !== undefined }];
    }),
  );
};

const canCarry = (carrier: Counted | undefined, { neededFamilies }: Load): boolean =>
  carrier !== undefined && neededFamilies.every((family) => carrier.node.families.includes(family));

/** The Ready node whose agent took the EIP over while its owner was lost; the highest epoch is the latest. */
const takenOverBy = (load: Load, carriers: readonly Counted[]): Counted | undefined => {
  if (load.recordedNodes.length === 0) return undefined;
  let latest: { carrier: Counted; epoch: number } | undefined;
  for (const carrier of carriers) {
    const epoch = Math.max(...load.ips.map((ip) => carrier.node.held.get(ip) ?? -1));
    if (epoch > (latest?.epoch ?? -1)) latest = { carrier, epoch };
  }
  return latest?.carrier;
};

/** The families of addresses, each once. */
export const familiesOf = (ips: readonly Ip[]): readonly IpFamily[] => [...new Set(ips.map(familyOf))];
