/** The metrics of a Loop: how long its passes take, and how old the changes are that they take in. */

import type { Instruments } from '../process/instruments.ts';
import type { MetricDefinition } from '../process/metric-definitions.ts';
import type { LoopHooks } from './loop.ts';

/** Makes both metrics, each under the name that its process gives it, and returns the hooks that fill them. */
export const observeLoop = (
  { histogram }: Pick<Instruments, 'histogram'>,
  definitions: { readonly passSeconds: MetricDefinition; readonly passAge: MetricDefinition },
): LoopHooks => {
  const seconds = histogram(definitions.passSeconds);
  const age = histogram(definitions.passAge);
  return {
    passed(result, durationMs, ageMs) {
      seconds.observe({ result }, durationMs / 1000);
      age.observe(ageMs / 1000);
    },
  };
};
