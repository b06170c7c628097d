/**
 * What no client may do to an engine. Around the proxy stand servers that no rule names, inside the cluster and outside:
 * whatever a client sends, none of them is ever reached, and each refusal is counted and logged.
 */
import type { MakeEngine } from './bed.ts';
import { describeScenarios, type Exceptions } from './conformance.ts';
import { fairnessScenarios } from './security-fairness.ts';
import { loopScenarios } from './security-loops.ts';
import { nameScenarios } from './security-names.ts';
import { requestScenarios } from './security-requests.ts';

/** Registers the suite for one engine; see engineConformance. */
export const engineSecurity = (
  name: string,
  make: MakeEngine,
  options: { readonly program: string; readonly exceptions?: Exceptions },
): void => {
  describeScenarios(`${name} against bad clients`, make, options, {
    'requests and connections': requestScenarios,
    'names and addresses': nameScenarios,
    loops: loopScenarios,
    fairness: fairnessScenarios,
  });
};
