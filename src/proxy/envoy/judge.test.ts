import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { questionFrame, questionOf } from './judge.ts';

test('a question is read as it was asked', () => {
  const rule = 'shop/egress/db';
  for (const [endpoint, client] of [
    ['10.244.1.1:40000', '10.244.1.1'],
    ['[fd00::1]:1', 'fd00::1'],
  ] as const) {
    assert.deepEqual(questionOf(questionFrame(endpoint, rule)), { client, endpoint, rule });
  }
  const long = `shop/egress/${'a'.repeat(300)}`;
  assert.equal(questionOf(questionFrame('10.244.1.1:40000', long))?.rule, long);
  // An IPv4 client of a socket for both families is one for Envoy; another spelling of it is nobody.
  for (const endpoint of ['[::ffff:10.244.1.1]:40000', '10.244.1.1', 'envoy_internal', '']) {
    assert.equal(questionOf(questionFrame(endpoint, rule)), undefined, endpoint);
  }
});

test('law: bytes that are no question never throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      questionOf(Buffer.from(bytes));
    }),
  );
});

test('a question that was cut has no rule, so nobody is let through', () => {
  const whole = questionFrame('10.244.1.1:40000', 'shop/egress/db');
  for (let length = 0; length < whole.length; length += 1) {
    assert.equal(questionOf(whole.subarray(0, length)), undefined, `${length} bytes`);
  }
});
