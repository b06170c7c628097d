import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LabFailure } from './failure.ts';
import { until } from './wait.ts';

test('until returns the first answer that is neither undefined nor false', async () => {
  const answers = [undefined, false, 0];
  assert.equal(await until({ what: 'x', limitMs: 10_000, everyMs: 1 }, () => answers.shift()), 0);
});

test('a wait that reaches its limit says what for, why not, and what the log said', async () => {
  const wait = { what: 'rain', limitMs: 5, everyMs: 1, explain: () => 'the log' };
  const probe = () => Promise.reject(new Error('dry'));
  await assert.rejects(until(wait, probe), (error) => {
    assert.ok(error instanceof LabFailure);
    assert.equal(error.message, 'waited 0.005 s for rain, in vain');
    assert.match(error.detail, /^asked (\d+) times, \1 of them threw; load [\d. ]+\ndry\nthe log$/);
    return true;
  });
});

test('a wait tells the last error also when its last answer was no', async () => {
  let asked = 0;
  const probe = () => {
    asked += 1;
    if (asked === 1) throw new Error('dry');
    return false;
  };
  await assert.rejects(until({ what: 'rain', limitMs: 5, everyMs: 1 }, probe), (error) => {
    assert.ok(error instanceof LabFailure);
    assert.match(error.detail, /^asked \d+ times, 1 of them threw; .*\ndry$/);
    return true;
  });
});

test('an explanation that fails does not hide what was waited for', async () => {
  const wait = { what: 'rain', limitMs: 5, everyMs: 1, explain: () => Promise.reject(new Error('no paper')) };
  await assert.rejects(
    until(wait, () => false),
    (error) => {
      assert.ok(error instanceof LabFailure);
      assert.equal(error.message, 'waited 0.005 s for rain, in vain');
      assert.match(error.detail, /\nnot explained: no paper$/);
      return true;
    },
  );
});

test('a wait ends at once when it is aborted', async () => {
  const stop = new AbortController();
  const waiting = until({ what: 'x', limitMs: 600_000, everyMs: 600_000, signal: stop.signal }, () => false);
  stop.abort(new Error('enough'));
  await assert.rejects(waiting, /enough|aborted/);
});
