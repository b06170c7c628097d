/** Clocks for tests of announcing: the machine's, and one that a test moves. */
import type { MonotonicTimers } from '../../timers.ts';

/** The timers of the machine. */
export const machineTimers: MonotonicTimers = {
  monotonicMs: () => performance.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** A clock that stands still until it is moved. */
export interface ManualTimers extends MonotonicTimers {
  /** Moves time on; timers fire in order, each at its own time. */
  advance(ms: number): void;
  /** Moves time on while nothing runs, as when the process is stopped: what was due meanwhile fires late. */
  oversleep(ms: number): void;
  /** How many timers are set. */
  readonly waiting: number;
}

export const manualTimers = (): ManualTimers => {
  const timers = new Set<{ readonly dueMs: number; readonly callback: () => void }>();
  let nowMs = 0;
  return {
    monotonicMs: () => nowMs,
    after: (delayMs, callback) => {
      const timer = { dueMs: nowMs + delayMs, callback };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    advance: (ms) => {
      const endMs = nowMs + ms;
      const nextDue = () =>
        [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((left, right) => left.dueMs - right.dueMs)[0];
      for (let timer = nextDue(); timer !== undefined; timer = nextDue()) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.dueMs);
        timer.callback();
      }
      nowMs = endMs;
    },
    oversleep: (ms) => {
      nowMs += ms;
    },
    get waiting() {
      return timers.size;
    },
  };
};
