/** EgressClusterPolicy: the same as EgressPolicy for pods of many namespaces. */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';
import { isSelective, LabelSelector, selectsSomething } from './label-selector.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';
import { hasPodSubnet, PolicyStatus, podSelector, podSubnet, policyFields } from './policy.ts';
import { withRules } from './rule.ts';

const AppliedTo = withRules(
  z.object({
    podSelector,
    podSubnet,
    namespaceSelector: LabelSelector.describe(
      'Labels of the namespaces whose pods are meant. Absent or empty: all namespaces. It narrows `podSelector` and `podSubnet` alike.',
    ).optional(),
  }),
  {
    rule: `!(${selectsSomething('self.podSelector')} && ${hasPodSubnet})`,
    message: 'appliedTo must have podSelector or podSubnet, not both',
    reason: 'FieldValueForbidden',
    holds: (applied) => !(isSelective(applied.podSelector) && (applied.podSubnet ?? []).length > 0),
  },
  {
    rule: `has(self.podSelector) || has(self.namespaceSelector) || ${hasPodSubnet}`,
    message:
      'appliedTo must have podSelector, podSubnet or namespaceSelector; write an empty podSelector to mean every pod of the cluster',
    reason: 'FieldValueRequired',
    holds: (applied) =>
      applied.podSelector !== undefined ||
      applied.namespaceSelector !== undefined ||
      (applied.podSubnet ?? []).length > 0,
  },
);

/** What is asked of a cluster policy; a parse fills in the defaults. */
export const EgressClusterPolicySpec = z.object({
  ...policyFields,
  appliedTo: AppliedTo.describe('The pods that the policy is about. An empty `podSelector` means all pods.'),
});
export type EgressClusterPolicySpec = Immutable<z.infer<typeof EgressClusterPolicySpec>>;

/** A whole EgressClusterPolicy. Its status is a PolicyStatus. */
export const EgressClusterPolicy = objectOf(`${gatewayGroup}/v1beta1`, 'EgressClusterPolicy', {
  spec: EgressClusterPolicySpec.describe('What is asked of this policy.'),
  status: PolicyStatus.describe('What the controller made of it.').optional(),
}).describe(
  'EgressClusterPolicy lets pods of any namespace leave the cluster through an EgressGateway with a fixed address.',
);
export type EgressClusterPolicy = Immutable<z.infer<typeof EgressClusterPolicy>>;
