import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { ApiError } from './api-error.ts';
import { problemLog } from './problem-log.ts';

test('an outage of an hour is a dozen lines, and the next outage begins anew', async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = createLog({ process: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  const tell = problemLog(log, clock);
  const outage = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      tell('policies', {
        kind: 'disconnected',
        error: ApiError.transport('Unreachable', 'nobody there'),
        retryMs: 1_000,
      });
      await clock.advance(1_000);
    }
  };
  await outage(3_600);
  assert.equal(lines.length, 12);
  assert.match(lines[0] ?? '', /"component":"policies","reason":"Unreachable","count":1,.*nobody there/);
  await clock.advance(120_000);
  await outage(1);
  assert.equal(lines.length, 13);
});

test('an object that cannot be read is named', () => {
  const lines: string[] = [];
  const log = createLog({ process: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  problemLog(log, new ManualClock())('nodes', { kind: 'unreadable', key: 'a', error: new Error('no address') });
  assert.match(lines[0] ?? '', /"component":"nodes","key":"a".*no address/);
});
