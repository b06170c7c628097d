/**
 * Every reason, once. A reason travels unchanged from the decision to the condition, the Event, the metric label, the
 * CLI and the console; people and scripts may rely on its name.
 */
import { nodeReasons } from './reasons-node.ts';
import { policyReasons } from './reasons-policy.ts';
import { proxyReasons } from './reasons-proxy.ts';

export { type ConditionType, conditionTypes, type Place, type ReasonDescription } from './reason.ts';

/** All reasons by name. */
export const reasons = { ...policyReasons, ...nodeReasons, ...proxyReasons } as const;
export type Reason = keyof typeof reasons;

/** Tells whether the text is a reason of this list. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(reasons, text);
}
