/**
 * The ownership protocol in 100,000 simulated histories (src/core/ownership/testing). Nothing of the lab is needed; it is
 * here because it takes a minute. OWNERSHIP_SEED=4711 begins with another seed, so that a night can try millions.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { failuresIn, shares } from '../../src/core/ownership/testing/campaign.ts';

const TOTAL = 100_000;
const firstSeed = Number(process.env.OWNERSHIP_SEED ?? 1_000_001);

describe('ownership, simulated at length', () => {
  for (const { kind, count } of shares(TOTAL)) {
    it(`holds in ${count} histories of kind ${kind}`, () => assert.deepEqual(failuresIn(kind, firstSeed, count), []));
  }
});
