import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { Bug, isBug } from './bug.ts';

test('bugs are told from faults of the world', () => {
  for (const error of [new TypeError('x'), new RangeError('x'), new ReferenceError('x'), new Bug('x'), 'text']) {
    assert.equal(isBug(error), true, String(error));
  }
  for (const error of [new Error('x'), new EgressError('CONFIG_INVALID', 'x'), new AggregateError([])]) {
    assert.equal(isBug(error), false, String(error));
  }
});
