/** Label selectors in the shape of Kubernetes (metav1.LabelSelector). */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';
import { withRules } from './rule.ts';

/** An optional prefix of 253 characters, a slash and a name of 63: the longest label key of Kubernetes. */
const LabelKey = z.string().min(1).max(317);
const LabelValue = z.string().max(63);
const maxRequirements = 256;

const Requirement = withRules(
  z.object({
    key: LabelKey.describe('The label key that the requirement is about.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label relates to `values`.'),
    values: z
      .array(LabelValue)
      .max(maxRequirements)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('The values for In and NotIn; absent for Exists and DoesNotExist.')
      .optional(),
  }),
  {
    rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    message: 'values must have an entry for operator In and NotIn, and none for Exists and DoesNotExist',
    fieldPath: '.values',
    holds: ({ operator, values = [] }) => operator.endsWith('In') === values.length > 0,
  },
);

/** A selector; an empty one matches everything, an absent one is for the field to explain. */
export const LabelSelector = z
  .object({
    matchLabels: z
      .record(LabelKey, LabelValue)
      .meta({ maxProperties: maxRequirements })
      .describe('Labels that must all be present with exactly these values.')
      .optional(),
    matchExpressions: z
      .array(Requirement)
      .max(maxRequirements)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Requirements that must all hold.')
      .optional(),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });
export type LabelSelector = Immutable<z.infer<typeof LabelSelector>>;

/** CEL: the selector at x is there and asks for something. */
export const selectsSomething = (x: string) =>
  `(has(${x}) && ((has(${x}.matchLabels) && ${x}.matchLabels.size() > 0) || (has(${x}.matchExpressions) && ${x}.matchExpressions.size() > 0)))`;

/** Tells whether the selector is there and asks for something; an empty selector matches everything. */
export function isSelective(selector: z.infer<typeof LabelSelector> | undefined): boolean {
  return Object.keys(selector?.matchLabels ?? {}).length > 0 || (selector?.matchExpressions ?? []).length > 0;
}
