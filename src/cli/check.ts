/** Check: what was decided, compared with what somebody holds or says. */
export interface Check {
  /** What was looked at: a node for its kernel, `status of` a policy, `report of` a node. */
  readonly where: string;
  /** `unknown` where it could not be looked at. */
  readonly result: 'same' | 'different' | 'unknown';
  readonly sentence: string;
}
