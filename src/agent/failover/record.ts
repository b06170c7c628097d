/**
 * OwnershipRecord is what the API says about EIPs and nodes, in the words of the ownership protocol. Its parts keep their
 * identity while they say the same, so that whoever asks sees at once whether anything is new.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Electorate, TunnelView } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { Claim, NodeDesired } from '../../core/node/desired.ts';
import { remember } from '../../core/node/remember.ts';
import { isNodeGroupKey, type NodeGroup } from '../../core/ownership/node-group.ts';
import {
  createRecordedEips,
  type NoticedOwner,
  ownershipPlanOf,
  ownersOf,
  type RecordedEip,
  type Roster,
  readyNodes,
} from '../../core/ownership/planned.ts';
import type { EipHold, OwnershipPlan } from '../../core/ownership/port.ts';
import { isSameMap, isSameSet } from '../../core/values/equality.ts';
import type { Hops, ReadyEips } from '../heartbeat/gate-controller.ts';
import type { OwnershipFacts } from '../inputs/gather.ts';
import { addressesOf, hopsOf, macsOf } from './places.ts';

/** A node group that a node serves. */
export interface ServedGroup extends NodeGroup {
  readonly epoch: number;
}

export class OwnershipRecord {
  readonly #node: string;
  readonly #facts: () => OwnershipFacts;
  readonly #eipsIn = remember(createRecordedEips());
  readonly #readyIn = remember(readyNodes, isSameSet);
  readonly #nodesIn = remember((tunnels: readonly TunnelView[]) => tunnels.map(({ node }) => node), isDeepStrictEqual);
  readonly #rostersIn = remember((rosters: readonly Roster[]) => rosters, isDeepStrictEqual);
  readonly #planOf = remember(ownershipPlanOf);
  readonly #bystandingIn = remember(bystandingOf);
  readonly #leavingIn = remember(leavingOf);
  readonly #standbysIn = remember(standbysOf, isSameSet);
  readonly #gatewaysIn = remember(({ gateways }: OwnershipPlan) => new Set(gateways), isSameSet);
  readonly #ownersIn = remember(ownersOf, isSameMap(Object.is));
  readonly #addressesIn = remember(addressesOf, isSameMap(Object.is));
  readonly #hopsIn = remember(hopsOf, isSameMap(isDeepStrictEqual));
  readonly #macsIn = remember(macsOf, isSameSet);
  readonly #familiesIn = remember(familiesIn, isSameMap(Object.is));
  readonly #readyOf = remember(byEip, isDeepStrictEqual);
  readonly #awaitedOf = remember(byEip, isDeepStrictEqual);
  #electorate: Electorate | undefined;

  constructor(node: string, facts: () => OwnershipFacts) {
    this.#node = node;
    this.#facts = facts;
  }

  /** The EIPs that policies have, by the address that stands for each. */
  eips(): ReadonlyMap<Ip, RecordedEip> {
    return this.#eipsIn(this.#facts().policies);
  }

  /** What the gate holds for an EIP: both addresses; for a node group what stands for it; nothing for what is not recorded. */
  addressesOf(eip: Ip): readonly Ip[] {
    const record = this.eips().get(eip);
    if (record?.group !== undefined) return [eip];
    return [record?.eip.ipv4, record?.eip.ipv6].filter((ip) => ip !== undefined);
  }

  /** The node groups among what a node holds. */
  groupsIn(holds: ReadonlyMap<Ip, EipHold>): readonly ServedGroup[] {
    const eips = this.eips();
    return [...holds.values()].flatMap(({ eip, epoch, mode }) => {
      const group = eips.get(eip)?.group;
      return group === undefined || mode !== 'owned' ? [] : [{ ...group, epoch }];
    });
  }

  /** How people call an EIP, or a node group; undefined for a group that has ended because no policy is recorded in it. */
  nameOf(eip: Ip): string | undefined {
    const group = this.eips().get(eip)?.group;
    if (group !== undefined) return `node group ${group.gateway}/${group.node}`;
    return isNodeGroupKey(eip) ? undefined : eip;
  }

  /** Who votes, and who may own what; undefined before there was an electorate. */
  plan(): OwnershipPlan | undefined {
    const { rosters, tunnels, electorate } = this.#facts();
    // An electorate that was taken away by mistake still holds: others may go by it.
    if (!isDeepStrictEqual(electorate ?? this.#electorate, this.#electorate)) this.#electorate = electorate;
    if (this.#electorate === undefined) return undefined;
    const nodes = this.#nodesIn(tunnels);
    const [ready, families] = [this.#readyIn(tunnels), this.#familiesIn(tunnels)];
    return this.#planOf(this.#electorate, this.#rostersIn(rosters), nodes, ready, this.eips(), families);
  }

  /** True when this node may own EIPs, or votes on who does. */
  isMember({ gateways, electorate }: OwnershipPlan): boolean {
    return gateways.includes(this.#node) || electorate.voters.includes(this.#node);
  }

  /**
   * The plan as far as this node needs to know it. Who holds EIPs takes part also when no gateway selects it any more: else it
   * would fall silent and lose them before it has handed them over.
   */
  own(plan: OwnershipPlan, isHolding: boolean): OwnershipPlan {
    if (isHolding && !plan.gateways.includes(this.#node)) return this.#leavingIn(plan, this.#node);
    return this.isMember(plan) ? plan : this.#bystandingIn(plan.electorate);
  }

  /** The owner of each EIP: by record, or by what was told later. */
  owners(told: ReadonlyMap<Ip, NoticedOwner>): ReturnType<typeof ownersOf> {
    return this.#ownersIn(this.eips(), told, this.#facts().tunnels);
  }

  /** The EIPs that this node may come to own. */
  standbys(plan: OwnershipPlan): ReadonlySet<Ip> {
    return this.#standbysIn(plan, this.#node);
  }

  gateways(plan: OwnershipPlan): ReadonlySet<string> {
    return this.#gatewaysIn(plan);
  }

  /** The tunnel addresses by which nodes speak to each other. */
  addresses(): ReadonlyMap<string, string> {
    return this.#addressesIn(this.#facts().tunnels);
  }

  /** The tunnel addresses of nodes, of all families. */
  hops(): Hops {
    return this.#hopsIn(this.#facts().tunnels);
  }

  /** The MAC addresses by which nodes announce EIPs. */
  macs(): ReadonlySet<string> {
    return this.#macsIn(this.#facts().tunnels);
  }

  /** The EIPs and node groups that lie ready in the kernel, by the address that stands for each. */
  ready({ claims, expected, standbys, nodeGroups }: NodeDesired): ReadyEips {
    return this.#readyOf(this.eips(), nodeGroups, claims, expected, standbys);
  }

  /** The EIPs about which the network is being asked. */
  awaited({ awaited }: NodeDesired): ReadyEips {
    return this.#awaitedOf(this.eips(), noGroups, awaited);
  }
}

const noGroups: ReadonlySet<Ip> = new Set();

/** How many families a node has addresses of, as its agent reports. */
const familiesIn = (tunnels: readonly TunnelView[]): ReadonlyMap<string, number> =>
  new Map(
    tunnels.map(({ node, parent }) => [node, [parent.ipv4, parent.ipv6].filter((ip) => ip !== undefined).length]),
  );

/** Claims by the address that stands for their EIP. A node group has none: nothing is announced for it. */
const byEip = (
  eips: ReadonlyMap<Ip, RecordedEip>,
  groups: ReadonlySet<Ip>,
  ...claims: readonly (readonly Claim[])[]
): ReadyEips => {
  const claimByIp = new Map(claims.flat().map((claim) => [claim.ip, claim]));
  const found = new Map<Ip, readonly Claim[]>();
  if (claimByIp.size + groups.size === 0) return found;
  for (const [key, { eip }] of eips) {
    if (groups.has(key)) found.set(key, []);
    const own = [eip.ipv4, eip.ipv6].map((ip) => ip && claimByIp.get(ip)).filter((claim) => claim !== undefined);
    if (own.length > 0) found.set(key, own);
  }
  return found;
};

/** All that a node needs to know which only wants to hear who owns: then it watches nobody, and nobody waits for it. */
const bystandingOf = (electorate: Electorate): OwnershipPlan => ({ electorate, gateways: [], nodes: [], eips: [] });

const leavingOf = (plan: OwnershipPlan, node: string): OwnershipPlan => ({
  ...plan,
  gateways: [...plan.gateways, node],
});

const standbysOf = ({ eips }: OwnershipPlan, node: string): ReadonlySet<Ip> =>
  new Set(eips.filter(({ candidates }) => candidates.includes(node)).map(({ eip }) => eip));
