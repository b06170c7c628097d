import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { accountOf, LabFailure } from './failure.ts';

test('an account has code, message, last lines and causes', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED ::1:1'), { code: 'ECONNREFUSED' });
  const reset = Object.assign(new Error('the other end is gone'), { code: 'ECONNRESET' });
  const both = new AggregateError([refused, reset]);
  const failure = new LabFailure('read what was installed', 'line 1\nline 2', { cause: new TypeError('fetch failed') });
  assert.equal(accountOf(refused), 'connect ECONNREFUSED ::1:1');
  assert.equal(accountOf(reset), 'ECONNRESET: the other end is gone');
  assert.equal(
    accountOf(both),
    'AggregateError\nbecause connect ECONNREFUSED ::1:1\nbecause ECONNRESET: the other end is gone',
  );
  assert.equal(
    accountOf(new Error('x', { cause: failure })),
    'x\nbecause read what was installed\n  line 1\n  line 2\n  because TypeError: fetch failed',
  );
  assert.equal(accountOf('gone'), 'gone');
});

test('a refused fetch says who refused', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  await new Promise((resolve) => server.close(resolve));
  const failure: unknown = await fetch(`http://127.0.0.1:${address.port}`).catch((error: unknown) => error);
  assert.match(
    accountOf(failure),
    new RegExp(`^TypeError: fetch failed\\nbecause .*ECONNREFUSED 127.0.0.1:${address.port}`),
  );
});

test('an error that is its own cause has an end', () => {
  const error = new Error('round and round');
  error.cause = error;
  assert.equal(accountOf(error).split('\n').length, 6);
});
