/**
 * The clock of the machine, which all threads of a process share. It goes on while the process is stopped and while the machine is
 * suspended (CLOCK_BOOTTIME), and never goes back: by it an agent knows how much time has passed for the others. The clock that
 * Node reads (CLOCK_MONOTONIC) and the time-outs of the kernel stand still while the machine is suspended.
 */
import type { Libc } from '../../dataplane/libc.ts';
import { type Clock, systemClock } from '../../runtime/process/clock.ts';

export interface MachineClock extends Clock {
  /** For how long the machine was suspended since it booted. */
  suspendedMs(): number;
}

// From linux/time.h.
const CLOCK_MONOTONIC = 1;
const CLOCK_BOOTTIME = 7;

export const createMachineClock = (libc: Pick<Libc, 'clockGettime'>): MachineClock => {
  // struct timespec: seconds and nanoseconds.
  const time = Buffer.alloc(16);
  const read = (clock: number): number => {
    libc.clockGettime(clock, time);
    return Number(time.readBigInt64LE(0)) * 1_000 + Number(time.readBigInt64LE(8)) / 1e6;
  };
  return {
    ...systemClock,
    monotonicMs: () => read(CLOCK_BOOTTIME),
    suspendedMs: () => read(CLOCK_BOOTTIME) - read(CLOCK_MONOTONIC),
  };
};
