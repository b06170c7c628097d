import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from './log.ts';

test('a new level reaches children that exist already', () => {
  const lines: string[] = [];
  const log = createLog({ process: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  const child = log.child({ controller: 'policies' });
  child.debug({}, 'quiet');
  log.setLevel('debug');
  child.debug({ key: 'default/shop' }, 'loud');
  assert.equal(lines.length, 1);
  const { time, pid, ...rest } = JSON.parse(lines[0] ?? '');
  assert.deepEqual(rest, {
    level: 'debug',
    process: 'test',
    controller: 'policies',
    key: 'default/shop',
    msg: 'loud',
  });
  assert.match(time, /^\d{4}-\d\d-\d\dT/);
  assert.equal(pid, undefined);
});
