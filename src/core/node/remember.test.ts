import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { remember } from './remember.ts';

describe('remember', () => {
  it('computes again only for other arguments', () => {
    let calls = 0;
    const pair = remember((a: string, b: string) => {
      calls += 1;
      return [a, b];
    });
    const first = pair('a', 'b');
    assert.equal(pair('a', 'b'), first);
    assert.equal(calls, 1);
    assert.deepEqual(pair('a', 'c'), ['a', 'c']);
    assert.deepEqual(pair('b', 'c'), ['b', 'c']);
    assert.equal(calls, 3);
  });

  it('gives the last result again when a new one says the same', () => {
    const upper = remember(
      (text: string) => [text.toUpperCase()],
      ([a], [b]) => a === b,
    );
    const first = upper('x');
    assert.equal(upper('X'), first);
    assert.equal(upper('x'), first);
    assert.deepEqual(upper('y'), ['Y']);
  });
});
