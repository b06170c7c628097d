import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireNode } from './node-version.ts';

test('an old Node.js is refused with one sentence', () => {
  requireNode('26.10.0');
  requireNode('24.0.0');
  assert.throws(() => requireNode('20.20.2'), { code: 'NODE_TOO_OLD', message: /Node\.js 20\.20\.2 is too old/ });
});
