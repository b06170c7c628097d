import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callBackoffMs, outageBackoffMs } from './backoff.ts';

const least = () => 0;
const most = () => 0.999999;

test('the pause of a call doubles and stops at two seconds', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 9].map((attempt) => Math.round(callBackoffMs(attempt, most))),
    [100, 200, 400, 800, 2_000],
  );
  assert.equal(callBackoffMs(0, least), 50);
});

test('in a short outage, and in any outage in which nobody answers, an informer waits at most a second', () => {
  for (let failures = 0; failures < 100; failures += 1) {
    assert.ok(outageBackoffMs({ failures, lastedMs: 20_000, isAnswered: true }, most) <= 1_000);
    assert.ok(outageBackoffMs({ failures, lastedMs: 24 * 3_600_000, isAnswered: false }, most) <= 1_000);
  }
});

test('a server that answers with errors for long is asked ever less, at the least every half minute', () => {
  const wait = (lastedMs: number) => outageBackoffMs({ failures: 1_000, lastedMs, isAnswered: true }, most);
  assert.equal(Math.round(wait(5 * 60_000)), 15_000);
  assert.equal(Math.round(wait(24 * 3_600_000)), 30_000);
});

test('even the first pause keeps a server that closes every stream from a storm', () => {
  assert.ok(outageBackoffMs({ failures: 0, lastedMs: 0, isAnswered: false }, least) >= 50);
});
