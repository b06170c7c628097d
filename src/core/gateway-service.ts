/** What the gateways do for their policies: which EIP each gets, and which node carries it. */
import { type Applicant, keepEips } from './allocation.ts';
import { eipText, type Holders, type Pair } from './eip-pairs.ts';
import { type Finding, finding } from './finding.ts';
import type { GatewayPools } from './gateway-pools.ts';
import { type IpFamily, ofFamily } from './ip/index.ts';
import { matches } from './labels.ts';
import { type GatewayNode, type Load, type Place, placeAll } from './placement.ts';
import { isSameList } from './same-list.ts';
import type { Eip, GatewaySpecView, GatewayView, NodeView, PolicySpecView, PolicyView, TunnelView } from './view.ts';

/** A gateway with the policies that use it, the oldest first. */
export interface Demand {
  readonly gateway: GatewayView;
  readonly applicants: readonly Applicant[];
}

/** A node of the cluster with its labels, and what it was made from. */
export interface LabelledNode extends GatewayNode {
  readonly view: NodeView;
  readonly reported: TunnelView['held'];
  readonly labels: NodeView['labels'];
}

/** What a policy was given; policies that share an EIP share the load. */
export interface Granted {
  readonly applicant: Applicant;
  /** Undefined: the address of the node. */
  readonly eip: Eip | undefined;
  readonly load: Load;
}

/** What a gateway did, and what it was asked. */
export interface Served extends Demand {
  readonly pools: GatewayPools | undefined;
  readonly seed: string;
  /** The nodes it selects, in the order of `nodes`. */
  readonly nodes: readonly GatewayNode[];
  /** The oldest policy first. */
  readonly granted: ReadonlyMap<PolicyView, Granted>;
  readonly places: ReadonlyMap<Load, Place>;
  readonly refused: ReadonlyMap<PolicyView, Finding>;
}

/**
 * Serves all policies. Demands are sorted by the age of their gateways: the older one keeps an address that two have.
 * `lastOf` gives what a gateway did last; a gateway that is asked the same again is not asked, and that very value stays.
 */
export const serveAll = (
  demands: readonly Demand[],
  poolsByGateway: ReadonlyMap<string, GatewayPools>,
  nodes: readonly LabelledNode[],
  seed: string,
  lastOf: (gateway: string) => Served | undefined = () => undefined,
): readonly Served[] => {
  const holders: Holders = new Map();
  const begun = demands.map(({ gateway, applicants }): (() => Served) => {
    const { spec, name } = gateway;
    const pools = poolsByGateway.get(name);
    const own = spec === undefined ? [] : nodes.filter(({ labels }) => matches(spec.nodes, labels));
    const asked: Asked = { gateway, applicants, pools, seed, nodes: own };
    const last = lastOf(name);
    if (last !== undefined && isAskedAgain(last, asked)) return () => last;
    if (spec === undefined || pools === undefined) return () => ({ ...asked, ...nothing });
    const wantsEip = applicants.filter((applicant) => applicant.spec.address.kind !== 'nodeIp');
    const allocate = keepEips(gateway, spec, pools, wantsEip, holders, seed);
    return () => ({ ...asked, ...serve(asked, spec, allocate()) });
  });
  return begun.map((finish) => finish());
};

type Asked = Pick<Served, 'gateway' | 'applicants' | 'pools' | 'seed' | 'nodes'>;
type Done = Pick<Served, 'granted' | 'places' | 'refused'>;

const nothing: Done = { granted: new Map(), places: new Map(), refused: new Map() };

/** True when the answer can only be the same: for a gateway that is alone, it depends on nothing but these. */
const isAskedAgain = (last: Asked, { gateway, applicants, pools, seed, nodes }: Asked): boolean =>
  pools?.isAlone === true &&
  last.gateway === gateway &&
  last.pools === pools &&
  last.seed === seed &&
  isSameList(last.nodes, nodes) &&
  last.applicants.length === applicants.length &&
  last.applicants.every(({ policy }, index) => policy === applicants[index]?.policy);

const serve = (
  { gateway, applicants, nodes }: Asked,
  spec: GatewaySpecView,
  { pairs, decisions }: ReturnType<ReturnType<typeof keepEips>>,
): Done => {
  const loadByPair = new Map(pairs.map((pair) => [pair, loadOfPair(pair)]));
  const granted = new Map<PolicyView, Granted>();
  const refused = new Map<PolicyView, Finding>();
  for (const applicant of applicants) {
    const { policy } = applicant;
    const decision = decisions.get(policy.key);
    if (decision === undefined) {
      if (gateway.isDeleting && policy.recorded.slot === undefined) {
        const what = `Gateway ${gateway.name} of policy ${policy.key} is being deleted.`;
        refused.set(policy, finding('GatewayDeleting', what));
      } else granted.set(policy, { applicant, eip: undefined, load: loadOfNodeIp(applicant) });
    } else if (decision.ok) {
      const pair = decision.value;
      const load = loadByPair.get(pair) ?? loadOfPair(pair);
      granted.set(policy, { applicant, eip: { ipv4: pair.ipv4, ipv6: pair.ipv6 }, load });
    } else refused.set(policy, decision.finding);
  }
  // A set keeps the order in which loads were met: that of their oldest policies.
  const loads = [...new Set([...granted.values()].map(({ load }) => load))];
  return { granted, places: placeAll(loads, nodes, spec, gateway.moves), refused };
};

const loadOfPair = (pair: Pair): Load => ({
  name: eipText(pair),
  ips: [pair.ipv4, pair.ipv6].filter((ip) => ip !== undefined),
  policies: pair.policies.map(({ key }) => key),
  recordedNodes: pair.keepers.map(({ recorded }) => recorded.node).filter((node) => node !== undefined),
  neededFamilies: [],
});

const loadOfNodeIp = ({ policy, spec }: Applicant): Load => {
  const { eip, node } = policy.recorded;
  // The node of an EIP that the policy had before says nothing about where its traffic should leave now.
  const hadNodeIp = node !== undefined && eip.ipv4 === undefined && eip.ipv6 === undefined;
  return {
    name: policy.key,
    ips: [],
    policies: [policy.key],
    recordedNodes: hadNodeIp ? [node] : [],
    neededFamilies: familiesOfDestinations(spec),
  };
};

/** The families that a policy names destinations of; a policy for everything outside takes what the node has. */
const familiesOfDestinations = ({ destinations }: PolicySpecView): readonly IpFamily[] => {
  if (destinations === undefined) return [];
  const families: readonly IpFamily[] = [4, 6];
  return families.filter((family) => ofFamily(destinations, family).intervals.length > 0);
};
