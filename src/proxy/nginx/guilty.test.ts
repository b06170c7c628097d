import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { findGuilty } from './guilty.ts';

describe('findGuilty', () => {
  it('finds exactly the bad ones, whichever they are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(1000), { maxLength: 200 }),
        fc.func(fc.boolean()),
        async (rules, isBad) => {
          const bad = rules.filter((rule) => isBad(rule)).slice(0, 5);
          let tests = 0;
          const { passing, guilty } = await findGuilty(rules, async (part) => {
            tests += 1;
            const found = part.find((rule) => bad.includes(rule));
            return found === undefined ? undefined : `${found} is bad`;
          });
          assert.deepEqual(
            passing,
            rules.filter((rule) => !bad.includes(rule)),
          );
          assert.deepEqual(
            guilty.map(({ rule }) => rule),
            bad,
          );
          for (const { rule, words } of guilty) assert.equal(words, `${rule} is bad`);
          assert.ok(tests <= 1 + bad.length * 11, `${tests} tests for ${bad.length} of ${rules.length}`);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('refuses the later one of two that do not go together', async () => {
    const { passing, guilty } = await findGuilty([1, 2, 3, 4, 5], async (part) =>
      part.includes(2) && part.includes(4) ? 'two and four' : undefined,
    );
    assert.deepEqual(passing, [1, 2, 3, 5]);
    assert.deepEqual(guilty, [{ rule: 4, words: 'two and four' }]);
  });

  it('gives up when no rule is to blame', async () => {
    await assert.rejects(
      findGuilty([1, 2], async () => 'the module is missing'),
      /the module is missing/,
    );
    await assert.rejects(
      findGuilty([], async () => 'the module is missing'),
      /the module is missing/,
    );
  });
});
