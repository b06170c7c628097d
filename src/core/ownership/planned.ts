/**
 * What the API says about owning, read by the agent of one node: the plan that the protocol goes by, and who owns what
 * as far as it has been told. Pure.
 */

import type { Eip, Electorate, PolicyView, TunnelView } from '../cluster/view.ts';
import { exchangedBetween } from '../incremental/change-log.ts';
import { contains, type IntervalSet, type Ip, parseIp } from '../ip/index.ts';
import { type Contender, hashText } from '../values/hash.ts';
import { type NodeGroup, nodeGroupOf, ownershipKey } from './node-group.ts';
import type { OwnershipPlan, PlannedEip } from './port.ts';
import { successorsOf } from './succession.ts';

/** A gateway: whose EIPs are in its pools, and which nodes it selects. */
export interface Roster {
  readonly name: string;
  readonly pools: { readonly ipv4: IntervalSet; readonly ipv6: IntervalSet };
  readonly nodes: readonly string[];
  /** Whether connections are mirrored to the next node of their EIP. */
  readonly keepsConnections: boolean;
}

/** What the policies of an EIP, or of a node group, record. */
export interface RecordedEip {
  /** Without addresses for a node group. */
  readonly eip: Eip;
  readonly group: NodeGroup | undefined;
  readonly node: string;
  readonly epoch: number;
}

/** The EIPs and node groups that policies record, by the address that stands for each. */
export const recordedEips = (policies: readonly PolicyView[]): ReadonlyMap<Ip, RecordedEip> =>
  createRecordedEips()(policies);

/**
 * Makes a function that reads the EIPs that policies record. Of several records of an EIP the one of the latest epoch counts, and
 * of those the one of the first policy by name, so that all nodes come to the same. It remembers its last call: only policies
 * that are others are read, if it is known which, and with the same records it is the same map again.
 */
export const createRecordedEips = (): ((policies: readonly PolicyView[]) => ReadonlyMap<Ip, RecordedEip>) => {
  const recordersByEip = new Map<Ip, Set<PolicyView>>();
  let read: readonly PolicyView[] = [];
  let found: ReadonlyMap<Ip, RecordedEip> = new Map();
  return (policies) => {
    const exchanged = exchangedBetween(read, policies);
    read = policies;
    if (exchanged === undefined) recordersByEip.clear();
    const touched = new Set<Ip>(exchanged === undefined ? found.keys() : []);
    for (const policy of exchanged?.gone ?? []) {
      const key = recordKey(policy);
      if (key === undefined) continue;
      recordersByEip.get(key)?.delete(policy);
      touched.add(key);
    }
    for (const policy of exchanged?.come ?? policies) {
      const key = recordKey(policy);
      if (key === undefined) continue;
      const recorders = recordersByEip.get(key);
      if (recorders === undefined) recordersByEip.set(key, new Set([policy]));
      else recorders.add(policy);
      touched.add(key);
    }
    const next = new Map(found);
    let isSame = true;
    for (const key of touched) {
      const record = latestOf(recordersByEip.get(key) ?? []);
      if (isSameRecord(record, found.get(key))) continue;
      isSame = false;
      if (record !== undefined) next.set(key, record);
      else {
        next.delete(key);
        recordersByEip.delete(key);
      }
    }
    if (!isSame) found = next;
    return found;
  };
};

/** The address that stands for what a policy records with a node and a slot; undefined when it does not. */
const recordKey = ({ recorded }: PolicyView): Ip | undefined =>
  recorded.node === undefined || recorded.slot === undefined ? undefined : ownershipKey(recorded);

const latestOf = (policies: Iterable<PolicyView>): RecordedEip | undefined => {
  let latest: PolicyView | undefined;
  for (const policy of policies) {
    const isLater = latest === undefined || policy.recorded.epoch > latest.recorded.epoch;
    if (isLater || (policy.recorded.epoch === latest?.recorded.epoch && policy.key < latest.key)) latest = policy;
  }
  if (latest?.recorded.node === undefined) return undefined;
  const { eip, node, epoch } = latest.recorded;
  return { eip, group: nodeGroupOf(latest.recorded), node, epoch };
};

const isSameRecord = (a: RecordedEip | undefined, b: RecordedEip | undefined): boolean =>
  a?.node === b?.node && a?.epoch === b?.epoch && a?.eip.ipv4 === b?.eip.ipv4 && a?.eip.ipv6 === b?.eip.ipv6;

/** Nodes whose tunnels the controller calls Ready. */
export const readyNodes = (tunnels: readonly TunnelView[]): ReadonlySet<string> =>
  new Set(tunnels.filter(({ recorded }) => recorded.phase === 'Ready').map(({ node }) => node));

/**
 * The plan of the API. An EIP of no gateway, such as one that is being deleted, stays with the node that is recorded.
 * `familiesOf` counts the families that a node has addresses of: a node group goes to a node that has as many, if there is one.
 */
export const ownershipPlanOf = (
  electorate: Electorate,
  rosters: readonly Roster[],
  nodes: readonly string[],
  ready: ReadonlySet<string>,
  recorded: ReadonlyMap<Ip, RecordedEip>,
  familiesOf: ReadonlyMap<string, number> = new Map(),
): OwnershipPlan => {
  const contenders = new Map(
    rosters.map(({ name, nodes: own }) => {
      const all: readonly Contender[] = own.map((node) => ({ name: node, hash: hashText(node) }));
      return [name, [all.filter((one) => ready.has(one.name)), all.filter((one) => !ready.has(one.name))]];
    }),
  );
  const eips: PlannedEip[] = [];
  for (const [key, record] of recorded) {
    const { eip, group, node, epoch } = record;
    const addresses = group === undefined ? pairIn(eip) : anyOfEach;
    const roster = rosterOf(rosters, record);
    // Who is not Ready comes last: it may be back before the API knows, and nodes ask nobody who is not heard.
    const groups = roster === undefined ? [] : (contenders.get(roster.name) ?? []);
    const isAble = ({ name }: Contender): boolean => (familiesOf.get(name) ?? 0) >= (familiesOf.get(node) ?? 0);
    const parts =
      group === undefined
        ? groups
        : groups.flatMap((all) => [all.filter(isAble), all.filter((contender) => !isAble(contender))]);
    const others = parts.flatMap((part) => successorsOf(hashText(key), node, part));
    const candidates = [node, ...others];
    eips.push(addresses === undefined ? { eip: key, epoch, candidates } : { eip: key, addresses, epoch, candidates });
  }
  const gateways = new Set([
    ...rosters.flatMap((one) => one.nodes),
    ...eips.map(({ candidates }) => candidates[0] ?? ''),
  ]);
  return { electorate, gateways: nodes.filter((node) => gateways.has(node)), nodes, eips };
};

/** The two addresses of a pair; undefined for a single one. */
const pairIn = ({ ipv4, ipv6 }: Eip): readonly Ip[] | undefined =>
  ipv4 === undefined || ipv6 === undefined ? undefined : [ipv4, ipv6];

/** A node group leaves with addresses of nodes: it needs the way out of each family, whatever network they are in. */
const anyOfEach: readonly Ip[] = ['0.0.0.0', '::'].flatMap((text) => {
  const parsed = parseIp(text);
  return parsed.ok ? [parsed.value] : [];
});

/** The gateway of an EIP or a node group; undefined when there is none any more. */
export const rosterOf = (
  rosters: readonly Roster[],
  { eip, group }: Pick<RecordedEip, 'eip' | 'group'>,
): Roster | undefined =>
  rosters.find(({ name, pools }) => (group === undefined ? holds(pools, eip) : group.gateway === name));

const holds = (pools: Roster['pools'], { ipv4, ipv6 }: Eip): boolean =>
  ipv4 === undefined ? ipv6 !== undefined && contains(pools.ipv6, ipv6) : contains(pools.ipv4, ipv4);

/** An owner of which a node was told, by the protocol. */
export interface NoticedOwner {
  readonly node: string;
  readonly epoch: number;
}

/**
 * Who owns an EIP where that is another node than the record says: the one of the latest epoch among what this node was
 * told and what nodes report. Epoch 0 is that of a record before nodes agreed on anything.
 *
 * Voters that all start anew have forgotten epochs that the API does not know, so an epoch may come twice. Then the node counts
 * that reports it: whom this node was told of before would else get its packets for ever.
 */
export const ownersOf = (
  recorded: ReadonlyMap<Ip, RecordedEip>,
  told: ReadonlyMap<Ip, NoticedOwner>,
  tunnels: readonly TunnelView[],
): ReadonlyMap<Ip, string> => {
  const latest = new Map(told);
  const reports = (known: NoticedOwner, ip: Ip): boolean =>
    tunnels.some(
      ({ node, held }) => node === known.node && held.some((one) => one.ip === ip && one.epoch >= known.epoch),
    );
  for (const { node, held } of tunnels) {
    for (const { ip, epoch } of held) {
      const known = latest.get(ip);
      const isAgain = epoch > 0 && epoch === known?.epoch && node !== known.node && !reports(known, ip);
      if (isAgain || epoch > (known?.epoch ?? 0)) latest.set(ip, { node, epoch });
    }
  }
  const owners = new Map<Ip, string>();
  for (const [eip, { node }] of latest) {
    const record = recorded.get(eip);
    if (record !== undefined && record.node !== node) owners.set(eip, node);
  }
  return owners;
};
