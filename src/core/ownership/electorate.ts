/**
 * Electorate: which nodes vote on the owners of EIPs (see ownership/). Gateway nodes vote, because they hear each other
 * anyway; where they are few, other nodes are witnesses; where there are two nodes in all, the API server has a vote too.
 *
 * Two majorities must always share a voter, so an electorate changes by one vote at a time, and not again before those who
 * act on it have it: all Ready gateway nodes and voters, and a majority of the voters themselves. While that majority is
 * away nothing changes, however long it takes, because it may be alive and cut off, with an owner of its own. A Node object
 * that was deleted is somebody's word that the machine is gone.
 *
 * A single node that is not Ready is not waited for, or a dead voter could never be replaced. The price: an owner that has
 * not reached the API server for longer than the grace, and is then heard by some voters but not by others, may go by an
 * electorate two steps old and own together with a successor. See "What it takes" in docs/explanation/failover.md.
 */

import { matches } from '../cluster/labels.ts';
import type { ClusterView, Electorate, GatewayView, NodeView } from '../cluster/view.ts';
import { keepsOn, type TunnelPlan } from '../tunnels/tunnels.ts';
import { compareText } from '../values/hash.ts';

/** A node, as far as votes are concerned. */
export interface Elector {
  readonly name: string;
  /** Whether any gateway selects it. */
  readonly isGateway: boolean;
  /** Whether its tunnel is in use and its agent is heard of; what Kubernetes alone says about the node does not count. */
  readonly isReady: boolean;
  readonly isDraining: boolean;
  /** The electorate in force in its agent, as it last reported. */
  readonly reported: Electorate | undefined;
}

/** The names of the nodes that any gateway selects. */
export const gatewayNodesOf = (nodes: readonly NodeView[], gateways: readonly GatewayView[]): ReadonlySet<string> => {
  const selectors = gateways.flatMap(({ spec }) => (spec === undefined ? [] : [spec.nodes]));
  return new Set(
    nodes.filter(({ labels }) => selectors.some((selector) => matches(selector, labels))).map(({ name }) => name),
  );
};

/** The nodes as electors; `plans` say which of them work. */
export const electorsOf = (
  { nodes, tunnels }: Pick<ClusterView, 'nodes' | 'tunnels'>,
  gatewayNodes: ReadonlySet<string>,
  plans: readonly TunnelPlan[],
): readonly Elector[] => {
  const tunnelByNode = new Map(tunnels.map((tunnel) => [tunnel.node, tunnel]));
  const isUsable = (plan: TunnelPlan): boolean => plan.phase === 'Ready' || keepsOn(plan, tunnelByNode.get(plan.node));
  const ready = new Set(plans.filter(isUsable).map(({ node }) => node));
  return nodes.map(({ name, isDraining }) => ({
    name,
    isGateway: gatewayNodes.has(name),
    isReady: ready.has(name),
    isDraining,
    reported: tunnelByNode.get(name)?.electorate,
  }));
};

/** What was decided about the electorate. */
export interface ElectoratePlan {
  /** The one to record; undefined while no gateway selects a node that works. */
  readonly electorate: Electorate | undefined;
  /** True when it is the one that is wanted; false while changes are still to come. */
  readonly isSettled: boolean;
  /** Nodes whose reports the next change waits for, by name. */
  readonly awaited: readonly string[];
}

/** More voters cost packets and protect from no likelier loss. */
const MOST_VOTERS = 5;
/** The fewest of which one may be lost. */
const FEW_VOTERS = 3;

/** The electorate as it should be recorded now. Pure; call it again when anything of this has changed. */
export const planElectorate = (recorded: Electorate | undefined, nodes: readonly Elector[]): ElectoratePlan => {
  const present = latestOf(recorded, nodes);
  const wanted = wantedVotes(present, nodes);
  if (wanted === undefined) return { electorate: present, isSettled: true, awaited: [] };
  if (present === undefined) {
    const electorate = { generation: 1, voters: wanted.voters.toSorted(compareText), hasApi: wanted.hasApi };
    return { electorate, isSettled: true, awaited: [] };
  }
  const next = nextVotes(present, wanted, nodes);
  if (next === undefined) return { electorate: present, isSettled: true, awaited: [] };
  const awaited = missingReports(present, nodes);
  return { electorate: awaited.length > 0 ? present : next, isSettled: false, awaited };
};

/** Who is to vote, without a number. */
type Votes = Omit<Electorate, 'generation'>;

/** The record, or what agents go by if that is later: a record that was lost or brought back must not start over. */
const latestOf = (recorded: Electorate | undefined, nodes: readonly Elector[]): Electorate | undefined =>
  nodes.reduce((latest, { reported }) => {
    const isLater = reported !== undefined && reported.generation > (latest?.generation ?? 0);
    return isLater ? reported : latest;
  }, recorded);

/** Who should vote at last; undefined when nobody can, or no gateway asks for it: then all stays as it is. */
const wantedVotes = (present: Electorate | undefined, nodes: readonly Elector[]): Votes | undefined => {
  const usable = nodes.filter(({ isReady }) => isReady);
  if (usable.length === 0 || !nodes.some(({ isGateway }) => isGateway)) return undefined;
  const gateways = usable.filter((node) => rankOf(node) === 0);
  const odd = gateways.length % 2 === 0 ? gateways.length - 1 : gateways.length;
  const isAmongGateways = gateways.length >= FEW_VOTERS;
  const size = isAmongGateways ? Math.min(odd, MOST_VOTERS) : Math.min(FEW_VOTERS, usable.length);
  const voting = new Set(present?.voters);
  // Who votes already stays, a witness beside gateway nodes too: every change is a time with less to spare.
  const voters = (isAmongGateways ? gateways : usable).toSorted(
    (a, b) =>
      Number(a.isDraining) - Number(b.isDraining) ||
      Number(voting.has(b.name)) - Number(voting.has(a.name)) ||
      rankOf(a) - rankOf(b) ||
      compareText(a.name, b.name),
  );
  return { voters: voters.slice(0, size).map(({ name }) => name), hasApi: size === 2 };
};

/** Gateway nodes first; those that are about to go last. */
const rankOf = ({ isGateway, isDraining }: Elector): number => (isDraining ? 2 : isGateway ? 0 : 1);

/** The electorate one vote nearer to what is wanted; undefined when it is there. */
const nextVotes = (present: Electorate, wanted: Votes, nodes: readonly Elector[]): Electorate | undefined => {
  const { voters, hasApi } = present;
  const added = wanted.voters.find((name) => !voters.includes(name));
  const removed = leastOf(
    voters.filter((name) => !wanted.voters.includes(name)),
    nodes,
  );
  const change = (votes: Partial<Votes>): Electorate => {
    const { voters: names, ...rest } = { ...present, ...votes };
    return { ...rest, generation: present.generation + 1, voters: names.toSorted(compareText) };
  };
  const isFull = countOf(present) > countOf(wanted);
  // Add before remove, one by one: a vote that is given up first would be missing if another is lost meanwhile.
  if (!isFull && added !== undefined) return change({ voters: [...voters, added] });
  if (!isFull && wanted.hasApi && !hasApi) return change({ hasApi: true });
  if (removed !== undefined) return change({ voters: voters.filter((name) => name !== removed) });
  if (hasApi && !wanted.hasApi) return change({ hasApi: false });
  return undefined;
};

const countOf = ({ voters, hasApi }: Votes): number => voters.length + (hasApi ? 1 : 0);

/** The one that is missed least: the lost before those that live, or the living could become a minority. */
const leastOf = (names: readonly string[], nodes: readonly Elector[]): string | undefined => {
  const nodeByName = new Map(nodes.map((node) => [node.name, node]));
  const worth = (name: string): number => {
    const node = nodeByName.get(name);
    if (node === undefined) return -2;
    return node.isReady ? 2 - rankOf(node) : -1;
  };
  return names.toSorted((a, b) => worth(a) - worth(b) || compareText(b, a))[0];
};

/** The nodes that have to report the electorate before it may change again. */
const missingReports = (present: Electorate, nodes: readonly Elector[]): readonly string[] => {
  const { voters, hasApi, generation } = present;
  const voting = new Set(voters);
  const has = ({ reported }: Elector): boolean => reported?.generation === generation;
  const awaited = nodes.filter((node) => node.isReady && (node.isGateway || voting.has(node.name)) && !has(node));
  const electors = nodes.filter(({ name }) => voting.has(name));
  // The API server has every electorate: that is where it is recorded.
  const votes = electors.length + (hasApi ? 1 : 0);
  const reported = electors.filter(has).length + (hasApi ? 1 : 0);
  const silent = 2 * reported > votes ? [] : electors.filter((node) => !has(node));
  return [...new Set([...awaited, ...silent].map(({ name }) => name))].toSorted(compareText);
};
