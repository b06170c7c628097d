import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { failuresIn, folders, inLanes, timetable, total } from './e2e.ts';

describe('the timetable', () => {
  it('begins with the longest file, and leaves those that need the machine for themselves to the end', () => {
    const files = [
      'test/e2e/api.test.ts',
      'test/e2e/failover.test.ts',
      'test/e2e/egctl.test.ts',
      'test/e2e/proxy.test.ts',
    ];
    assert.deepEqual(timetable(files), {
      together: ['test/e2e/proxy.test.ts', 'test/e2e/egctl.test.ts', 'test/e2e/api.test.ts'],
      alone: ['test/e2e/failover.test.ts'],
    });
  });

  it('has every file once, and there is a file for each that runs alone', () => {
    const files = globSync(
      folders.map((folder) => `${folder}/*.test.ts`),
      { cwd: join(import.meta.dirname, '..') },
    );
    const { together, alone } = timetable(files);
    assert.deepEqual([...together, ...alone].toSorted(), files.toSorted());
    assert.equal(alone.length, 7);
  });
});

describe('lanes', () => {
  it('are as many as asked for, and begin in the order of the jobs', async () => {
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const all = inLanes(2, [1, 2, 3], (job) => {
      begun.push(job);
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.push(resolve);
      return promise;
    });
    assert.deepEqual(begun, [1, 2]);
    ends[1]?.();
    // A turn of the event loop: everything that is resolved has gone on.
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(begun, [1, 2, 3]);
    for (const end of ends) end();
    await all;
  });
});

describe('the end of a run', () => {
  it('repeats what the test runner said about failed tests', () => {
    assert.equal(
      failuresIn('✔ a\n✖ b\n\n✖ failing tests:\n\ntest at x.ts:1\n✖ b (1ms)\n'),
      'test at x.ts:1\n✖ b (1ms)',
    );
    assert.equal(failuresIn('cannot find the file\n'), 'cannot find the file');
  });

  it('adds up the counts of all files', () => {
    const one = ['ℹ tests 3', 'ℹ pass 2', 'ℹ fail 1', 'ℹ duration_ms 7.5'];
    assert.deepEqual(total([one, ['ℹ tests 2', 'ℹ pass 2', 'ℹ fail 0']]), ['ℹ tests 5', 'ℹ pass 4', 'ℹ fail 1']);
  });
});
