import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProxyReport } from '../api/proxy-report.ts';
import { egressObject, planOf, reportOf } from '../core/testing/proxies.ts';
import { ManualClock } from '../runtime/process/clock.ts';
import type { ProxyPod } from './inputs/pods.ts';
import { ServedNames } from './served-names.ts';

const proxy = 'bcs-system/egress-controller';
const rule = 'shop/orders/db';
const plan = planOf({
  egresses: [
    egressObject('shop/orders', { tcp: [{ name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' }] }),
  ],
});
const pod: ProxyPod = {
  key: 'bcs-system/p1',
  name: 'p1',
  namespace: 'bcs-system',
  uid: 'p1',
  ips: [],
  node: undefined,
  labels: {},
  isReady: true,
  trouble: undefined,
};
const world = { plan, readyPods: new Map([[proxy, [pod]]]), troubles: new Map() };
const serving = reportOf(plan);
const refusing: ProxyReport = {
  ...serving,
  rules: serving.rules.map((one) => ({ ...one, state: 'error', reason: 'RuleRefused' })),
};

const start = () => {
  const clock = new ManualClock();
  const state = { report: serving, isSilent: false };
  const names = new ServedNames(clock, {
    of: () => ({ pod: 'p1', isSilent: state.isSilent, report: state.report }),
    isSettled: () => true,
  });
  return { clock, state, names };
};

test('a name that an earlier operator has published and nobody serves is taken back once and stays so', async () => {
  const { clock, state, names } = start();
  state.report = refusing;
  const before = new Set(['db.example.com']);
  assert.deepEqual([...names.ids(world, before)], [rule], 'a restart takes nothing back');
  await clock.advance(59_000);
  assert.deepEqual([...names.ids(world, before)], [rule]);
  await clock.advance(2_000);
  for (let look = 0; look < 3; look += 1) {
    assert.deepEqual([...names.ids(world, before)], [], `look ${look}`);
    assert.equal(names.hasDoubt, false);
    await clock.advance(1_000);
  }
  state.report = serving;
  assert.deepEqual([...names.ids(world, before)], [rule], 'it is served again');
});

test('a name that nobody serves any more is looked at again, though the replica was silent when it was to be taken back', async () => {
  const { clock, state, names } = start();
  state.report = refusing;
  names.ids(world, new Set(['db.example.com']));
  assert.ok(names.hasDoubt);
  await clock.advance(61_000);
  state.isSilent = true;
  assert.deepEqual([...names.ids(world, new Set())], [rule], 'nobody knows');
  assert.ok(names.hasDoubt, 'it speaks again with the same words, which is no change that anybody tells');
  state.isSilent = false;
  assert.deepEqual([...names.ids(world, new Set())], []);
  assert.ok(!names.hasDoubt);
});
