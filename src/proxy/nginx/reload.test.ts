import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeErrors } from './reload.ts';

const line = (text: string): string => `2026/11/15 13:01:04 [emerg] 21894#21894: ${text}\n`;
const taken = (port: number): string => line(`bind() to [::]:${port} failed (98: Address already in use)`);

describe('the error log after a reload', () => {
  it('says nothing while nginx still tries', () => {
    assert.equal(judgeErrors(''), undefined);
    assert.equal(judgeErrors(`2026/11/15 13:01:04 [warn] 1#1: something\n${taken(4101)}`), undefined);
  });

  it('names the ports when nginx has given up', () => {
    const text = `${taken(4101)}${taken(4102)}${taken(4101)}${line('still could not bind()')}`;
    assert.deepEqual(judgeErrors(text), {
      kind: 'ports',
      ports: new Map([4101, 4102].map((port) => [port, 'Address already in use'])),
    });
  });

  it('names a port that may not be had at all at once', () => {
    assert.deepEqual(judgeErrors(line('bind() to 0.0.0.0:80 failed (13: Permission denied)')), {
      kind: 'ports',
      ports: new Map([[80, 'Permission denied']]),
    });
  });

  it('tells anything else in the words of nginx', () => {
    const text = line('open() "/run/current/nginx.conf" failed (2: No such file or directory)');
    assert.deepEqual(judgeErrors(text), {
      kind: 'failed',
      sentence: 'open() "/run/current/nginx.conf" failed (2: No such file or directory)',
    });
  });
});
