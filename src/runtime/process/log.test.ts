import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

test('lines before an exit are written, in their order, also while the threads of Node are busy', () => {
  const code = `
    import { pbkdf2 } from 'node:crypto';
    import { createLog } from '${import.meta.dirname}/log.ts';
    pbkdf2('', '', 200_000, 64, 'sha512', () => {});
    const log = createLog({ process: 'test', level: 'info' });
    for (const line of ['one', 'two', 'three']) log.info({}, line);
    process.exit(0);
  `;
  const output = execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', code], {
    env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
    encoding: 'utf8',
  });
  const lines = output.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ['one', 'two', 'three'],
  );
});
