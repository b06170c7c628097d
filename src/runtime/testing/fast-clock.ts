/** A clock that runs faster than the machine's, for tests whose waits are real because real sockets are involved. */
import { type Clock, systemClock } from '../process/clock.ts';

/** Returns a clock on which `factor` milliseconds pass in one. Its date is the machine's. */
export function fastClock(factor: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs() * factor,
    after: (delayMs, callback) => systemClock.after(delayMs / factor, callback),
  };
}
