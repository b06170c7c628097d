import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkQueue } from '../control/queue.ts';
import { ManualClock } from '../process/clock.ts';
import { metricDefinitions } from '../process/metric-definitions.ts';
import { createMetrics } from './metrics.ts';

/** The lines of the exposition that begin with one of the names, sorted. */
async function lines(metrics: ReturnType<typeof createMetrics>, ...names: string[]): Promise<readonly string[]> {
  const text = await metrics.registry.metrics();
  return text
    .split('\n')
    .filter((line) => names.some((name) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)))
    .sort();
}

test('every name starts with sallyport_, has a help text and is registered once', async () => {
  const metrics = createMetrics();
  const registered = await metrics.registry.getMetricsAsJSON();
  for (const { name, help } of registered) {
    assert.match(name, /^sallyport_[a-z0-9_]+$/);
    assert.ok(help.length > 10, name);
  }
  const names = registered.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { name } of Object.values(metricDefinitions)) assert.ok(names.includes(name), name);
});

test('two processes in one test do not share values', async () => {
  const [first, second] = [createMetrics(), createMetrics()];
  first.lease('controller').failed();
  assert.deepEqual(await lines(second, 'sallyport_lease_failures_total'), []);
});

test('a controller: duration, age of input, last success and failures by reason', async () => {
  const metrics = createMetrics();
  const hooks = metrics.controller('policies');
  hooks.reconciled({ outcome: 'done', reason: '', durationMs: 20, ageMs: 120 });
  hooks.reconciled({ outcome: 'refused', reason: 'GatewayNotFound', durationMs: 1, ageMs: 1 });
  hooks.reconciled({ outcome: 'failed', reason: 'Timeout', durationMs: 1, ageMs: 1 });
  hooks.retried();
  assert.deepEqual(await lines(metrics, 'sallyport_reconcile_failures_total', 'sallyport_queue_retries_total'), [
    'sallyport_queue_retries_total{controller="policies"} 1',
    'sallyport_reconcile_failures_total{controller="policies",outcome="failed",reason="Timeout"} 1',
    'sallyport_reconcile_failures_total{controller="policies",outcome="refused",reason="GatewayNotFound"} 1',
  ]);
  assert.deepEqual(
    await lines(metrics, 'sallyport_reconcile_seconds_sum', 'sallyport_reconcile_input_age_seconds_sum'),
    [
      'sallyport_reconcile_input_age_seconds_sum{controller="policies"} 0.122',
      'sallyport_reconcile_seconds_sum{controller="policies",outcome="done"} 0.02',
      'sallyport_reconcile_seconds_sum{controller="policies",outcome="failed"} 0.001',
      'sallyport_reconcile_seconds_sum{controller="policies",outcome="refused"} 0.001',
    ],
  );
  assert.equal((await lines(metrics, 'sallyport_reconcile_last_success_timestamp_seconds')).length, 1);
});

test('queues and informers are read at the scrape', async () => {
  const metrics = createMetrics();
  const clock = new ManualClock();
  const queue = new WorkQueue({ clock, random: () => 0 });
  metrics.observeQueue({ name: 'policies', queue });
  metrics.observeInformer('pods', {
    stats: () => ({ objects: 7, unreadable: 1, silentMs: 2_500, relists: 2, reconnects: 3 }),
  });
  queue.add('a');
  queue.add('b');
  await clock.advance(1_500);
  assert.deepEqual(
    await lines(
      metrics,
      'sallyport_queue_depth',
      'sallyport_queue_oldest_age_seconds',
      'sallyport_informer_objects',
      'sallyport_informer_silence_seconds',
    ),
    [
      'sallyport_informer_objects{informer="pods"} 7',
      'sallyport_informer_silence_seconds{informer="pods"} 2.5',
      'sallyport_queue_depth{controller="policies"} 2',
      'sallyport_queue_oldest_age_seconds{controller="policies"} 1.5',
    ],
  );
});

test('lease, certificates, configuration, admission and requests', async () => {
  const metrics = createMetrics();
  metrics.lease('controller').transitions(4);
  metrics.certificates.expires(new Date(1_000_000), new Date(2_000_000));
  metrics.config.inForce(false);
  metrics.admission.answered('/validate', 'denied', 3);
  metrics.onRequest({ verb: 'list', resource: 'pods', status: 200, durationMs: 40 });
  const found = await lines(
    metrics,
    'sallyport_lease_is_leader',
    'sallyport_lease_transitions',
    'sallyport_certificate_expiry_timestamp_seconds',
    'sallyport_config_file_in_force',
    'sallyport_admission_seconds_count',
    'sallyport_api_requests_total',
  );
  assert.deepEqual(found, [
    'sallyport_admission_seconds_count{path="/validate",outcome="denied"} 1',
    'sallyport_api_requests_total{verb="list",resource="pods",status="200"} 1',
    'sallyport_certificate_expiry_timestamp_seconds{certificate="authority"} 2000',
    'sallyport_certificate_expiry_timestamp_seconds{certificate="leaf"} 1000',
    'sallyport_config_file_in_force 0',
    'sallyport_lease_is_leader{lease="controller"} 0',
    'sallyport_lease_transitions{lease="controller"} 4',
  ]);
});
