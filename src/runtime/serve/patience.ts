/**
 * A verdict with patience. Caches trail the API server by milliseconds, so a policy that is applied together with its
 * gateway may be judged before the gateway is known. A refusal is therefore judged again a few times within half a
 * second before it is given; what is allowed is allowed at once. A wrong permission does no harm: the loops
 * decide on the whole state later and says so in conditions.
 */
import { type Clock, wait } from '../process/clock.ts';
import type { AdmissionHandler } from './admission.ts';
import type { AdmissionRequest, AdmissionVerdict } from './admission-review.ts';

/** Waits before a refusal is judged again. */
const secondThoughtsMs = [20, 60, 140, 280] as const;

/** What a handler needs besides its judge. */
export interface PatienceDeps<View> {
  readonly clock: Clock;
  readonly view: () => View;
  /** Names of caches that have not been filled yet. */
  readonly missing: () => readonly string[];
}

/** Makes a handler of a judge. While caches are being filled it refuses everything with a sentence that says so. */
export const withPatience =
  <View>(
    judge: (request: AdmissionRequest, view: View) => AdmissionVerdict,
    { clock, view, missing }: PatienceDeps<View>,
  ): AdmissionHandler =>
  async (request) => {
    const unknown = missing();
    if (unknown.length > 0) {
      return {
        kind: 'deny',
        reason: 'ServiceUnavailable',
        code: 503,
        message: `webhook: Sallyport is starting and does not know the cluster yet (waits for ${unknown.join(', ')}). Try again in a few seconds.`,
        warnings: [],
      };
    }
    let verdict = judge(request, view());
    for (const delayMs of secondThoughtsMs) {
      if (verdict.kind !== 'deny') break;
      await wait(clock, delayMs);
      verdict = judge(request, view());
    }
    return verdict;
  };
