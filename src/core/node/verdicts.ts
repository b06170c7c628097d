/** Verdicts: the mark that a new connection under a policy gets, and which policies cannot be served from this node. */
import { finding } from '../cluster/finding.ts';
import { ofPair, type PolicyView } from '../cluster/view.ts';
import type { IpFamily } from '../ip/index.ts';
import { outcomeOf, type SourceNode } from '../policies/outcome.ts';
import { type Bindings, nodeOf, type Owners } from './bindings.ts';
import type { NodeProblem } from './desired.ts';
import { type HostView, parentIn } from './input.ts';
import { DROP, LEAVE_ALONE, slotMark } from './numbers.ts';
import type { Reach } from './reach.ts';

/** Policy -> the mark that a new connection under it gets, by family. */
export type Verdicts = ReadonlyMap<PolicyView, Readonly<Record<IpFamily, number>>>;

/** The verdicts of policies on this node. */
export const verdictsAt = (
  policies: Iterable<PolicyView>,
  node: string,
  host: HostView,
  reach: Reach,
  bindings: Bindings,
): Verdicts => {
  const site = siteOf(node, host, reach);
  const verdict = (policy: PolicyView, family: IpFamily): number => verdictOf(policy, family, site, bindings);
  return new Map(Iterator.from(policies).map((policy) => [policy, { 4: verdict(policy, 4), 6: verdict(policy, 6) }]));
};

/** True when both say the same of the same policies. */
export const areSameVerdicts = (a: Verdicts, b: Verdicts): boolean =>
  a.size === b.size &&
  a.entries().every(([policy, marks]) => {
    const others = b.get(policy);
    return others?.[4] === marks[4] && others[6] === marks[6];
  });

/** The node as the place that packets start on. */
const siteOf = (node: string, host: HostView, { ends, numbers, ready }: Reach): SourceNode => ({
  canReach: (gateway) => gateway === node || numbers.has(gateway),
  isReady: (gateway) => ready.has(gateway),
  addressOf: (gateway, family) => {
    // What this node reads from its own kernel is newer than what it has reported.
    const parent = gateway === node ? parentIn(host) : ends.get(gateway)?.parent;
    return parent && ofPair(parent, family);
  },
});

const verdictOf = (policy: PolicyView, family: IpFamily, site: SourceNode, { bySlot }: Bindings): number => {
  const { spec, recorded } = policy;
  // A policy that cannot be read is in no class.
  if (spec === undefined) return LEAVE_ALONE;
  const { eip, slot } = recorded;
  const binding = slot === undefined ? undefined : bySlot.get(slot);
  const isOwner = binding?.policy === policy;
  const node = isOwner ? binding.node : recorded.node;
  const outcome = outcomeOf({ spec, eip, node, slot: isOwner ? slot : undefined }, family, site);
  switch (outcome.kind) {
    case 'gateway':
      return slotMark(outcome.slot);
    case 'drop':
      return DROP;
    case 'nodeIp':
    case 'leftAlone':
      return LEAVE_ALONE;
    default:
      return outcome satisfies never;
  }
};

/** What keeps policies of local sources from working, although they have an address and a node. */
export const verdictProblems = (
  policies: Iterable<PolicyView>,
  node: string,
  areRangesKnown: boolean,
  reach: Reach,
  owners: Owners,
): NodeProblem[] => {
  const problems: NodeProblem[] = [];
  for (const policy of policies) {
    const { key, spec } = policy;
    if (!areRangesKnown && spec?.destinations === undefined) {
      const what = `Node ${node} does not know what is outside the cluster, which policy ${key} is about.`;
      problems.push({ finding: finding('RangesUnknown', what), policy: key });
    }
    // Without a tunnel no gateway node is reached at all, and the node says so once.
    const gateway = nodeOf(policy, owners);
    if (!reach.own.ok || gateway === undefined || gateway === node) continue;
    const why = whyUnreachable(gateway, reach);
    if (why === undefined) continue;
    const what = `Node ${node} has no way to node ${gateway} of policy ${key}: ${why}.`;
    problems.push({ finding: finding('GatewayUnreachable', what), policy: key });
  }
  return problems;
};

const whyUnreachable = (gateway: string, { ends, peers, numbers }: Reach): string | undefined => {
  if (numbers.has(gateway)) return undefined;
  if (!ends.has(gateway)) return 'its EgressTunnel lacks a mark or an address';
  if (peers.some(({ node }) => node === gateway)) return `it has ways to ${numbers.size} others, and no number is left`;
  return 'its agent reports no address of the family that carries the tunnel here';
};
