/**
 * The protocol in a simulated network: 10,000 histories, each from a seed, none of which depends on the machine;
 * test/e2e/ownership-simulation.test.ts has 100,000 others. One that fails is printed as kind:seed, and
 * OWNERSHIP_REPLAY=storm:4711 runs that one alone and prints what every node did.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { failuresIn, replay, shares } from './testing/campaign.ts';
import { run } from './testing/histories.ts';

const TOTAL = 10_000;
const replayed = process.env.OWNERSHIP_REPLAY;

describe('ownership, simulated', () => {
  if (replayed !== undefined) {
    it(`replays ${replayed}`, () => assert.deepEqual(replay(replayed, console.log), []));
    return;
  }
  for (const { kind, count } of shares(TOTAL)) {
    it(`holds in ${count} histories of kind ${kind}`, () => assert.deepEqual(failuresIn(kind, 1, count), []));
  }

  it('is the same history for the same seed', () => {
    const traceOf = (seed: number): readonly string[] => {
      const trace: string[] = [];
      run('storm', {
        seed,
        onEffect: (timeMs, { name }, effect) => trace.push(JSON.stringify([timeMs, name, effect])),
      });
      return trace;
    };
    assert.deepEqual(traceOf(7), traceOf(7));
    assert.notDeepEqual(traceOf(7), traceOf(8));
  });
});
