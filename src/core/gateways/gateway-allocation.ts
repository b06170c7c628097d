/** What the gateways do for their policies: which EIP each gets, and which node carries it. */

import { type Finding, finding } from '../cluster/finding.ts';
import { matches } from '../cluster/labels.ts';
import type { Eip, GatewaySpecView, NodeView, PolicyKey, PolicySpecView, TunnelView } from '../cluster/view.ts';
import { type Ip, type IpFamily, ofFamily } from '../ip/index.ts';
import { nodeGroupKey } from '../ownership/node-group.ts';
import { isSameList } from '../values/equality.ts';
import { type Applicant, keepEips } from './allocation.ts';
import { eipText, type Holders, type Pair } from './eip-pairs.ts';
import { type GatewayNode, type Load, type Placement, placeAll } from './placement.ts';
import type { GatewayPools } from './pools.ts';
import type { GatewayRequests } from './requests.ts';

/** A node of the cluster with its labels, and what it was made from. */
export interface LabelledNode extends GatewayNode {
  readonly view: NodeView;
  readonly reported: TunnelView['held'];
  readonly labels: NodeView['labels'];
}

/** What a policy was given; policies that share an EIP share the load. */
export interface Granted {
  /** Undefined: the address of the node. */
  readonly eip: Eip | undefined;
  readonly load: Load;
}

/**
 * What a gateway did, and what it was asked. The same value stays while it would do the same: what it was given by then is
 * on the records of its policies, so those may be other values than its applicants.
 */
export interface GatewayAllocation extends GatewayRequests {
  readonly pools: GatewayPools | undefined;
  readonly seed: string;
  /** The nodes it selects, in the order of `nodes`. */
  readonly nodes: readonly GatewayNode[];
  /** Nodes that it does not select and that report to hold EIPs, which may be its own. */
  readonly others: readonly GatewayNode[];
  /** The oldest policy first. */
  readonly granted: ReadonlyMap<PolicyKey, Granted>;
  readonly places: ReadonlyMap<Load, Placement>;
  readonly refused: ReadonlyMap<PolicyKey, Finding>;
}

/** What a gateway did, and the policies that it would do the same for. */
export interface RepeatedAllocation {
  readonly served: GatewayAllocation;
  readonly applicants: readonly Applicant[];
}

/**
 * Serves all policies. Demands are sorted by the age of their gateways: the older one keeps an address that two have.
 * `lastOf` gives what a gateway did last; a gateway that is asked the same again is not asked, and that very value stays.
 */
export const allocateAll = (
  demands: readonly GatewayRequests[],
  poolsByGateway: ReadonlyMap<string, GatewayPools>,
  nodes: readonly LabelledNode[],
  seed: string,
  lastOf: (gateway: string) => RepeatedAllocation | undefined = () => undefined,
): readonly RepeatedAllocation[] => {
  const holders: Holders = new Map();
  const begun = demands.map(({ gateway, applicants }): (() => GatewayAllocation) => {
    const { spec, name } = gateway;
    const pools = poolsByGateway.get(name);
    const own = spec === undefined ? [] : nodes.filter(({ labels }) => matches(spec.nodes, labels));
    const others = nodes.filter((node) => node.held.size > 0 && !own.includes(node));
    const asked: AllocationInput = { gateway, applicants, pools, seed, nodes: own, others };
    const last = lastOf(name);
    if (last !== undefined && isSameAllocation(last, asked)) return () => last.served;
    if (spec === undefined || pools === undefined) return () => ({ ...asked, ...nothing });
    const wantsEip = applicants.filter((applicant) => applicant.spec.address.kind !== 'nodeIp');
    const allocate = keepEips(gateway, spec, pools, wantsEip, holders, seed);
    return () => ({ ...asked, ...serve(asked, spec, allocate()) });
  });
  return begun.map((finish, index) => ({ served: finish(), applicants: demands[index]?.applicants ?? [] }));
};

type AllocationInput = Pick<GatewayAllocation, 'gateway' | 'applicants' | 'pools' | 'seed' | 'nodes' | 'others'>;
type AllocationOutput = Pick<GatewayAllocation, 'granted' | 'places' | 'refused'>;

const nothing: AllocationOutput = { granted: new Map(), places: new Map(), refused: new Map() };

/**
 * True when the answer can only be the same. For a gateway that is alone it depends on nothing but these; and what it gave
 * to policies it gives again when all of them have it on record, which is how a plan after a restart is the plan before it.
 */
const isSameAllocation = (
  { served, applicants: known }: RepeatedAllocation,
  { gateway, applicants, pools, seed, nodes, others }: AllocationInput,
): boolean =>
  pools?.isAlone === true &&
  served.gateway === gateway &&
  served.pools === pools &&
  served.seed === seed &&
  isSameList(served.nodes, nodes) &&
  isSameList(served.others, others) &&
  (isSameList(known, applicants) || isOnRecord(served, applicants));

/** True when these are the same policies with the same wishes, and all have on record what they were given. */
const isOnRecord = (
  { gateway, applicants, granted, places, refused }: GatewayAllocation,
  now: readonly Applicant[],
): boolean =>
  refused.size === 0 &&
  !gateway.isDeleting &&
  applicants.length === now.length &&
  now.every(({ policy, spec }, index) => {
    const before = applicants[index];
    const given = granted.get(policy.key);
    if (before?.policy.uid !== policy.uid || before.spec !== spec || given === undefined) return false;
    const place = places.get(given.load);
    const { eip, node, epoch } = policy.recorded;
    const isPlaced = place?.isServing === true && place.node === node && place.epoch === epoch;
    return isPlaced && eip.ipv4 === given.eip?.ipv4 && eip.ipv6 === given.eip?.ipv6;
  });

const serve = (
  { gateway, applicants, nodes, others }: AllocationInput,
  spec: GatewaySpecView,
  { pairs, decisions }: ReturnType<ReturnType<typeof keepEips>>,
): AllocationOutput => {
  const loadByPair = new Map(pairs.map((pair) => [pair, loadOfPair(pair)]));
  const granted = new Map<PolicyKey, Granted>();
  const refused = new Map<PolicyKey, Finding>();
  for (const applicant of applicants) {
    const { policy } = applicant;
    const decision = decisions.get(policy.key);
    if (decision === undefined) {
      if (gateway.isDeleting && policy.recorded.slot === undefined) {
        const what = `Gateway ${gateway.name} of policy ${policy.key} is being deleted.`;
        refused.set(policy.key, finding('GatewayDeleting', what));
      } else granted.set(policy.key, { eip: undefined, load: loadOfNodeIp(applicant, gateway.name) });
    } else if (decision.ok) {
      const pair = decision.value;
      const load = loadByPair.get(pair) ?? loadOfPair(pair);
      granted.set(policy.key, { eip: { ipv4: pair.ipv4, ipv6: pair.ipv6 }, load });
    } else refused.set(policy.key, decision.finding);
  }
  // A set keeps the order in which loads were met: that of their oldest policies.
  const loads = [...new Set([...granted.values()].map(({ load }) => load))];
  return { granted, places: placeAll(loads, nodes, spec, gateway.moves, others), refused };
};

const loadOfPair = (pair: Pair): Load => {
  // Statuses are written one by one: the latest epoch among them tells where the EIP is.
  const keepers = pair.keepers.toSorted((a, b) => b.recorded.epoch - a.recorded.epoch);
  return {
    name: eipText(pair),
    ips: [pair.ipv4, pair.ipv6].filter((ip) => ip !== undefined),
    keyAt: undefined,
    policies: pair.policies.map(({ key }) => key),
    recordedNodes: keepers.map(({ recorded }) => recorded.node).filter((node) => node !== undefined),
    epoch: keepers[0]?.recorded.epoch ?? 0,
    neededFamilies: [],
  };
};

const loadOfNodeIp = ({ policy, spec }: Applicant, gateway: string): Load => {
  const { eip, node, gateway: gatewayBefore, epoch } = policy.recorded;
  // The node of an EIP that the policy had before says nothing about where its traffic should leave now.
  const hadNodeIp = node !== undefined && eip.ipv4 === undefined && eip.ipv6 === undefined;
  const keyAt = (name: string): Ip => nodeGroupKey({ gateway, node: name });
  return {
    name: policy.key,
    ips: hadNodeIp ? [keyAt(node)] : [],
    keyAt,
    policies: [policy.key],
    recordedNodes: hadNodeIp ? [node] : [],
    epoch: gatewayBefore === gateway ? epoch : 0,
    neededFamilies: familiesOfDestinations(spec),
  };
};

/** The families that a policy names destinations of; a policy for everything outside takes what the node has. */
const familiesOfDestinations = ({ destinations }: PolicySpecView): readonly IpFamily[] => {
  if (destinations === undefined) return [];
  const families: readonly IpFamily[] = [4, 6];
  return families.filter((family) => ofFamily(destinations, family).intervals.length > 0);
};
