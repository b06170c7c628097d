/** GatewayPlan: the view of a gateway that its status shows. It is derived from the bindings of its policies. */
import type { TunnelPhase } from '../../api/egress-tunnel.ts';
import { type Finding, finding, isGood, listed } from '../cluster/finding.ts';
import type { Eip, GatewayView, PolicyKey } from '../cluster/view.ts';
import { gatewayConflictFinding } from '../gateways/conflicts.ts';
import type { GatewayNode, Load, Placement } from '../gateways/placement.ts';
import type { GatewayPools } from '../gateways/pools.ts';
import { count, type IntervalSet, positionOf } from '../ip/index.ts';
import { compareText } from '../values/hash.ts';

/** What a gateway has and does. */
export interface GatewayPlan {
  readonly name: string;
  readonly nodes: readonly GatewayNodePlan[];
  readonly usage: PoolUsage;
  readonly accepted: Finding;
  readonly ready: Finding;
  /** Everything that is wrong with the gateway; `accepted` is the first of it. */
  readonly problems: readonly Finding[];
}

/** A node that the gateway selects, with what it carries. */
export interface GatewayNodePlan {
  readonly name: string;
  readonly phase: TunnelPhase;
  readonly eips: readonly EipPlan[];
}

/** An EIP with its policies; without addresses it stands for the address of the node. */
export interface EipPlan extends Eip {
  /** As in the binding of its policies. */
  readonly epoch: number;
  readonly policies: readonly PolicyKey[];
}

/** How much of the pools is in use. Numbers above the largest safe integer are given as that. */
export interface PoolUsage {
  readonly ipv4Total: number;
  readonly ipv4Free: number;
  readonly ipv6Total: number;
  readonly ipv6Free: number;
}

/** What a gateway plan is made of. */
export interface GatewayParts {
  readonly gateway: GatewayView;
  readonly pools: GatewayPools | undefined;
  /** In order of name. */
  readonly nodes: readonly GatewayNode[];
  readonly phases: ReadonlyMap<string, TunnelPhase>;
  readonly eips: readonly { readonly load: Load; readonly eip: Eip | undefined }[];
  readonly places: ReadonlyMap<Load, Placement>;
  /** The gateway that is the cluster default. */
  readonly clusterDefault: string | undefined;
}

/** Puts the plan of a gateway together. */
export const planGateway = (parts: GatewayParts): GatewayPlan => {
  const { gateway, nodes, phases } = parts;
  const problems = problemsOf(parts);
  const carried = eipsByNode(parts);
  return {
    name: gateway.name,
    nodes: nodes.map(({ name }) => ({
      name,
      phase: phaseOf(name, phases),
      eips: sortedByAddress(carried.get(name) ?? []),
    })),
    usage: usageOf(parts),
    accepted: problems[0] ?? finding('Valid', `Gateway ${gateway.name} selects ${nodes.length} nodes.`),
    ready: readyFinding(parts),
    problems,
  };
};

/** The phases of the nodes of a gateway, in their order. */
export const phasesOf = (nodes: readonly GatewayNode[], phases: GatewayParts['phases']): readonly TunnelPhase[] =>
  nodes.map(({ name }) => phaseOf(name, phases));

const phaseOf = (node: string, phases: GatewayParts['phases']): TunnelPhase => phases.get(node) ?? 'Pending';

const problemsOf = ({ gateway, pools, clusterDefault, eips }: GatewayParts): Finding[] => {
  const problems = [...gateway.problems, ...(pools?.problems ?? [])];
  const users = gateway.isDeleting ? eips.flatMap(({ load }) => load.policies).toSorted(compareText) : [];
  if (users.length > 0) {
    const what = `Gateway ${gateway.name} is being deleted and waits for ${listed(users)}.`;
    problems.unshift(finding('GatewayInUse', what));
  }
  if (gateway.spec?.isClusterDefault && clusterDefault !== gateway.name) {
    const what = `Gateway ${gateway.name} wants to be the cluster default, but ${clusterDefault} is it already.`;
    problems.push(finding('ClusterDefaultTaken', what));
  }
  return problems.toSorted((a, b) => Number(isGood(a)) - Number(isGood(b)));
};

const eipsByNode = ({ eips, places }: GatewayParts): Map<string, EipPlan[]> => {
  const result = new Map<string, EipPlan[]>();
  const nodeIpPolicies = new Map<string, PolicyKey[]>();
  const add = <T>(lists: Map<string, T[]>, node: string, items: readonly T[]): void => {
    const list = lists.get(node);
    if (list === undefined) lists.set(node, [...items]);
    else list.push(...items);
  };
  for (const { load, eip } of eips) {
    const { node, epoch = 0 } = places.get(load) ?? {};
    if (node === undefined) continue;
    if (eip === undefined) add(nodeIpPolicies, node, load.policies);
    else add(result, node, [{ ...eip, epoch, policies: load.policies.toSorted(compareText) }]);
  }
  for (const [node, policies] of nodeIpPolicies) {
    add(result, node, [{ ipv4: undefined, ipv6: undefined, epoch: 0, policies: policies.toSorted(compareText) }]);
  }
  return result;
};

// Comparing texts of addresses reads them each time; each is read once here, because a node may carry thousands.
const sortedByAddress = (eips: readonly EipPlan[]): EipPlan[] =>
  eips
    .map((eip) => {
      const ip = eip.ipv4 ?? eip.ipv6;
      return { eip, place: ip === undefined ? -1n : positionOf(ip) };
    })
    .toSorted((a, b) => comparePlaces(a.place, b.place))
    .map(({ eip }) => eip);

const comparePlaces = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

const usageOf = ({ pools, eips }: GatewayParts): PoolUsage => {
  const total = (set: IntervalSet | undefined): bigint => (set === undefined ? 0n : count(set));
  const used4 = eips.filter(({ eip }) => eip?.ipv4 !== undefined).length;
  const used6 = eips.filter(({ eip }) => eip?.ipv6 !== undefined).length;
  return {
    ipv4Total: shown(total(pools?.written.ipv4)),
    ipv4Free: shown(total(pools?.usable.ipv4) - BigInt(used4)),
    ipv6Total: shown(total(pools?.written.ipv6)),
    ipv6Free: shown(total(pools?.usable.ipv6) - BigInt(used6)),
  };
};

const shown = (many: bigint): number =>
  many > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(many);

const readyFinding = ({ gateway: { name: gateway }, nodes, eips }: GatewayParts): Finding => {
  const ready = nodes.filter(({ isReady }) => isReady);
  const reported = nodes.flatMap(({ name, conflicts }) => conflicts.map((conflict) => ({ node: name, conflict })));
  const own = new Set(reported.length === 0 ? [] : eips.flatMap(({ eip }) => [eip?.ipv4, eip?.ipv6]));
  const inUse = gatewayConflictFinding(
    gateway,
    reported.filter(({ conflict }) => own.has(conflict.ip)),
  );
  if (ready.length > 0 && inUse !== undefined) return inUse;
  if (ready.length > 0)
    return finding('NodesReady', `${ready.length} of ${nodes.length} nodes of gateway ${gateway} are ready.`);
  if (nodes.length === 0) return finding('NoMatchingNode', `Gateway ${gateway} selects no node.`);
  return finding('NoReadyNode', `No node of gateway ${gateway} is ready: ${listed(nodes.map(({ name }) => name))}.`);
};
