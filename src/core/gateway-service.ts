/** What the gateways do for their policies: which EIP each gets, and which node carries it. */
import { type Applicant, keepEips } from './allocation.ts';
import { eipText, type Holders, type Pair } from './eip-pairs.ts';
import { type Finding, finding } from './finding.ts';
import type { GatewayPools } from './gateway-pools.ts';
import { type IpFamily, ofFamily } from './ip/index.ts';
import { matches } from './labels.ts';
import { type GatewayNode, type Load, type Place, placeAll } from './placement.ts';
import type { Eip, GatewaySpecView, GatewayView, NodeView, PolicySpecView, PolicyView } from './view.ts';

/** A gateway with the policies that use it, the oldest first. */
export interface Demand {
  readonly gateway: GatewayView;
  readonly applicants: readonly Applicant[];
}

/** A node of the cluster with its labels. */
export interface LabelledNode extends GatewayNode {
  readonly labels: NodeView['labels'];
}

/** What a policy was given; policies that share an EIP share the load. */
export interface Granted {
  readonly applicant: Applicant;
  /** Undefined: the address of the node. */
  readonly eip: Eip | undefined;
  readonly load: Load;
}

/** What a gateway did. */
export interface Served {
  readonly gateway: GatewayView;
  /** The nodes it selects, in the order of `nodes`. */
  readonly nodes: readonly GatewayNode[];
  readonly granted: readonly Granted[];
  readonly places: ReadonlyMap<Load, Place>;
  readonly refused: ReadonlyMap<PolicyView, Finding>;
}

/** Serves all policies. Demands are sorted by the age of their gateways: the older one keeps an address that two have. */
export const serveAll = (
  demands: readonly Demand[],
  poolsByGateway: ReadonlyMap<string, GatewayPools>,
  nodes: readonly LabelledNode[],
  seed: string,
): readonly Served[] => {
  const holders: Holders = new Map();
  const begun = demands.map(({ gateway, applicants }) => {
    const { spec } = gateway;
    const pools = poolsByGateway.get(gateway.name);
    if (spec === undefined || pools === undefined) return () => idle(gateway);
    const wantsEip = applicants.filter((applicant) => applicant.spec.address.kind !== 'nodeIp');
    const allocate = keepEips(gateway, spec, pools, wantsEip, holders, seed);
    return () => serve(gateway, spec, applicants, allocate(), nodes);
  });
  return begun.map((finish) => finish());
};

const idle = (gateway: GatewayView): Served => ({
  gateway,
  nodes: [],
  granted: [],
  places: new Map(),
  refused: new Map(),
});

const serve = (
  gateway: GatewayView,
  spec: GatewaySpecView,
  applicants: readonly Applicant[],
  { pairs, decisions }: ReturnType<ReturnType<typeof keepEips>>,
  nodes: readonly LabelledNode[],
): Served => {
  const own = nodes.filter(({ labels }) => matches(spec.nodes, labels));
  const loadByPair = new Map(pairs.map((pair) => [pair, loadOfPair(pair)]));
  const granted: Granted[] = [];
  const refused = new Map<PolicyView, Finding>();
  for (const applicant of applicants) {
    const { policy } = applicant;
    const decision = decisions.get(policy.key);
    if (decision === undefined) {
      if (gateway.isDeleting && policy.recorded.slot === undefined) {
        const what = `Gateway ${gateway.name} of policy ${policy.key} is being deleted.`;
        refused.set(policy, finding('GatewayDeleting', what));
      } else granted.push({ applicant, eip: undefined, load: loadOfNodeIp(applicant) });
    } else if (decision.ok) {
      const pair = decision.value;
      const load = loadByPair.get(pair) ?? loadOfPair(pair);
      granted.push({ applicant, eip: { ipv4: pair.ipv4, ipv6: pair.ipv6 }, load });
    } else refused.set(policy, decision.finding);
  }
  // A set keeps the order in which loads were met: that of their oldest policies.
  const loads = [...new Set(granted.map(({ load }) => load))];
  return { gateway, nodes: own, granted, places: placeAll(loads, own, spec), refused };
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
