/** The problems of caches in the log, without a flood: an outage of an hour is a dozen lines per cache, not thousands. */
import { messageOf } from '../process/bug.ts';
import type { Clock } from '../process/clock.ts';
import type { Log } from '../process/log.ts';
import type { InformerProblem } from './informer.ts';

/** How an outage of one cache stands. */
interface CacheOutage {
  readonly tries: number;
  /** A problem after this is the first of another outage. */
  readonly endsAtMs: number;
}

/** A try may itself take its time before it fails. */
const slackMs = 60_000;

/** Returns the listener for the caches. Of an outage it writes the 1st, 2nd, 4th, 8th ... try. */
export const problemLog = (log: Log, clock: Clock): ((cache: string, problem: InformerProblem) => void) => {
  const outageByCache = new Map<string, CacheOutage>();
  return (cache, problem) => {
    if (problem.kind === 'unreadable') {
      const why = messageOf(problem.error);
      log.warn({ component: cache, key: problem.key }, `cannot be read, the last readable state stays in use: ${why}`);
      return;
    }
    const nowMs = clock.monotonicMs();
    const before = outageByCache.get(cache);
    const tries = before !== undefined && nowMs <= before.endsAtMs ? before.tries + 1 : 1;
    outageByCache.set(cache, { tries, endsAtMs: nowMs + problem.retryMs + slackMs });
    if (!Number.isInteger(Math.log2(tries))) return;
    const { reason, message } = problem.error;
    log.warn({ component: cache, reason, count: tries }, `the watch is down, will try again: ${message}`);
  };
};
