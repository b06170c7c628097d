import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { ChangedKeys } from './changed-keys.ts';

describe('ChangedKeys', () => {
  it('hands keys on together, each once, no later than the window after the first', async () => {
    const clock = new ManualClock();
    const changed = new ChangedKeys<string>(clock, 100);
    const handed: string[][] = [];
    changed.subscribe((keys) => handed.push([...keys]));
    changed.add(['a', 'b']);
    await clock.advance(99);
    changed.add(['a', 'c']);
    assert.deepEqual(handed, []);
    await clock.advance(1);
    assert.deepEqual(handed, [['a', 'b', 'c']]);
    changed.add([]);
    changed.add(['d']);
    await clock.advance(100);
    assert.deepEqual(handed, [['a', 'b', 'c'], ['d']]);
  });

  it('keeps nothing while nobody listens', async () => {
    const clock = new ManualClock();
    const changed = new ChangedKeys<string>(clock, 100);
    changed.add(['a']);
    const handed: string[][] = [];
    const end = changed.subscribe((keys) => handed.push([...keys]));
    await clock.advance(100);
    end();
    changed.add(['b']);
    await clock.advance(100);
    assert.deepEqual(handed, []);
  });
});
