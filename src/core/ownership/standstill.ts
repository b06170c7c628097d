/** Standstill: when so much time has passed over a node that did nothing that what it knew is worth nothing. */
import type { Timing } from './timing.ts';

/** How time has passed. */
export interface Passed {
  readonly nowMs: number;
  /** Until when the kernel holds what it was told to hold; infinite when that is nothing. */
  readonly heldUntilMs: number;
  /** For how long the machine was suspended since the last step. */
  readonly suspendedMs: number;
}

/**
 * Whether another node may have each EIP by now, and each vote may be another's: the lease of the kernel is over, or nothing was done
 * for as long, or the machine itself was suspended, so that its kernel has answered nobody.
 */
export const isTooLate = ({ nowMs, heldUntilMs, suspendedMs }: Passed, steppedAtMs: number, timing: Timing): boolean =>
  nowMs >= Math.min(heldUntilMs, steppedAtMs + timing.leaseMs) || suspendedMs >= timing.holdMs;
