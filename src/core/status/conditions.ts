/** Conditions from findings. A condition keeps its time while its status stays the same. */
import type { Condition } from '../../api/condition.ts';
import type { ConditionType } from '../../api/reason.ts';
import { reasons } from '../../api/reasons.ts';
import type { Finding } from '../cluster/finding.ts';

/** What the conditions of an object should say, by type. */
export type Findings = Partial<Readonly<Record<ConditionType, Finding>>>;

/** The limit of the API for messages. */
const maxMessageLength = 32_768;

/** The conditions for these findings, in the order of the record. `before` are those that the object shows now. */
export const conditionsOf = (
  findings: Findings,
  observedGeneration: number,
  before: readonly Condition[] | undefined,
  now: Date,
): Condition[] =>
  Object.entries(findings).map(([type, { reason, sentence }]) => {
    const described = reasons[reason].status;
    // Reasons that no condition carries never come out of a plan; Unknown says the least.
    const status = described === 'none' ? 'Unknown' : described;
    const old = before?.find((condition) => condition.type === type);
    return {
      type,
      status,
      reason,
      message: sentence.slice(0, maxMessageLength),
      observedGeneration,
      // Kubernetes keeps whole seconds.
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : `${now.toISOString().slice(0, 19)}Z`,
    };
  });
