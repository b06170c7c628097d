import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { resourceOf } from '../api/kinds.ts';
import { finalizers } from '../api/names.ts';
import type { ProxyReport } from '../api/proxy-report.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { resources } from './objects/kind.ts';
import { configMap, OperatorTestWorld, proxyKey } from './testing/world.ts';

const db = { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' };
const serviceSpec = { clusterIPs: ['10.96.0.7'] };
const corefile = '.:53 {\n    errors\n    reload\n}\n';

let world: OperatorTestWorld;
beforeEach(async () => {
  world = await OperatorTestWorld.start();
});
afterEach(async () => {
  await world.stop();
});

/** Plays the API server, which gives Services their addresses. */
const giveAddresses = (...keys: readonly string[]): void => {
  for (const key of keys) {
    const service = world.get(resources.services, key);
    assert.ok(service, key);
    world.put(
      resources.services,
      key,
      { spec: { ...(service.spec as object), ...serviceSpec } },
      { ...service.metadata.labels },
    );
  }
};
const marksOf = (key: string): Record<string, string> => ({
  ...world.get(resources.services, key)?.metadata.labels,
});
const corefileText = (): string => {
  const found = world.get(resources.configMaps, 'kube-system/coredns');
  // Written by these tests and by the operator.
  return (found?.data as { Corefile?: string } | undefined)?.Corefile ?? '';
};
const refusing = (report: ProxyReport): ProxyReport => ({
  ...report,
  rules: report.rules.map((rule) => ({ ...rule, state: 'error', reason: 'RuleRefused', sentence: 'No.' })),
});
const untilThere = (kind: keyof typeof resources, key: string) =>
  eventually(`${kind} ${key}`, () => world.get(resources[kind], key) !== undefined);

test('from an object to Synced: the proxy is made, the rule has its Service, a restart writes nothing', async () => {
  await world.operator();
  world.egress('shop/orders', { tcp: [db], http: [{ host: 'api.example.com', tls: true }] });
  for (const kind of ['deployments', 'autoscalers', 'disruptionBudgets', 'networkPolicies', 'services'] as const) {
    await untilThere(kind, proxyKey);
  }
  await untilThere('services', 'shop/orders-db');
  giveAddresses('shop/orders-db');
  assert.equal((await world.until('shop/orders', 'Pending')).observedGeneration, 1);
  world.pod('p1');
  const status = await world.until('shop/orders', 'Synced');
  assert.deepEqual(
    status.conditions?.map(({ type, reason }) => `${type} ${reason}`),
    ['Accepted Valid', 'Programmed RulesLive', 'Published NamesPublished', 'Limited ClientsLimited'],
  );
  assert.deepEqual(world.get(resourceOf('BCSEgress'), 'shop/orders')?.metadata.finalizers, [finalizers.egress]);
  await eventually('the proxy knows who uses it', () => {
    const proxy = world.status(proxyKey, 'BCSEgressController');
    return proxy?.references?.[0]?.name === 'orders' && proxy.readyReplicas === 1;
  });
  await eventually('the endpoints are there', () =>
    JSON.stringify(world.get(resources.endpointSlices, 'shop/orders-db-ipv4')).includes('10.244.1.1'),
  );
  await eventually('an Event tells it', () => world.events.some(({ reason }) => reason === 'RulesServed'));
  await world.stopOperator();
  const before = world.writes;
  await world.operator();
  world.put(resourceOf('BCSEgressController'), 'bcs-system/other', { spec: {} });
  await eventually('it works', () => world.status('bcs-system/other', 'BCSEgressController') !== undefined);
  await eventually('it is answered', () => world.writes > before);
  assert.equal(world.writes - before, 1, 'only the status of the new one');
});

test('silence is Unknown, and a bad answer of one rule is its error', async () => {
  await world.operator();
  world.egress('shop/web', {
    http: [
      { name: 'a', host: 'a.example.com' },
      { name: 'b', host: 'b.example.com' },
    ],
  });
  world.pod('p1');
  await world.until('shop/web', 'Synced');
  world.alter = () => {
    throw new Error('no answer');
  };
  assert.match((await world.until('shop/web', 'Unknown')).reason ?? '', /No report comes from p1/);
  world.alter = (report) => ({
    ...report,
    rules: report.rules.map((rule) =>
      rule.id === 'shop/web/a' ? { ...rule, state: 'error', reason: 'RuleRefused', sentence: 'No.' } : rule,
    ),
  });
  const status = await world.until('shop/web', 'Error');
  assert.deepEqual(
    status.rules?.map(({ state }) => state),
    ['Error', 'Synced'],
  );
});

test('what is removed is undone: names, Services, the proxy that we made, and then the finalizer', async () => {
  world.put(resources.configMaps, 'kube-system/coredns', { data: { Corefile: corefile } });
  await world.operator({ hasDns: true });
  world.egress('shop/orders', { tcp: [db] });
  await untilThere('services', 'shop/orders-db');
  await untilThere('services', proxyKey);
  giveAddresses('shop/orders-db', proxyKey);
  world.pod('p1');
  await eventually('the name is in the Corefile', () => corefileText().includes('10.96.0.7 db.example.com'));
  await eventually('it waits for the name', () =>
    /does not lead to 10.96.0.7 yet/.test(world.status('shop/orders')?.reason ?? ''),
  );
  world.names.set('db.example.com', ['10.96.0.7']);
  await world.until('shop/orders', 'Synced');
  await world.remove(resourceOf('BCSEgress'), 'shop/orders');
  await eventually('the object is gone', () => world.get(resourceOf('BCSEgress'), 'shop/orders') === undefined);
  await eventually('the Service is gone', () => world.get(resources.services, 'shop/orders-db') === undefined);
  await eventually('the Corefile is as it was', () => corefileText() === corefile);
  await eventually('the proxy is gone', () => world.get(resourceOf('BCSEgressController'), proxyKey) === undefined);
  await eventually('its Deployment is gone', () => world.get(resources.deployments, proxyKey) === undefined);
});

test('a name is published when a replica serves its rule, and taken back when none does', async () => {
  world.put(resources.configMaps, 'kube-system/coredns', { data: { Corefile: corefile } });
  await world.operator({ hasDns: true });
  world.alter = refusing;
  world.egress('shop/orders', { tcp: [db] });
  await untilThere('services', 'shop/orders-db');
  await untilThere('services', proxyKey);
  giveAddresses('shop/orders-db', proxyKey);
  world.pod('p1');
  await world.until('shop/orders', 'Error');
  assert.equal(corefileText(), corefile, 'nobody serves it');
  world.alter = (report) => report;
  await eventually('the name is published', () => corefileText().includes('10.96.0.7 db.example.com'));
  await world.stopOperator();
  await world.operator({ hasDns: true });
  assert.match(corefileText(), /10\.96\.0\.7 db\.example\.com/, 'a restart takes nothing back');
  world.alter = refusing;
  await eventually('the name is taken back', () => corefileText() === corefile);
});

test('a tenant who changes its Service does not lead the name of its rule to its own pods', async () => {
  world.put(resources.configMaps, 'kube-system/coredns', { data: { Corefile: corefile } });
  await world.operator({ hasDns: true });
  const web = { name: 'web', sourceport: 443, destport: 443, ips: 'web.example.com' };
  world.egress('shop/orders', { tcp: [db, web] });
  await untilThere('services', 'shop/orders-web');
  await untilThere('services', proxyKey);
  giveAddresses('shop/orders-db', 'shop/orders-web', proxyKey);
  // The proxy has its port 443 itself, so only this name leads to a Service of the tenant.
  world.put(resources.services, proxyKey, { spec: { clusterIPs: ['10.96.0.8'] } }, marksOf(proxyKey));
  world.pod('p1');
  await eventually('names are published', () => /10\.96\.0\.8 db\.example\.com/.test(corefileText()));
  assert.match(corefileText(), /10\.96\.0\.7 web\.example\.com/);
  for (const key of ['shop/orders-db', 'shop/orders-web']) {
    const spec = world.get(resources.services, key)?.spec;
    world.put(resources.services, key, { spec: { ...(spec as object), selector: { app: 'evil' } } }, marksOf(key));
  }
  await eventually('the name is taken back', () => !corefileText().includes('web.example.com'));
  assert.match(corefileText(), /10\.96\.0\.8 db\.example\.com/);
  await eventually('it is told', () => /ServiceNameTaken/.test(world.status('shop/orders')?.rules?.[1]?.reason ?? ''));
});

test('a proxy that is named and missing is made only if it is the default one', async () => {
  await world.operator();
  const controller = { namespace: 'bcs-system', name: 'mine' };
  world.egress('evil/own', { http: [{ host: 'a.example.com' }] }, controller);
  const status = await world.until('evil/own', 'Error');
  assert.match(status.reason ?? '', /There is no BCSEgressController bcs-system\/mine/);
  world.egress('shop/web', { http: [{ host: 'a.example.com' }] });
  await untilThere('deployments', proxyKey);
  assert.equal(world.get(resourceOf('BCSEgressController'), 'bcs-system/mine'), undefined);
});

test('names are not published where the hosts block is of others', async () => {
  const theirs = '.:53 {\n    hosts {\n      192.0.2.1 a.example.com\n    }\n}\n';
  world.put(resources.configMaps, 'kube-system/coredns', { data: { Corefile: theirs } });
  await world.operator({ hasDns: true });
  world.egress('shop/orders', { tcp: [db] });
  await untilThere('services', 'shop/orders-db');
  await untilThere('services', proxyKey);
  giveAddresses('shop/orders-db', proxyKey);
  world.pod('p1');
  const status = await world.until('shop/orders', 'Error');
  assert.match(status.rules?.[0]?.reason ?? '', /^DnsNotOurs: .*hosts block already/);
  assert.deepEqual(world.get(resources.configMaps, `${configMap.namespace}/${configMap.name}`)?.data, {
    Corefile: theirs,
  });
});

test('what Kubernetes refuses is told on the proxy, and others go on', async () => {
  for (let times = 0; times < 3; times += 1) {
    world.server.faults.add({ verb: 'apply', plural: 'deployments' }, { kind: 'answer', status: 403 });
  }
  await world.operator();
  world.egress('shop/web', { http: [{ host: 'a.example.com' }] });
  await eventually('the refusal is told', () => {
    const conditions = world.status(proxyKey, 'BCSEgressController')?.conditions ?? [];
    return conditions.some(({ reason }) => reason === 'WorkloadRefused');
  });
  await untilThere('services', proxyKey);
  await untilThere('deployments', proxyKey);
});

test('a Service that somebody else has is looked for again, though no cache tells when it goes', async () => {
  world.put(resources.services, 'shop/orders-db', { spec: { clusterIPs: ['10.96.0.9'] } });
  await world.operator();
  world.egress('shop/orders', { tcp: [db] });
  world.pod('p1');
  const status = await world.until('shop/orders', 'Error');
  assert.match(status.rules?.[0]?.reason ?? '', /^ServiceNameTaken: /);
  let [writes, looks] = [-1, 0];
  await eventually('nothing is under way any more', () => {
    looks = world.writes === writes ? looks + 1 : 0;
    writes = world.writes;
    return looks > 50;
  });
  await world.remove(resources.services, 'shop/orders-db');
  await untilThere('services', 'shop/orders-db');
  giveAddresses('shop/orders-db');
  await world.until('shop/orders', 'Synced');
});

test('figures that settle right after a status was written are told all the same', async () => {
  await world.operator();
  world.egress('shop/web', { http: [{ name: 'a', host: 'a.example.com' }] });
  world.pod('p1');
  await world.until('shop/web', 'Synced');
  world.alter = (report) => ({ ...report, rules: report.rules.map((rule) => ({ ...rule, actives: 200 })) });
  await eventually('open connections are told', () =>
    JSON.stringify(world.get(resourceOf('BCSEgress'), 'shop/web')).includes('"httpActives":200'),
  );
});

test('an object with many rules costs one write for each thing that it needs, and a few for its status', async () => {
  await world.operator();
  const before = world.writes;
  const each = Array.from({ length: 228 }, (_, index) => index);
  const tcp = each.map((index) => ({ name: `t${index}`, sourceport: 10_000 + index, destport: 80, ips: '192.0.2.1' }));
  const http = each.map((index) => ({ name: `h${index}`, host: `h${index}.example.com`, tls: true }));
  world.egress('shop/large', { tcp, http });
  await untilThere('services', 'shop/large-t227');
  giveAddresses(...each.map((index) => `shop/large-t${index}`));
  world.pod('p1');
  const status = await world.until('shop/large', 'Synced');
  assert.equal(status.rules?.length, 456);
  const objects = 2 * tcp.length;
  assert.ok(world.writes - before < objects + 40, `${world.writes - before} writes for ${objects} objects`);
});

test('what keeps the pods of a proxy from being ready is told on both objects, with what to do', async () => {
  await world.operator();
  world.egress('shop/web', { http: [{ name: 'a', host: 'a.example.com' }] });
  await world.until('shop/web', 'Pending');
  const message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
  world.unreadyPod('p1', { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] });
  const conditionOf = (key: string, kind: 'BCSEgress' | 'BCSEgressController', type: string) =>
    world.status(key, kind)?.conditions?.find((condition) => condition.type === type)?.reason;
  await eventually('it is told', () => conditionOf('shop/web', 'BCSEgress', 'Programmed') === 'PodUnschedulable');
  assert.match(world.status('shop/web')?.reason ?? '', /Pod p1 finds no node: 0\/3 nodes are available/);
  await eventually(
    'the proxy tells it',
    () => conditionOf(proxyKey, 'BCSEgressController', 'Ready') === 'PodUnschedulable',
  );
  world.pod('p1');
  await world.until('shop/web', 'Synced');
});

test('a proxy with nginx says at once that it offers no CONNECT', async () => {
  await world.operator({ defaultSpec: { engine: 'nginx' } });
  world.egress('shop/web', { http: [{ name: 'pay', host: 'pay.example.com', tls: true }] });
  const limitedOf = (key: string, kind: 'BCSEgress' | 'BCSEgressController') =>
    world.status(key, kind)?.conditions?.find(({ type }) => type === 'Limited')?.reason;
  await eventually('the object says it', () => limitedOf('shop/web', 'BCSEgress') === 'ConnectNotOffered');
  assert.equal(world.status('shop/web')?.state, 'Pending', 'before anything is served');
  await eventually('the proxy says it', () => limitedOf(proxyKey, 'BCSEgressController') === 'ConnectNotOffered');
  world.egress('shop/plain', { http: [{ name: 'web', host: 'web.example.com' }] });
  await eventually('plain rules say the rest', () => limitedOf('shop/plain', 'BCSEgress') === 'ClientsLimited');
  world.egress('shop/tcp', { tcp: [db] });
  await world.until('shop/tcp', 'Pending');
  assert.equal(limitedOf('shop/tcp', 'BCSEgress'), undefined);
});
