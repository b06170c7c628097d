/**
 * What a gateway can really give: its pools without the addresses that the cluster itself has, and without those that
 * an older gateway has too. What is left out is reported; the rest keeps working.
 */
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { ClusterView, GatewaySpecView, GatewayView, Settings } from '../cluster/view.ts';
import {
  count,
  difference,
  emptySet,
  formatSet,
  type IntervalSet,
  intersection,
  setOfIps,
  union,
} from '../ip/index.ts';
import { compareGatewayAge } from '../policies/precedence.ts';
import { isSameList } from '../values/equality.ts';

/** One set per family. */
export interface Pools {
  readonly ipv4: IntervalSet;
  readonly ipv6: IntervalSet;
}

/** The pools of a gateway in three widths. */
export interface GatewayPools {
  /** As the user wrote them, without a family that is turned off. */
  readonly written: Pools;
  /** Where a policy may keep the EIP that it has. */
  readonly usable: Pools;
  /** Where new EIPs come from. */
  readonly offered: Pools;
  /** True when no other gateway has any of these addresses: then what others give concerns it not, nor they it. */
  readonly isAlone: boolean;
  readonly problems: readonly Finding[];
}

/** The pools of every gateway that can be read, by name. */
export const poolsOf = (view: ClusterView): Map<string, GatewayPools> => {
  const { settings, ranges } = view;
  const nodeAddresses = setOfIps(view.nodes.flatMap(({ addresses }) => addresses));
  const ofCluster = [ranges.nodes, ranges.apiServers, ranges.pods, ranges.services].reduce(union, nodeAddresses);
  const result = new Map<string, GatewayPools>();
  const olderByName = overlapsOf(view.gateways);
  const shared = new Set([...olderByName].flatMap(([name, older]) => [name, ...older.map((gateway) => gateway.name)]));
  for (const { name, spec } of view.gateways) {
    if (spec === undefined) continue;
    const pools = poolsOfGateway(name, spec, settings, ofCluster, olderByName.get(name));
    result.set(name, { ...pools, isAlone: !shared.has(name) });
  }
  return result;
};

/** True when poolsOf gives the same for both views. */
export const havePoolsInCommon = (a: ClusterView, b: ClusterView): boolean =>
  a.settings === b.settings &&
  a.ranges === b.ranges &&
  isSameList(a.nodes, b.nodes) &&
  isSameList(a.gateways, b.gateways);

const poolsOfGateway = (
  name: string,
  { pools }: GatewaySpecView,
  settings: Settings,
  ofCluster: IntervalSet,
  older: readonly GatewayView[] = [],
): Omit<GatewayPools, 'isAlone'> => {
  const problems: Finding[] = [];
  const enabled = (pool: IntervalSet, isEnabled: boolean, family: string): IntervalSet => {
    if (isEnabled || pool.intervals.length === 0) return pool;
    problems.push(finding('FamilyDisabled', `Gateway ${name} has an ${family} pool, but ${family} is turned off.`));
    return emptySet;
  };
  const written: Pools = {
    ipv4: enabled(pools.ipv4, settings.hasIpv4, 'IPv4'),
    ipv6: enabled(pools.ipv6, settings.hasIpv6, 'IPv6'),
  };
  const [many4, many6] = [count(written.ipv4), count(written.ipv6)];
  if (many4 > 0n && many6 > 0n && many4 !== many6) {
    problems.push(finding('PoolsUnequal', `Gateway ${name} has ${many4} IPv4 and ${many6} IPv6 addresses.`));
  }
  const taken = intersection(union(written.ipv4, written.ipv6), ofCluster);
  if (taken.intervals.length > 0) {
    const what = `Gateway ${name} has ${listed(formatSet(taken))} in its pools, which the cluster uses; they are left out.`;
    problems.push(finding('PoolOverlapsCluster', what));
  }
  let offeredElsewhere = emptySet;
  for (const other of older) {
    const theirs = other.spec === undefined ? emptySet : union(other.spec.pools.ipv4, other.spec.pools.ipv6);
    offeredElsewhere = union(offeredElsewhere, theirs);
    const shared = listed(formatSet(intersection(union(pools.ipv4, pools.ipv6), theirs)));
    const what = `Gateway ${name} shares ${shared} with the older gateway ${other.name} and takes no new EIP from there.`;
    problems.push(finding('PoolsOverlap', what));
  }
  const usable = without(written, taken);
  return { written, usable, offered: without(usable, offeredElsewhere), problems };
};

const without = (pools: Pools, left: IntervalSet): Pools =>
  left.intervals.length === 0 ? pools : { ipv4: difference(pools.ipv4, left), ipv6: difference(pools.ipv6, left) };

/** For each gateway the older ones whose pools share addresses with it, by name; one sweep over all intervals. */
const overlapsOf = (gateways: readonly GatewayView[]): Map<string, GatewayView[]> => {
  const starts = gateways
    .flatMap((gateway) =>
      [gateway.spec?.pools.ipv4, gateway.spec?.pools.ipv6]
        .flatMap((pool) => pool?.intervals ?? [])
        .map((interval) => ({ gateway, interval })),
    )
    .toSorted((a, b) => (a.interval.first < b.interval.first ? -1 : a.interval.first > b.interval.first ? 1 : 0));
  const found = new Map<string, Set<GatewayView>>();
  let open: typeof starts = [];
  for (const next of starts) {
    open = open.filter(({ interval }) => interval.last >= next.interval.first);
    for (const { gateway } of open) {
      if (gateway.name === next.gateway.name) continue;
      const [older, younger] = [gateway, next.gateway].toSorted(compareGatewayAge);
      if (older === undefined || younger === undefined) continue;
      found.set(younger.name, (found.get(younger.name) ?? new Set()).add(older));
    }
    open.push(next);
  }
  return new Map([...found].map(([name, older]) => [name, [...older].toSorted(compareGatewayAge)]));
};
