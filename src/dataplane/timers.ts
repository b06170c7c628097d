/** Time as the data plane needs it; the Clock of src/runtime, which it may not import, has it all. */

/** Calls back later. */
export interface Timers {
  /** Calls back once after the delay; the returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The same, for code that also measures how long something takes. */
export interface MonotonicTimers extends Timers {
  /** Milliseconds since an arbitrary instant; never goes back. */
  monotonicMs(): number;
}
