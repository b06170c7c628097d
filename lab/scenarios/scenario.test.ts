import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectSame, Unexpected } from './scenario.ts';

test('a step that sees something else than it promises fails, and says both', () => {
  assert.throws(
    () => expectSame('source address over IPv4', '10.77.0.13', '10.77.0.100'),
    (error) =>
      error instanceof Unexpected &&
      error.message === 'source address over IPv4: promised 10.77.0.100, seen 10.77.0.13',
  );
  expectSame('source address over IPv4', '10.77.0.100', '10.77.0.100');
});
