/** What is known about a condition and about a reason. The lists themselves are in reasons.ts. */

/** The condition types of all kinds, with what `True` means. */
export const conditionTypes = {
  Accepted: 'The spec can be acted on: everything it names exists and nothing forbids it.',
  Allocated: 'What the object needs has been given to it: for a policy an EIP, a gateway node and a slot.',
  Programmed: 'Every kernel, or every proxy replica, that has to do with this generation of the object holds it.',
  Ready: 'The object can serve now.',
  Detected: 'Everything that was to be detected has been found.',
  UplinkLost: 'EIPs do not reach the outside from the node in a family that they need. Absent otherwise.',
  Shadowed: 'Another policy wins for some or all of the traffic of this one. Absent otherwise.',
  Slowed: 'The node notices the loss of other nodes later than configured. Absent otherwise.',
  Limited:
    'The engine of the proxy does not offer everything that clients of these rules may ask for. Absent otherwise.',
  Published: 'The names of the rules answer in the DNS of the cluster.',
} as const;
export type ConditionType = keyof typeof conditionTypes;

/** Where a reason is seen: in a condition of that type, in an Event, or in the answer of the admission webhook. */
export type Place = ConditionType | 'Event' | 'Admission';

/** What people are told about a reason, and how the loops treat it. */
export interface ReasonDescription {
  readonly places: readonly Place[];
  /** Status of the condition that carries the reason; `none` for reasons that no condition carries. */
  readonly status: 'True' | 'False' | 'Unknown' | 'none';
  /** `user`: nothing happens until an object changes. `world`: retried by itself. `none`: nothing is wrong. */
  readonly fault: 'none' | 'user' | 'world';
  readonly sentence: string;
  readonly remedy: string;
}

const nothingToDo = 'Nothing.';

/** A condition that holds. */
export function good(place: Place, sentence: string, remedy = nothingToDo): ReasonDescription {
  return { places: [place], status: 'True', fault: 'none', sentence, remedy };
}

/** A condition that fails until somebody changes an object. */
export function refused(places: readonly Place[], sentence: string, remedy: string): ReasonDescription {
  return { places, status: 'False', fault: 'user', sentence, remedy };
}

/** A condition that fails now and may hold later without any change. */
export function failing(places: readonly Place[], sentence: string, remedy: string): ReasonDescription {
  return { places, status: 'False', fault: 'world', sentence, remedy };
}

/** A condition of which nobody knows at the moment. */
export function unknown(place: Place, sentence: string, remedy: string): ReasonDescription {
  return { places: [place], status: 'Unknown', fault: 'world', sentence, remedy };
}

/** Something that happened, told in an Event. */
export function happened(sentence: string): ReasonDescription {
  return { places: ['Event'], status: 'none', fault: 'none', sentence, remedy: nothingToDo };
}

/** A change that the admission webhook refuses. */
export function forbidden(sentence: string, remedy: string): ReasonDescription {
  return { places: ['Admission'], status: 'none', fault: 'user', sentence, remedy };
}
