/**
 * How long to wait before the next try. Two shapes: a short one for a single call, and one for an informer,
 * which never gives up.
 */

/** Half of the wait is fixed and half is random, so that clients that failed together do not return together. */
function jittered(ms: number, random: () => number): number {
  return ms * (0.5 + random() / 2);
}

/** The wait before repeat number `attempt` (0 is the first) of one call: 100 ms, 200 ms, ... up to 2 s. */
export function callBackoffMs(attempt: number, random: () => number): number {
  return jittered(Math.min(100 * 2 ** attempt, 2_000), random);
}

const firstMs = 100;
/** Waits up to this long cost a restarted server little, and we are back within about a second of it. */
const shortMs = 1_000;
const longestMs = 30_000;

/** An outage as an informer sees it. */
export interface Outage {
  /** Failures in a row; 0 after a healthy end. */
  readonly failures: number;
  readonly lastedMs: number;
  /** The last failure was an answer: there is a server, and it is in trouble. */
  readonly isAnswered: boolean;
}

/**
 * The wait of an informer before its next try. It doubles up to one second and stays there while nobody answers: a
 * server that is not there is not burdened by a knock per second, and we are back within about a second of it. A
 * server that answers with errors sees ever fewer of us: from then on the wait is a twentieth of the outage.
 */
export function outageBackoffMs({ failures, lastedMs, isAnswered }: Outage, random: () => number): number {
  const limitMs = isAnswered ? Math.min(Math.max(shortMs, lastedMs / 20), longestMs) : shortMs;
  return jittered(Math.min(firstMs * 2 ** Math.min(failures, 20), limitMs), random);
}
