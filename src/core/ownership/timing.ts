/**
 * Timing: every time of the protocol, worked out from the heartbeat. Nothing here is a date: each node measures durations
 * on its own clock, so clocks need not agree, only run about equally fast.
 */

/** What can be configured. */
export interface TimingSettings {
  /** How often a gateway node sends a heartbeat. */
  readonly heartbeatMs: number;
  /** How many heartbeats may be missing before a node counts as silent. */
  readonly heartbeatCount: number;
  /** How long a node whose kernel answers keeps its EIPs while its agent does not. */
  readonly graceMs: number;
}

/** The times that follow. */
export interface Timing {
  readonly heartbeatMs: number;
  /** A voter that has heard nothing of an owner for this long may vote for another one. */
  readonly silenceMs: number;
  /**
   * An owner holds for this long after it sent the last message that enough voters have answered. Half a heartbeat
   * shorter than the silence: the owner has let go before the first voter is free. The half is for what cannot be seen:
   * clocks that run unequally, and the time that the kernel takes.
   */
  readonly holdMs: number;
  /**
   * The silence is widened to this at the most, where the own timer or the messages of a node come irregularly: processors are short. It
   * is not much less than the loss of a node then takes.
   */
  readonly widestMs: number;
  /** What came irregularly is remembered for as long as this, and for twice as long at the most. */
  readonly jitterMs: number;
  /** A take-over was a false alarm if the node before is heard again so soon. It slows down take-overs of that EIP for as long as the second. */
  readonly falseAlarmMs: number;
  readonly dampingMs: number;
  /** After this much silence the kernel of an owner is asked, early enough for an answer before the silence is full. */
  readonly askKernelMs: number;
  readonly graceMs: number;
  /** The kernel lets go by itself this long after the agent told it to hold: before voters stop waiting for the agent. */
  readonly leaseMs: number;
  /** How often the kernel is told. */
  readonly renewMs: number;
  /** A timer of our own that fires later than this means that we were held up, and that silence proves nothing. */
  readonly lateMs: number;
  /** The most that an owner which was held up may hold beyond its time while it asks the voters: they have a silence to answer. */
  readonly extensionMs: number;
  /**
   * How long an agent that starts keeps what it finds in its kernel while it asks the voters. They have to get to know its new run first,
   * and may be held up. If one that says no is among the first, it ends at once; the kernel alone has held it for much longer.
   */
  readonly foundMs: number;
  /** How long an owner waits for the vote of a voter that has started anew. */
  readonly revoteMs: number;
  /** How long a node that is to have a new EIP, and is heard, has to ask for it: it may read the API later than others. */
  readonly newTurnMs: number;
  /** An owner announces an EIP of which another node speaks as of its own, but not more often than this. */
  readonly defenceMs: number;
  /** How long a node that has handed an EIP over carries its packets on. */
  readonly lingerMs: number;
  /** How long the node that got it hands on to the one before what it does not know: while that one surely carries it. */
  readonly handBackMs: number;
}

const WIDEST_MS = 1_000;

/** What holds without configuration: a loss is noticed after 100 ms. */
export const defaultTiming: TimingSettings = { heartbeatMs: 25, heartbeatCount: 4, graceMs: 30_000 };

/** How long an owner holds after it sent what a voter has answered, if that one promises to wait for a silence of this length. */
export const holdFor = (promisedMs: number, { silenceMs, holdMs }: Timing): number => (promisedMs * holdMs) / silenceMs;

/** The part by which two clocks may differ in speed, at the most, for the promise of one owner to hold. */
export const clockToleranceOf = ({ silenceMs, holdMs }: Timing): number => (silenceMs - holdMs) / (silenceMs + holdMs);

/** Works out all times. Throws for values that no promise could be kept with: the schema of the configuration refuses them. */
export const timingOf = ({ heartbeatMs, heartbeatCount, graceMs }: TimingSettings): Timing => {
  const silenceMs = heartbeatMs * heartbeatCount;
  if (heartbeatMs < 1 || heartbeatCount < 3 || graceMs < 4 * silenceMs) {
    throw new Error(`no ownership with ${heartbeatCount} heartbeats of ${heartbeatMs} ms and a grace of ${graceMs} ms`);
  }
  // A kernel holds for long enough only if the grace is much longer than any silence.
  const widestMs = Math.max(silenceMs, Math.min(WIDEST_MS, graceMs / 4));
  return {
    heartbeatMs,
    silenceMs,
    widestMs,
    jitterMs: 300 * silenceMs,
    falseAlarmMs: 10 * silenceMs,
    dampingMs: 600 * silenceMs,
    holdMs: silenceMs - heartbeatMs / 2,
    askKernelMs: heartbeatMs * 1.5,
    graceMs,
    // A voter counts the grace from the last heartbeat it heard, which may be a silence before the agent's last renewal.
    leaseMs: 0.9 * (graceMs - widestMs),
    renewMs: graceMs / 20,
    lateMs: heartbeatMs / 2,
    extensionMs: silenceMs,
    // Voters that were started at the same time vote for nobody for the widest silence.
    foundMs: widestMs + 4 * silenceMs,
    revoteMs: 2 * heartbeatMs,
    newTurnMs: 10 * silenceMs,
    defenceMs: 10 * silenceMs,
    lingerMs: 20 * silenceMs,
    handBackMs: 15 * silenceMs,
  };
};
