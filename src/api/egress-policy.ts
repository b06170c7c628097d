/** EgressPolicy: which pods of a namespace leave through which gateway, to where, and with which address. */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';
import { isSelective, selectsSomething } from './label-selector.ts';
import { gatewayGroup, objectOf } from './object-meta.ts';
import { hasPodSubnet, PolicyStatus, podSelector, podSubnet, policyFields } from './policy.ts';
import { withRules } from './rule.ts';

const AppliedTo = withRules(z.object({ podSelector, podSubnet }), {
  rule: `${selectsSomething('self.podSelector')} != ${hasPodSubnet}`,
  message: 'appliedTo must have exactly one of podSelector (with at least one label or expression) and podSubnet',
  holds: (applied) => isSelective(applied.podSelector) !== (applied.podSubnet ?? []).length > 0,
});

/** What is asked of a policy; a parse fills in the defaults. */
export const EgressPolicySpec = z.object({
  ...policyFields,
  appliedTo: AppliedTo.describe('The pods of this namespace that the policy is about.'),
});
export type EgressPolicySpec = Immutable<z.infer<typeof EgressPolicySpec>>;

/** A whole EgressPolicy. Its status is a PolicyStatus. */
export const EgressPolicy = objectOf(`${gatewayGroup}/v1beta1`, 'EgressPolicy', {
  spec: EgressPolicySpec.describe('What is asked of this policy.'),
  status: PolicyStatus.describe('What the controller made of it.').optional(),
}).describe('EgressPolicy lets pods of its namespace leave the cluster through an EgressGateway with a fixed address.');
export type EgressPolicy = Immutable<z.infer<typeof EgressPolicy>>;
