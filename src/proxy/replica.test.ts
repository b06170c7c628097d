import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { isKindName, kinds, resourceOf } from '../api/kinds.ts';
import { ProxyReport } from '../api/proxy-report.ts';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { coreResource, type KubeObject } from '../runtime/kube/resource.ts';
import { createMetrics } from '../runtime/metrics/metrics.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { createLog } from '../runtime/process/log.ts';
import { startTestApiServer, type TestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { fastClock } from '../runtime/testing/fast-clock.ts';
import { createProxyCaches } from './caches.ts';
import { memoryRuleStore, type RuleStore } from './kept-rules.ts';
import { createProxyMetrics } from './metrics.ts';
import { ProxyReplica } from './replica.ts';
import { FakeEngine } from './testing/fake-engine.ts';
import { FakeGuard } from './testing/fake-guard.ts';

const controller = 'bcs-system/egress-controller';
const [egresses, controllers] = [resourceOf('BCSEgress'), resourceOf('BCSEgressController')];
const resources = [
  coreResource('namespaces', 'Namespace', false),
  coreResource('pods', 'Pod', true),
  ...Object.keys(kinds).filter(isKindName).map(resourceOf),
];
/** Names and counts are looked up every two seconds. */
const clock = fastClock(100);

let server: TestApiServer;
let engine: FakeEngine;
let guard: FakeGuard;
let kept: RuleStore;
let replica: ProxyReplica;
let metrics: ReturnType<typeof createMetrics>;
let end: () => Promise<void>;
const accessTo = {
  namespace: 'default',
  credentials: async () => ({ tls: { isInsecure: false } }),
  forget: () => {},
};

before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server.stop());
beforeEach(() => {
  for (const resource of [egresses, controllers]) {
    for (const { metadata } of server.list(resource)) server.delete(resource, `${metadata.namespace}/${metadata.name}`);
  }
  put(controllers, { metadata: { namespace: 'bcs-system', name: 'egress-controller' }, spec: {} });
  engine = new FakeEngine();
  guard = new FakeGuard();
  kept = memoryRuleStore();
  guard.addresses.set('db.example.com', ['198.51.100.10']);
  guard.addresses.set('pay.example.com', ['198.51.100.11']);
  start();
});
afterEach(() => end());

const start = (url = server.url): void => {
  const log = createLog({ process: 'test', level: 'silent' });
  const client = createKubeClient({
    access: { ...accessTo, server: url },
    userAgent: 'test',
    clock: systemClock,
    random: Math.random,
  });
  const caches = createProxyCaches({ client, clock: systemClock, random: Math.random, onProblem: () => {} });
  metrics = createMetrics();
  const loop = createProxyMetrics(metrics.instruments, () => replica.report());
  replica = new ProxyReplica({
    controller,
    reservedNames: ['cluster.local'],
    caches,
    engine,
    guard,
    kept,
    clock,
    log,
    loop,
  });
  const stop = new AbortController();
  const done = replica.run(stop.signal);
  end = async () => {
    stop.abort();
    await done;
    await client.close();
  };
};

const put = (resource: typeof egresses, object: object) => server.put(resource, object as KubeObject);
interface Egress {
  readonly tcp?: readonly object[];
  readonly http?: readonly object[];
  readonly controller?: object;
}
/** Writes a BCSEgress, and what the operator has seen of it unless it is told not to. */
const putEgress = (name: string, { controller: named, ...rules }: Egress, isSeen = true): void => {
  const metadata = { namespace: 'shop', name };
  const spec = { rules, ...(named && { controller: named }) };
  const before = server.read(egresses, `shop/${name}`);
  const { metadata: stored } = put(egresses, { metadata, spec, ...(before?.status ? { status: before.status } : {}) });
  if (isSeen) put(egresses, { metadata, spec, status: { observedGeneration: stored.generation } });
};
const database = { name: 'db', sourceport: 5432, destport: 5432, domain: 'db.example.com' };
const list = { name: 'list', sourceport: 8080, destport: 80, ips: '198.51.100.1,198.51.100.2' };
const pay = { name: 'pay', host: 'pay.example.com', tls: true };
const ids = () => [...engine.live.keys()];
const ruleOf = (id: string) => replica.report()?.rules.find((rule) => rule.id === id);

describe('a replica', () => {
  it('serves what the operator has seen, and is ready only then', async () => {
    assert.notDeepEqual(replica.missing(), []);
    putEgress('a', { tcp: [database, list], http: [pay] });
    putEgress('unseen', { tcp: [{ ...list, sourceport: 9090 }] }, false);
    putEgress('other', { tcp: [{ ...list, sourceport: 9091 }], controller: { name: 'another' } });
    await eventually('the rules are live', () => ids().length === 3);
    await eventually('the replica is ready', () => replica.missing().length === 0);
    assert.deepEqual(ids(), ['shop/a/db', 'shop/a/list', 'shop/a/pay']);
    await eventually('names are known', () => ruleOf('shop/a/pay')?.addresses.length === 1);
    const report = ProxyReport.parse(JSON.parse((await replica.reportPage(new URLSearchParams())).body));
    assert.equal(report.revision, engine.revision);
    assert.deepEqual(report.egresses, { 'shop/a': 1 });
    assert.deepEqual(
      report.rules.map(({ id, state, addresses }) => ({ id, state, addresses })),
      [
        { id: 'shop/a/db', state: 'live', addresses: ['198.51.100.10'] },
        { id: 'shop/a/list', state: 'live', addresses: ['198.51.100.1', '198.51.100.2'] },
        { id: 'shop/a/pay', state: 'live', addresses: ['198.51.100.11'] },
      ],
    );
  });

  it('keeps a rule as it was until the operator has seen the change, and drops it with its object', async () => {
    putEgress('a', { tcp: [list] });
    await eventually('the rule is live', () => ids().length === 1);
    putEgress('a', { tcp: [{ ...list, destport: 81 }] }, false);
    putEgress('b', { tcp: [{ ...list, sourceport: 8081 }] });
    await eventually('the other rule is live', () => ids().length === 2);
    assert.deepEqual(replica.report()?.egresses, { 'shop/a': 1, 'shop/b': 1 });
    const [rule] = engine.live.values();
    assert.equal(rule?.destPort, 80);
    putEgress('a', { tcp: [{ ...list, destport: 81 }] });
    await eventually('the change is live', () => [...engine.live.values()][0]?.destPort === 81);
    await eventually('it is told', () => replica.report()?.egresses['shop/a'] === 2);
    server.delete(egresses, 'shop/a');
    await eventually('the rule is gone', () => ids().length === 1);
    await eventually('that is told', () => replica.report()?.egresses['shop/a'] === undefined);
  });

  it('tells a port that somebody else holds for that rule alone, and tries it again', async () => {
    engine.heldPorts.add(8080);
    putEgress('a', { tcp: [list, { ...list, name: 'free', sourceport: 8081 }] });
    await eventually('the other rule is live', () => ids().length === 1);
    await eventually('the error is told', () => ruleOf('shop/a/list')?.reason === 'ListenPortTaken');
    assert.equal(ruleOf('shop/a/free')?.state, 'live');
    assert.deepEqual(replica.missing(), []);
    engine.heldPorts.clear();
    await eventually('both are live', () => ids().length === 2);
    await eventually('that is told', () => ruleOf('shop/a/list')?.state === 'live');
  });

  it('tells what the engine can never do, and does not ask it to', async () => {
    engine.unable.add('http');
    putEgress('a', { tcp: [list], http: [pay] });
    await eventually('the other rule is live', () => ids().length === 1);
    await eventually('the error is told', () => ruleOf('shop/a/pay')?.reason === 'EngineCannot');
    assert.deepEqual(ids(), ['shop/a/list']);
  });

  it('tells a name that does not resolve for that rule alone, until it does', async () => {
    putEgress('a', { tcp: [list, { ...database, domain: 'nowhere.example.com' }] });
    await eventually('the error is told', () => ruleOf('shop/a/db')?.reason === 'NameNotResolved');
    assert.equal(ruleOf('shop/a/list')?.state, 'live');
    guard.addresses.set('nowhere.example.com', ['198.51.100.12']);
    await eventually('it is live', () => ruleOf('shop/a/db')?.state === 'live');
    assert.deepEqual(ruleOf('shop/a/db')?.addresses, ['198.51.100.12']);
  });

  it('calls a rule live only when the engine has its addresses: until then a client would get 503', async () => {
    engine.resolved = new Set();
    putEgress('a', { tcp: [list], http: [pay] });
    await eventually('both are given to the engine', () => ids().length === 2);
    await eventually('the rule with addresses is live', () => ruleOf('shop/a/list')?.state === 'live');
    assert.equal(ruleOf('shop/a/pay'), undefined);
    engine.resolved = new Set(['shop/a/pay']);
    await eventually('the other one is live too', () => ruleOf('shop/a/pay')?.state === 'live');
  });

  it('is not ready while the engine is away, and goes on when it is back', async () => {
    putEgress('a', { tcp: [list] });
    await eventually('the replica is ready', () => replica.missing().length === 0);
    engine.isUp = false;
    await eventually('it is not ready', () => replica.missing().join() === 'an answer of envoy');
    putEgress('a', { tcp: [list, database] });
    engine.isUp = true;
    await eventually('the new rule is live', () => ids().length === 2);
    await eventually('the replica is ready again', () => replica.missing().length === 0);
  });

  it('serves on while the API server is away', async () => {
    putEgress('a', { tcp: [list] });
    await eventually('the replica is ready', () => replica.missing().length === 0);
    const port = Number(new URL(server.url).port);
    await server.stop();
    const { applies } = engine;
    engine.counts.set('shop/a/list', { actives: 3, connections: 9, bytesSent: 5, bytesReceived: 7 });
    await eventually('counts go on', () => ruleOf('shop/a/list')?.actives === 3);
    assert.deepEqual([ids(), replica.missing(), engine.applies], [['shop/a/list'], [], applies]);
    await server.listen(port);
    putEgress('a', { tcp: [list, database] });
    await eventually('the new rule is live', () => ids().length === 2);
    engine.counts.clear();
  });

  it('serves what it served before when it starts while the API server is away', async () => {
    putEgress('a', { tcp: [list] });
    await eventually('the replica is ready', () => replica.missing().length === 0);
    await end();
    const port = Number(new URL(server.url).port);
    await server.stop();
    engine = new FakeEngine();
    start(`http://127.0.0.1:${port}`);
    await eventually('the replica is ready again', () => replica.missing().length === 0);
    assert.deepEqual([ids(), replica.report()?.egresses], [['shop/a/list'], { 'shop/a': 1 }]);
    await server.listen(port);
    putEgress('a', { tcp: [database] });
    await eventually('the change is live', () => ids().join() === 'shop/a/db');
  });

  it('counts rules, connections and refusals as metrics', async () => {
    putEgress('a', { tcp: [list, { ...database, domain: 'nowhere.example.com' }] });
    await eventually('the error is told', () => ruleOf('shop/a/db')?.state === 'error');
    engine.counts.set('shop/a/list', { actives: 0, connections: 9, bytesSent: 5, bytesReceived: 7 });
    engine.refused.set('not-allowed', 4);
    guard.refused.set('address-forbidden', 2);
    await eventually('counts are read', () => ruleOf('shop/a/list')?.connections === 9);
    const text = await metrics.registry.metrics();
    for (const line of [
      'sallyport_proxy_rules{state="live",reason=""} 1',
      'sallyport_proxy_rules{state="error",reason="NameNotResolved"} 1',
      'sallyport_proxy_rule_connections_total{rule="shop/a/list"} 9',
      'sallyport_proxy_rule_bytes_total{rule="shop/a/list",direction="received"} 7',
      'sallyport_proxy_refused_total{word="not-allowed"} 4',
      'sallyport_proxy_refused_total{word="address-forbidden"} 2',
    ]) {
      assert.ok(text.includes(line), `${line}\n${text}`);
    }
  });

  it('lets open connections end before the engine does', async () => {
    putEgress('a', { tcp: [list] });
    engine.counts.set('shop/a/list', { actives: 1, connections: 1, bytesSent: 0, bytesReceived: 0 });
    await eventually('the connection is counted', () => ruleOf('shop/a/list')?.actives === 1);
    const ended = end();
    await eventually('no rule is taken any more', () => server.openWatches === 0);
    assert.ok(engine.isUp);
    engine.counts.clear();
    await ended;
    assert.ok(!engine.isUp);
    end = async () => {};
  });
});
