/**
 * Finding is what a decision came to: a reason of the typed list and one sentence for people. The status of the
 * condition that carries it, and whose fault it is, follow from the reason.
 */
import { type Reason, reasons } from '../../api/reasons.ts';

/** A reason with the sentence that goes into a condition, an Event, the CLI and the console. */
export interface Finding {
  readonly reason: Reason;
  /** Names the object and the value; where something is wrong it ends with what to do. */
  readonly sentence: string;
}

// How src/api/reason.ts writes that nothing has to be done.
const NO_REMEDY = 'Nothing.';

/** An expected refusal, or a value. Core throws only for bugs. */
export type Decided<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly finding: Finding };

/** Makes a finding from a whole sentence about what is the case; the remedy of the reason follows it, if there is one. */
export const finding = (reason: Reason, what: string): Finding => {
  const { remedy } = reasons[reason];
  return { reason, sentence: remedy === NO_REMEDY ? what : `${what} ${remedy}` };
};

/** Wraps a value that was decided on. */
export const decided = <T>(value: T): Decided<T> => ({ ok: true, value });

/** Refuses with a finding. */
export const refusedWith = (reason: Reason, what: string): Decided<never> => ({
  ok: false,
  finding: finding(reason, what),
});

/** True when the condition that carries the finding holds. */
export const isGood = ({ reason }: Finding): boolean => reasons[reason].status === 'True';

// A status message must stay one line that can be read, whatever the cluster holds.
const NAMES_SHOWN = 5;

/** Names as a list for a sentence: the first few, then how many more there are. */
export const listed = (names: readonly string[]): string =>
  names.length <= NAMES_SHOWN
    ? names.join(', ')
    : `${names.slice(0, NAMES_SHOWN).join(', ')} and ${names.length - NAMES_SHOWN} more`;
