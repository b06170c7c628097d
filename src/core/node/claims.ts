/**
 * Claims: the EIPs that this node answers for, where it announces them, and which address each slot leaves with. An EIP
 * that may not be claimed has no address here and no entry for its slots, so that their packets are dropped. One that the
 * network is merely being asked about has no address either, and where there is a gate, which is shut, all else.
 */
import { finding } from '../cluster/finding.ts';
import { ofPair } from '../cluster/view.ts';
import { contains, emptySet, type IntervalSet, type Ip, parseCidrMasking, parseSet, positionOf } from '../ip/index.ts';
import type { Claim, NodeProblem } from './desired.ts';
import type { Group } from './groups.ts';
import { type HostView, type NodeInput, type NodeOwnership, type NodeSettings, parentIn } from './input.ts';
import { remember } from './remember.ts';
import { familiesIn } from './tunnel-ends.ts';

/** What a gateway node holds. */
export interface GatewayHoldings {
  /** All EIPs that lie ready or are in use here: `claims`, `expected` and `standbys` together. */
  readonly ready: readonly Claim[];
  /** These and the awaited ones: the table has them. */
  readonly listed: readonly Claim[];
  readonly claims: readonly Claim[];
  readonly epochs: ReadonlyMap<Ip, number>;
  readonly expected: readonly Claim[];
  readonly standbys: readonly Claim[];
  /** EIPs that the node should hold and may not claim now. */
  readonly unclaimed: readonly Claim[];
  readonly awaited: readonly Claim[];
  /** The source addresses of the slots that leave here; a slot has one for each family at most. */
  readonly sources: readonly SlotSource[];
  /** What stands for the node groups whose slots can leave here with the address of this node. */
  readonly nodeGroups: ReadonlySet<Ip>;
  readonly problems: readonly NodeProblem[];
}

/** The slots of a group, and an address that their packets leave with. */
export interface SlotSource {
  readonly group: string;
  readonly slots: readonly number[];
  readonly ip: Ip;
}

/**
 * Makes a function that works out what a node holds because of the groups that leave there. It remembers the claims of its last
 * call: a gateway node may hold thousands of EIPs, and a change is about one of them. `nodeAddresses` are those that carry
 * tunnels: an EIP among them would make the guard cut a node off, so it is never claimed.
 */
export const createGatewayHoldings = () => {
  const listsFor = remember((host: HostView, settings: NodeSettings) => {
    const interfacesFor = announcingInterfaces(host, settings);
    const list = () => createClaimList(interfacesFor);
    const ready = { ready: list(), claims: list(), expected: list(), standbys: list() };
    return { ...ready, listed: list(), unclaimed: list(), awaited: list() };
  });
  return (
    groups: readonly Group[],
    node: string,
    host: HostView,
    settings: NodeSettings,
    unclaimable: NodeInput['unclaimable'],
    nodeAddresses: ReadonlySet<Ip>,
    holds: NodeOwnership['holds'] | undefined,
  ): GatewayHoldings => {
    const parent = parentIn(host);
    const families = familiesIn(settings);
    const ready = new Set<Ip>();
    const claimed = new Set<Ip>();
    const expected = new Set<Ip>();
    const standbys = new Set<Ip>();
    const epochs = new Map<Ip, number>();
    const unclaimed = new Set<Ip>();
    const awaited = new Set<Ip>();
    const sources: SlotSource[] = [];
    const nodeGroups = new Set<Ip>();
    const problems: NodeProblem[] = [];
    for (const group of groups) {
      const { eip, slots } = group;
      for (const family of families) {
        if (group.usesNodeIp) {
          const ip = parent && ofPair(parent, family);
          if (ip === undefined) continue;
          sources.push({ group: group.key, slots, ip });
          if (group.owned !== undefined) nodeGroups.add(group.owned);
          continue;
        }
        const ip = ofPair(eip, family);
        if (ip === undefined) continue;
        if (nodeAddresses.has(ip)) {
          for (const { policy } of group.bindings) {
            const what = `EIP ${ip} of policy ${policy.key} is the address of a node.`;
            problems.push({ finding: finding('PoolOverlapsCluster', what), policy: policy.key });
          }
          continue;
        }
        // What the network says of an EIP matters to the node that is to own it: that of another node is in use there.
        const refusal = group.node === node ? unclaimable.get(ip) : undefined;
        if (refusal === undefined) {
          ready.add(ip);
          sources.push({ group: group.key, slots, ip });
          const held = holds?.get(group.owned ?? ip);
          if (held?.mode === 'owned') epochs.set(ip, held.epoch);
          if (holds === undefined || held?.mode === 'owned') claimed.add(ip);
          else if (group.node === node) expected.add(ip);
          else standbys.add(ip);
        } else {
          unclaimed.add(ip);
          if (refusal !== 'probing') {
            for (const { policy } of group.bindings) problems.push({ finding: refusal, policy: policy.key });
          } else if (holds !== undefined) {
            awaited.add(ip);
            sources.push({ group: group.key, slots, ip });
          }
        }
      }
    }
    const lists = listsFor(host, settings);
    const claims = lists.claims(claimed);
    problems.push(...unannounced(groups, node, claims));
    return {
      ready: lists.ready(ready),
      listed: lists.listed(ready.union(awaited)),
      claims,
      epochs,
      expected: lists.expected(expected),
      standbys: lists.standbys(standbys),
      unclaimed: lists.unclaimed(unclaimed),
      awaited: lists.awaited(awaited),
      sources,
      nodeGroups,
      problems,
    };
  };
};

/** The policies whose EIPs can be announced nowhere. */
const unannounced = (groups: readonly Group[], node: string, claims: readonly Claim[]): NodeProblem[] => {
  const silent = new Set(claims.filter(({ interfaces }) => interfaces.length === 0).map(({ ip }) => ip));
  if (silent.size === 0) return [];
  return groups.flatMap(({ eip, bindings }) => {
    const ips = [eip.ipv4, eip.ipv6].filter((ip) => ip !== undefined && silent.has(ip));
    return ips.flatMap((ip) =>
      bindings.map(({ policy }) => {
        const what = `EIP ${ip} of policy ${policy.key} can be announced on no interface of node ${node}.`;
        return { finding: finding('AnnounceFailed', what), policy: policy.key };
      }),
    );
  });
};

/**
 * Makes a function that turns EIPs into claims in the order of addresses. For the same EIPs it gives the same list again;
 * else only the new ones cost something, because sorting a list that is nearly sorted does not.
 */
const createClaimList = (interfacesFor: (ip: Ip) => readonly string[]) => {
  let known = new Map<Ip, { readonly claim: Claim; readonly position: bigint }>();
  let list: readonly Claim[] = [];
  return (ips: ReadonlySet<Ip>): readonly Claim[] => {
    const added = [...ips].filter((ip) => !known.has(ip));
    if (added.length === 0 && ips.size === known.size) return list;
    const placed = [
      ...[...known.values()].filter(({ claim }) => ips.has(claim.ip)),
      ...added.map((ip) => ({ claim: { ip, interfaces: interfacesFor(ip) }, position: positionOf(ip) })),
    ].toSorted((a, b) => (a.position < b.position ? -1 : 1));
    known = new Map(placed.map((one) => [one.claim.ip, one]));
    list = placed.map(({ claim }) => claim);
    return list;
  };
};

/** Finds the interfaces of an EIP: those that have it on link, else the one of the tunnel, where the router is. */
export const announcingInterfaces = (host: HostView, settings: NodeSettings): ((ip: Ip) => readonly string[]) => {
  const isAnnounced = (name: string): boolean => !settings.notAnnounced.some((pattern) => pattern.test(name));
  const links = host.interfaces.filter(({ name }) => isAnnounced(name)).map((one) => ({ ...one, on: onLink(one) }));
  const fallback = [parentIn(host)?.name].filter((name) => name !== undefined).filter(isAnnounced);
  return (ip) => {
    const found = links.filter(({ on }) => contains(on, ip)).map(({ name }) => name);
    return found.length > 0 ? found.toSorted() : fallback;
  };
};

// Link-local networks are on every link, and no EIP is in one. What cannot be read is on no link.
const onLink = ({ networks }: HostView['interfaces'][number]): IntervalSet => {
  const set = parseSet(
    networks.filter((text) => parseCidrMasking(text).ok),
    parseCidrMasking,
  );
  return set.ok ? set.value : emptySet;
};
