/**
 * AdmissionRule is one named check of the webhook, and `judge` runs an ordered list of them. A rule either refuses or warns.
 * The first refusal is the answer, because later rules build on what earlier ones have found to be right.
 *
 * An update is refused only for what it changes. A rule names the part of the spec that it is about; where an update
 * leaves that part alone, a refusal becomes a warning. So an object that was right when it was written can always be
 * edited, whatever has happened around it, and nobody is locked out of repairing something else first.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Finding } from '../../core/cluster/finding.ts';
import type { AdmissionVerdict } from '../../runtime/serve/admission-review.ts';
import type { AdmissionView } from './view.ts';

/** An object that somebody wants to write. `old` is absent for a new one. */
export interface Subject<View> {
  readonly view: View;
  readonly old: View | undefined;
}

/** What somebody should know: the field, and a sentence with the value, what is allowed and the remedy. */
export interface Advice {
  readonly field: string;
  readonly sentence: string;
}

/** Why a request is refused. */
export interface Objection extends Advice {
  readonly reason: DenyReason;
}

/** Our own reasons, and the words of Kubernetes where we have none. */
export type DenyReason = Finding['reason'] | 'Forbidden';

interface RuleOf<View, Effect extends string, Answer> {
  /** Stable: documentation and tests know the rule by it. */
  readonly name: string;
  readonly effect: Effect;
  /** The part of the object that the rule is about, for comparing an update with what was there. */
  readonly about: (view: View) => unknown;
  /** Undefined: nothing to say. Pure. */
  readonly check: (subject: Subject<View>, world: AdmissionView) => Answer | undefined;
}

/** One check. */
export type AdmissionRule<View> = RuleOf<View, 'refuse', Objection> | RuleOf<View, 'warn', Advice>;

/** Runs the rules in order. */
export const judge = <View>(
  rules: readonly AdmissionRule<View>[],
  subject: Subject<View>,
  world: AdmissionView,
): AdmissionVerdict => {
  const warnings: string[] = [];
  for (const rule of rules) {
    if (rule.effect === 'refuse') {
      const objection = rule.check(subject, world);
      if (objection !== undefined && !isUntouched(rule, subject)) return refuse(objection, warnings);
      if (objection !== undefined) warnings.push(messageOf(objection));
    } else {
      const advice = rule.check(subject, world);
      if (advice !== undefined) warnings.push(messageOf(advice));
    }
  }
  return { kind: 'allow', warnings };
};

/** The verdict that goes with an objection. */
export const refuse = (objection: Objection, warnings: readonly string[] = []): AdmissionVerdict => ({
  kind: 'deny',
  reason: objection.reason,
  message: messageOf(objection),
  warnings,
});

/** The sentence that a user reads. */
export const messageOf = ({ field, sentence }: Advice): string => `${field}: ${sentence}`;

const isUntouched = <View>({ about }: AdmissionRule<View>, { view, old }: Subject<View>): boolean =>
  old !== undefined && isDeepStrictEqual(about(old), about(view));
