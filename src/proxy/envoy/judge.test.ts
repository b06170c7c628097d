import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { questionFrame, questionOf } from './judge.ts';

test('a question is read as it was asked', () => {
  for (const client of ['10.244.1.1', 'fd00::1']) {
    assert.deepEqual(questionOf(questionFrame(client, 'shop/egress/db')), { client, rule: 'shop/egress/db' });
  }
  const long = `shop/egress/${'a'.repeat(300)}`;
  assert.equal(questionOf(questionFrame('10.244.1.1', long)).rule, long);
});

test('law: bytes that are no question never throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      questionOf(Buffer.from(bytes));
    }),
  );
});

test('a question that was cut has no rule, so nobody is let through', () => {
  const whole = questionFrame('10.244.1.1', 'shop/egress/db');
  for (let length = 0; length < whole.length; length += 1) {
    const { client, rule } = questionOf(whole.subarray(0, length));
    assert.ok(client === undefined || rule === undefined, `${length} bytes`);
  }
});
