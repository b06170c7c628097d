import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import type { AdmissionVerdict } from '../../runtime/serve/admission-review.ts';
import { withPatience } from '../../runtime/serve/patience.ts';
import { judgeOf } from './handlers.ts';
import { configOf, gateway, policy, usualCluster, viewOf } from './testing/cluster.ts';
import { requestFor } from './testing/request.ts';

const config = configOf('both');
const orphan = requestFor(policy('shop/new', { egressGatewayName: 'late' }), usualCluster);
const withGateway = viewOf([...usualCluster, gateway('late', { ippools: { ipv4: ['10.8.0.1'] } })], config);

/** A handler on a cluster that a test may change. */
const ask = (missing: readonly string[] = []) => {
  const clock = new ManualClock();
  const state = { view: viewOf(usualCluster, config) };
  const handler = withPatience(judgeOf('validate'), { clock, view: () => state.view, missing: () => missing });
  return { clock, state, handler };
};

test('what is allowed is allowed at once', async () => {
  const { handler, state } = ask();
  state.view = withGateway;
  assert.deepEqual(await handler(orphan), { kind: 'allow', warnings: [] });
});

test('a gateway that becomes known a moment later is found', async () => {
  const { handler, state, clock } = ask();
  const given: AdmissionVerdict[] = [];
  const answered = Promise.resolve(handler(orphan)).then((verdict) => given.push(verdict));
  await clock.advance(30);
  assert.equal(given.length, 0, 'a refusal is not given yet');
  state.view = withGateway;
  await clock.advance(100);
  await answered;
  assert.deepEqual(given, [{ kind: 'allow', warnings: [] }]);
});

test('a refusal that lasts is given after half a second', async () => {
  const { handler, clock } = ask();
  const given: AdmissionVerdict[] = [];
  const answered = Promise.resolve(handler(orphan)).then((verdict) => given.push(verdict));
  await clock.advance(499);
  assert.equal(given.length, 0);
  await clock.advance(1);
  await answered;
  assert.deepEqual(
    given.map((verdict) => verdict.kind === 'deny' && verdict.reason),
    ['GatewayNotFound'],
  );
});

test('while caches are being filled everything is refused with a sentence that says so', async () => {
  const { handler } = ask(['policies', 'nodes']);
  assert.deepEqual(await handler(orphan), {
    kind: 'deny',
    reason: 'ServiceUnavailable',
    code: 503,
    message:
      'webhook: Sallyport is starting and does not know the cluster yet (waits for policies, nodes). Try again in a few seconds.',
    warnings: [],
  });
});
