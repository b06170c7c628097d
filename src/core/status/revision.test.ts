import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compareRevisions } from './revision.ts';

describe('compareRevisions', () => {
  it('orders as numbers do, however long they are', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 1n << 90n }), fc.bigInt({ min: 0n, max: 1n << 90n }), (a, b) => {
        assert.equal(Math.sign(compareRevisions(`${a}`, `${b}`)), a < b ? -1 : a > b ? 1 : 0);
        assert.equal(Math.sign(compareRevisions(`00${a}`, `${b}`)), a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  it('does not compare as texts do', () => assert.ok(compareRevisions('9', '10') < 0));
});
