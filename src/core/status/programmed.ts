/**
 * Programmed: whether the kernels of all nodes that have to do with a policy hold it. Those are the gateway node and the
 * nodes of its pods. Agents say up to which revision their kernels are in step, which EIPs they answer for, and what they
 * could not do.
 */
import { isReason, reasons } from '../../api/reasons.ts';
import { type Finding, finding, listed } from '../cluster/finding.ts';
import type { EipConflict, PolicyKey } from '../cluster/view.ts';
import { conflictFinding, conflictOf } from '../gateways/conflicts.ts';
import type { PolicyPlan } from '../plan/policy-plan.ts';
import { compareRevisions } from './revision.ts';

/** What the agent of a node says, as far as one kind of policies is concerned. */
export interface NodeProgress {
  readonly node: string;
  /** False when the agent has fallen silent, or was never heard of. */
  readonly isHeard: boolean;
  /** The revision up to which the kernel reflects all policies of the kind; undefined when it says none. */
  readonly applied: string | undefined;
  readonly problems: readonly ReportedProblem[];
  /** True when there are more problems than the report had room for, so that any policy may have one. */
  readonly hasMoreProblems: boolean;
}

/** Something that an agent could not do. The reason is text from the API: an agent may be newer than we are. */
export interface ReportedProblem {
  readonly reason: string;
  readonly message: string;
  /** Undefined: the whole node. */
  readonly policy?: string | undefined;
}

/** What is known about the way of a policy into the kernels. */
export interface Progress {
  /** The revision of the last change of the policy that agents act on; undefined while that is not written yet. */
  readonly revision: string | undefined;
  /** The nodes concerned, the gateway node first. */
  readonly nodes: readonly NodeProgress[];
  /** The gateway node, if Kubernetes says that it is not ready: what it reported last may no longer be so. */
  readonly unreadyGatewayNode: string | undefined;
  /** What the gateway node says of other machines that claim its EIPs. */
  readonly conflicts: readonly EipConflict[];
  /** Whether the gateway node says that it answers for the EIP; true for a policy without one. */
  readonly isHeld: boolean;
}

/** A revision that every agent has reached that has reported at all. */
export const anyRevision = '0';

/** What the condition Programmed of a policy says. */
export const programmedFinding = (plan: PolicyPlan, progress: Progress): Finding => {
  const { revision, nodes, unreadyGatewayNode, conflicts, isHeld } = progress;
  const { key, binding } = plan;
  if (!binding?.isServing) return notServedFinding(plan);
  for (const { node, problems } of nodes) {
    const problem = problems.find((each) => concerns(each, key));
    if (problem !== undefined) return problemFinding(node, problem);
  }
  const conflict = binding.eip && conflictOf(binding.eip, conflicts);
  if (conflict !== undefined) return conflictFinding(nodes[0]?.node ?? '', conflict);
  if (unreadyGatewayNode !== undefined) {
    const sentence = `Kubernetes says that node ${unreadyGatewayNode} is not ready; whether it carries policy ${key} is not known.`;
    return finding('GatewayNodeNotReady', sentence);
  }
  const waiting = nodes.filter((node) => node.isHeard && !hasReached(node, revision));
  if (waiting.length > 0) {
    return finding('WaitingForNodes', `Policy ${key} is not in the kernel of ${namesOf(waiting)} yet.`);
  }
  const unclear = nodes.filter(({ hasMoreProblems }) => hasMoreProblems);
  if (unclear.length > 0) {
    const sentence = `${namesOf(unclear)} has more problems than its report names; policy ${key} may be among them.`;
    return finding('ProblemsNotListed', sentence);
  }
  const silent = nodes.filter(({ isHeard }) => !isHeard);
  if (silent.length > 0) {
    return finding('NodeSilent', `Whether policy ${key} is in the kernel of ${namesOf(silent)} is not known.`);
  }
  // Rules alone carry no packet: nodes agree on the owner of an EIP after they have them.
  if (!isHeld) {
    const who = namesOf(nodes.slice(0, 1));
    return finding('WaitingForNodes', `Gateway node ${who} does not answer for the EIP of policy ${key} yet.`);
  }
  // Without names or numbers: a status must not be written anew whenever a pod comes to another node.
  return finding('KernelsInStep', `Policy ${key} is in the kernels of its gateway node and of the nodes of its pods.`);
};

/** True when the kernel of a node holds a policy whose last change is `revision`. */
export const hasReached = ({ applied }: NodeProgress, revision: string | undefined): boolean =>
  applied !== undefined && revision !== undefined && compareRevisions(applied, revision) >= 0;

const notServedFinding = ({ key, binding, traffic, accepted, allocated }: PolicyPlan): Finding => {
  if (binding === undefined) return finding('NotAccepted', `Policy ${key} is not accepted: ${accepted.reason}.`);
  switch (traffic) {
    case 'nodeIp':
      return finding('TrafficOnNodeIp', `Traffic of policy ${key} leaves with node IPs: ${allocated.reason}.`);
    case 'drop':
      return finding('TrafficDropped', `Traffic of policy ${key} is dropped: ${allocated.reason}.`);
    default:
      return finding('NotAllocated', `Policy ${key} has no address: ${allocated.reason}.`);
  }
};

/** A problem with a policy concerns that policy; one of the whole node all that need its kernel. */
const concerns = ({ reason, policy }: ReportedProblem, key: PolicyKey): boolean =>
  policy === undefined ? isProgrammedReason(reason) : policy === key;

const isProgrammedReason = (reason: string): boolean =>
  isReason(reason) && reasons[reason].places.some((place) => place === 'Programmed');

const problemFinding = (node: string, { reason, message }: ReportedProblem): Finding => {
  const sentence = `Node ${node}: ${message}`;
  if (isReason(reason) && isProgrammedReason(reason)) return { reason, sentence };
  // An agent of another version has a reason that we do not know; what it says counts all the same.
  return { reason: 'WaitingForNodes', sentence: `${sentence} (${reason})` };
};

const namesOf = (nodes: readonly NodeProgress[]): string => listed(nodes.map(({ node }) => node));
