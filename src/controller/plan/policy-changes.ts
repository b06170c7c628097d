/** What has to be written to a policy so that it shows what was decided about it. */
import type { PolicyStatus } from '../../api/policy.ts';
import { type Finding, isGood } from '../../core/cluster/finding.ts';
import type { PolicyPlan } from '../../core/plan/policy-plan.ts';
import { conditionsOf, type Findings } from '../../core/status/conditions.ts';
import { type Progress, programmedFinding } from '../../core/status/programmed.ts';
import { recordPolicy } from '../../core/status/record.ts';
import { isSame, type StatusOwnership, shows } from '../../runtime/kube/owned-status.ts';
import type { CachedPolicy } from '../loop/caches.ts';
import type { Change } from './change.ts';
import type { PlannedObject } from './decision.ts';

/** The part of the status of a policy that is ours. */
export const policyOwnership: StatusOwnership<PolicyStatus> = {
  fieldsOf: ({ eip, gateway, node, slot, epoch, matchedPods }) => ({ eip, gateway, node, slot, epoch, matchedPods }),
  conditionTypes: ['Accepted', 'Allocated', 'Programmed', 'Shadowed'],
};

/** What a status says besides the plan. */
export interface PolicyFacts {
  /** How many pods the policy applies to. */
  readonly matchedPods: number;
  readonly progress: Progress;
}

/** The changes to a policy; none when it shows the plan already, or is being deleted. */
export const policyChanges = (
  { plan, generation }: PlannedObject<PolicyPlan>,
  { identity, status }: CachedPolicy,
  { matchedPods, progress }: PolicyFacts,
  now: Date,
): readonly Change<PolicyStatus>[] => {
  if (identity.isDeleting) return [];
  const wanted: PolicyStatus = {
    ...recordPolicy(plan),
    matchedPods,
    observedGeneration: generation,
    conditions: conditionsOf(findingsOf(plan, progress), generation, status?.conditions, now),
  };
  return shows(status, wanted, policyOwnership) ? [] : [{ kind: 'status', status: wanted }];
};

const findingsOf = (plan: PolicyPlan, progress: Progress): Findings => ({
  Accepted: plan.accepted,
  Allocated: plan.allocated,
  Programmed: programmedFinding(plan, progress),
  ...(plan.shadowed === undefined ? {} : { Shadowed: plan.shadowed }),
});

/**
 * True when nobody waits for the new status: it only counts pods anew, or names other nodes that are waited for. Every
 * agent reads every status, so these are written less often.
 */
export const canWait = (before: PolicyStatus | undefined, after: PolicyStatus): boolean => {
  const outcomeOf = ({ eip, gateway, node, slot, epoch, observedGeneration, conditions = [] }: PolicyStatus) => ({
    ...{ eip, gateway, node, slot, epoch, observedGeneration },
    conditions: conditions.map(({ type, reason }) => `${type} ${reason}`),
  });
  return before !== undefined && isSame(outcomeOf(before), outcomeOf(after));
};

/** True when the new status leaves packets where they are: agents learn nothing from it, only people do. */
export const isForPeople = (before: PolicyStatus | undefined, after: PolicyStatus): boolean => {
  const bindingOf = ({ eip, gateway, node, slot, epoch, observedGeneration }: PolicyStatus) => ({
    ...{ eip, gateway, node, slot, epoch, observedGeneration },
  });
  return before !== undefined && isSame(bindingOf(before), bindingOf(after));
};

/** The reason that says most about a policy: why it is refused, else why it has no way out, else how it leaves. */
export const verdictOf = ({ accepted, allocated }: PolicyPlan): Finding => (isGood(accepted) ? allocated : accepted);
