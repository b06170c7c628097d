/** What has to be written to a policy so that it shows what was decided about it. */
import type { PolicyStatus } from '../../api/policy.ts';
import { type Finding, finding, isGood } from '../../core/finding.ts';
import type { PolicyPlan } from '../../core/policy-plan.ts';
import { recordPolicy } from '../../core/record.ts';
import type { KeptPolicy } from '../caches.ts';
import { conditionsOf, type Findings } from '../conditions.ts';
import { type Ownership, shows } from '../owned-status.ts';
import type { Change } from './change.ts';
import type { Decided } from './decision.ts';

/** The part of the status of a policy that the plan decides; `matchedPods` belongs to the slices loop. */
export const policyOwnership: Ownership<PolicyStatus> = {
  fieldsOf: ({ eip, node, slot }) => ({ eip, node, slot }),
  conditionTypes: ['Accepted', 'Allocated', 'Programmed', 'Shadowed'],
};

/** The changes to a policy; none when it shows the plan already, or is being deleted. */
export const policyChanges = (
  { plan, generation }: Decided<PolicyPlan>,
  { identity, status }: KeptPolicy,
  now: Date,
): readonly Change<PolicyStatus>[] => {
  if (identity.isDeleting) return [];
  const wanted: PolicyStatus = {
    ...recordPolicy(plan),
    observedGeneration: generation,
    conditions: conditionsOf(findingsOf(plan), generation, status?.conditions, now),
  };
  return shows(status, wanted, policyOwnership) ? [] : [{ kind: 'status', status: wanted }];
};

const findingsOf = (plan: PolicyPlan): Findings => ({
  Accepted: plan.accepted,
  Allocated: plan.allocated,
  Programmed: programmedFinding(plan),
  ...shadowedFinding(plan),
});

/** Whether kernels hold the policy is for agents to say; the plan knows only when there is nothing to hold. */
const programmedFinding = ({ key, binding, traffic, accepted, allocated }: PolicyPlan): Finding => {
  if (binding === undefined) return finding('NotAccepted', `Policy ${key} is not accepted: ${accepted.reason}.`);
  if (binding.isServing) return finding('NodeSilent', `Node ${binding.node} has not reported on policy ${key} yet.`);
  switch (traffic) {
    case 'nodeIp':
      return finding('TrafficOnNodeIp', `Traffic of policy ${key} leaves with node IPs: ${allocated.reason}.`);
    case 'drop':
      return finding('TrafficDropped', `Traffic of policy ${key} is dropped: ${allocated.reason}.`);
    default:
      return finding('NotAllocated', `Policy ${key} has no address: ${allocated.reason}.`);
  }
};

const shadowedFinding = ({ key, shadows }: PolicyPlan): Findings => {
  if (shadows.length === 0) return {};
  const winners = shadows.map(({ by, extent }) => `${by} for ${extent === 'all' ? 'all' : 'some'} of its traffic`);
  return { Shadowed: finding('ShadowedByPolicy', `Over policy ${key} wins ${winners.join(', then ')}.`) };
};

/** The reason that says most about a policy: why it is refused, else why it has no way out, else how it leaves. */
export const verdictOf = ({ accepted, allocated }: PolicyPlan): Finding => (isGood(accepted) ? allocated : accepted);
