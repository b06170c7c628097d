import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGone, isInvalid } from './api-error.ts';
import { answerError, eventError } from './status.ts';

test('a refusal names the call, the reason and each field', () => {
  const causes = [{ field: 'spec.ips[0]', reason: 'FieldValueInvalid', message: 'must be an IP' }];
  const body = JSON.stringify({
    kind: 'Status',
    code: 422,
    reason: 'Invalid',
    message: 'x is invalid',
    details: { causes },
  });
  const error = answerError('apply policies p', 422, body, undefined);
  assert.ok(isInvalid(error));
  assert.equal(error.message, 'apply policies p: x is invalid (422 Invalid)');
  assert.deepEqual(error.causes, causes);
});

test('an answer of something in between is shown as far as it helps', () => {
  const error = answerError('get pods a', 502, '<html>Bad Gateway</html>', undefined);
  assert.equal(error.message, 'get pods a: <html>Bad Gateway</html> (502 Unknown)');
  assert.equal(
    answerError('get pods a', 503, '', undefined).message,
    'get pods a: no explanation (503 ServiceUnavailable)',
  );
});

test('the pause comes from the body or from the header', () => {
  const details = { retryAfterSeconds: 3 };
  assert.equal(answerError('x', 429, JSON.stringify({ details }), '9').retryAfterMs, 3_000);
  assert.equal(answerError('x', 429, '', '9').retryAfterMs, 9_000);
  assert.equal(answerError('x', 429, '', 'Wed, 21 Oct 2026 07:28:00 GMT').retryAfterMs, undefined);
  assert.equal(answerError('x', 429, '', '0').retryAfterMs, undefined);
});

test('the error of a watch is told from its event', () => {
  assert.ok(isGone(eventError('watch pods', { code: 410, reason: 'Expired', message: 'too old resource version' })));
  assert.equal(eventError('watch pods', 'nonsense').status, 500);
});
