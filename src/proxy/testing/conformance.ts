/**
 * What every engine does, whichever program it is. A test file calls `engineConformance` once, in a process that is alone in
 * a network namespace; see bed.ts. An engine that cannot do something lists the scenario with the reason, and the suite
 * proves that it really cannot.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Bed, type MakeEngine, openBed } from './bed.ts';
import { changeScenarios } from './conformance-change.ts';
import { clientScenarios } from './conformance-clients.ts';
import { endScenarios } from './conformance-end.ts';
import { httpScenarios } from './conformance-http.ts';
import { sourceScenarios } from './conformance-sources.ts';
import { tcpScenarios } from './conformance-tcp.ts';
import { upstreamScenarios } from './conformance-upstream.ts';
import { ruleSet } from './rules.ts';

/** Something that an engine does; the name is for exceptions, the title for people. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  run(bed: Bed): Promise<void>;
}

/** Scenario names and why the engine cannot. */
export type Exceptions = Readonly<Record<string, string>>;

/** Registers the suite for one engine. */
export const engineConformance = (
  name: string,
  make: MakeEngine,
  options: { readonly program: string; readonly exceptions?: Exceptions },
): void => {
  describeScenarios(`${name} as an engine`, make, options, {
    'TCP rules': tcpScenarios,
    'HTTP rules': httpScenarios,
    'ordinary clients': clientScenarios,
    'connections to servers': upstreamScenarios,
    sources: sourceScenarios,
    'changes and failures': changeScenarios,
    // Last: an engine that was told to retire stays so.
    'the end': endScenarios,
  });
};

/** Registers groups of scenarios that share one running engine. */
export const describeScenarios = (
  title: string,
  make: MakeEngine,
  options: { readonly program: string; readonly exceptions?: Exceptions },
  groups: Readonly<Record<string, readonly Scenario[]>>,
): void => {
  const exceptions = new Map(Object.entries(options.exceptions ?? {}));
  describe(title, () => {
    let bed: Bed;
    before(async () => {
      bed = await openBed(make, options.program);
    });
    after(() => bed[Symbol.asyncDispose]());
    for (const [group, scenarios] of Object.entries(groups)) {
      describe(group, () => {
        for (const scenario of scenarios) {
          const reason = exceptions.get(scenario.name);
          exceptions.delete(scenario.name);
          it(reason === undefined ? scenario.title : `cannot: ${scenario.title} (${reason})`, async () => {
            // Each scenario starts from nothing, so that one that failed does not spoil the next.
            await bed.serve(ruleSet());
            bed.forgetLines();
            if (reason === undefined) await scenario.run(bed);
            else await assert.rejects(scenario.run(bed), `${scenario.name} works; take it off the exceptions`);
          });
        }
      });
    }
    it('has no exception for a scenario that does not exist', () => {
      assert.deepEqual([...exceptions.keys()], []);
    });
  });
};
