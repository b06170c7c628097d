import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastLines, must, run } from './command.ts';
import { LabFailure } from './failure.ts';

test('run gives input, output and exit code back, and stderr line by line', async () => {
  const lines: string[] = [];
  const finished = await run(['sh', '-c', 'cat; printf "a\\nb\\nrest" >&2; exit 3'], {
    input: 'in',
    onStderrLine: (line) => lines.push(line),
  });
  assert.deepEqual(finished, { code: 3, stdout: 'in', stderr: 'a\nb\nrest' });
  assert.deepEqual(lines, ['a', 'b']);
});

test('must names what was attempted and shows the end of what the program said', async () => {
  await assert.rejects(must('count sheep', ['sh', '-c', 'seq 100 >&2; exit 4']), (error) => {
    assert.ok(error instanceof LabFailure);
    assert.equal(error.message, 'count sheep: sh ended with code 4');
    assert.equal(error.detail.split('\n').length, 15);
    return true;
  });
});

test('a program that does not exist or does not end is a failure with its name', async () => {
  await assert.rejects(run(['no-such-program']), /cannot start no-such-program/);
  await assert.rejects(run(['sleep', '1000'], { timeoutMs: 20 }), /sleep 1000 did not end within 0.02 s/);
  const withGrandchild = ['sh', '-c', 'sleep 3 & wait'];
  await assert.rejects(run(withGrandchild, { timeoutMs: 200 }), /did not end within 0.2 s/);
});

test('lastLines keeps the end', () => {
  assert.equal(lastLines('1\n2\n3\n', 2), '2\n3');
});
