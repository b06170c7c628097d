import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lastWords, lastWordsOf } from './last-words.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-words-'));
after(() => rmSync(folder, { recursive: true }));

const write = (pod: string, container: string, lines: readonly string[]) => {
  const own = join(folder, 'nodes', 'worker-1', 'logs', pod, container);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, '0.log'), lines.join('\n'));
};
const line = (second: number, said: object | string) =>
  `2026-11-15T22:44:${second}.123456Z stdout F ${typeof said === 'string' ? said : JSON.stringify(said)}`;

test('last words are the complaints since a time and the last lines, of our programs only', () => {
  const warn = { level: 'warn', component: 'policies', reason: 'Timeout', msg: 'the watch is down' };
  write('sallyport_sallyport-controller-1_uid', 'controller', [
    line(30, { ...warn, msg: 'long ago' }),
    line(40, warn),
    line(41, { level: 'info', msg: 'one' }),
    line(42, { level: 'info', msg: 'two' }),
    line(43, 'no line of ours'),
    '',
  ]);
  write('shop_client_uid', 'client', [line(42, warn)]);
  write('sallyport_sallyport-agent-1_uid', 'agent', [line(30, warn)]);
  assert.equal(
    lastWords({ folder }, Date.parse('2026-11-15T22:44:39Z')),
    [
      'sallyport-controller-1 on worker-1, controller, run 0: 4 lines, 1 complaints',
      '  22:44:40.123 warn policies (Timeout) the watch is down',
      '  22:44:42.123 info two',
      '  22:44:43.123 no line of ours',
    ].join('\n'),
  );
});

test('a lab that has no logs has no last words', () => {
  assert.equal(lastWords({ folder: join(folder, 'nowhere') }, 0), '');
});

test('the lines of a process are told the same way', () => {
  const lines = [
    { level: 'error', time: '2026-11-15T22:44:10.000Z', msg: 'before' },
    { level: 'error', time: '2026-11-15T22:44:40.123Z', component: 'lease', msg: 'cannot renew' },
  ];
  assert.equal(
    lastWordsOf('controller 1', lines, Date.parse('2026-11-15T22:44:39Z')),
    'controller 1: 1 lines, 1 complaints\n  22:44:40.123 error lease cannot renew',
  );
  assert.equal(lastWordsOf('controller 1', lines, Date.parse('2026-11-15T22:45:00Z')), '');
});
