/** The operator on a real API server: what it makes, repairs and removes, and what it tells. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resourceOf } from '../../src/api/kinds.ts';
import { finalizers } from '../../src/api/names.ts';
import { resources } from '../../src/operator/objects/kind.ts';
import type { KubeObject } from '../../src/runtime/kube/resource.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { defaultProxy, OperatorWorld, type TestReplica } from './operator-world.ts';
import { tellOfProcesses } from './witness.ts';

interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas: number;
    readonly template: { readonly spec: { readonly containers: readonly { image: string; args: string[] }[] } };
  };
}
interface Service extends KubeObject {
  readonly spec: {
    readonly clusterIPs: readonly string[];
    readonly ports: readonly { port: number; targetPort: number }[];
  };
}
interface Slice extends KubeObject {
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[];
}

const seedRules = {
  tcp: [{ sourceport: 8080, destport: 8080, ips: 'gamedb.proxy.tencent.com' }],
  http: [{ tls: true, host: 'wechatpay.api.com' }],
};

let world: OperatorWorld;
let replica: TestReplica;
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await OperatorWorld.start();
  await world.operator('--default-proxy={"minReplicas":2,"maxReplicas":4,"resource":{"cpu":"1000m","mem":1024}}');
});
after(async () => {
  await world?.stop();
});

test('the example of the seed: the missing proxy is made with all that it needs', async () => {
  await world.egress('hn1/hn1-egress', seedRules);
  const deployment = await world.untilThere<Deployment>(resources.deployments, defaultProxy);
  const [container] = deployment.spec.template.spec.containers;
  assert.equal(container?.image, 'sallyport-proxy-envoy');
  assert.ok(container?.args.includes(`--controller=${defaultProxy}`));
  for (const resource of [resources.autoscalers, resources.disruptionBudgets, resources.networkPolicies]) {
    await world.untilThere(resource, defaultProxy);
  }
  const service = await world.untilThere<Service>(resources.services, defaultProxy);
  assert.deepEqual(
    service.spec.ports.map(({ port, targetPort }) => `${port}:${targetPort}`),
    ['80:61080', '3128:61080', '443:61443', '8080:8080'],
  );
  await eventually('the Deployment has minReplicas', async () => {
    const now = await world.get<Deployment>(resources.deployments, defaultProxy);
    return now?.spec.replicas === 2;
  });
  const pending = await world.until('hn1/hn1-egress', 'Pending');
  assert.equal(pending.observedGeneration, 1);
  const egress = await world.get(resourceOf('BCSEgress'), 'hn1/hn1-egress');
  assert.deepEqual(egress?.metadata.finalizers, [finalizers.egress]);
});

test('Synced when a replica has the rules live; its address is behind the Service of the rule', async () => {
  replica = await world.replica('10.61.1.1');
  const status = await world.until('hn1/hn1-egress', 'Synced');
  assert.match(status.syncedAt ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.deepEqual([status.tcpActives, status.httpActives], [1, 1]);
  assert.deepEqual(
    status.rules?.map(({ name, state }) => [name, state]),
    [
      ['tcp-8080', 'Synced'],
      ['https-wechatpay-api-com', 'Synced'],
    ],
  );
  await eventually('the replica is behind the Service', async () => {
    const slice = await world.get<Slice>(resources.endpointSlices, 'hn1/hn1-egress-tcp-8080-ipv4');
    return JSON.stringify(slice?.endpoints?.map(({ addresses }) => addresses)) === '[["10.61.1.1"]]';
  });
  await eventually('the proxy shows who uses it', async () => {
    const proxy = await world.proxyStatus(defaultProxy);
    return proxy?.readyReplicas === 1 && proxy.references?.[0]?.name === 'hn1-egress';
  });
});

test('what somebody changes is repaired, and nothing is written while nothing changes', async () => {
  const ref = { namespace: 'hn1', name: 'hn1-egress-tcp-8080' };
  const ports = [{ name: 'rule-8080', port: 1, protocol: 'TCP' }];
  await world.client.patch(resources.services, ref, { kind: 'merge', value: { spec: { ports } } });
  await eventually('the port is back', async () => {
    const service = await world.get<Service>(resources.services, 'hn1/hn1-egress-tcp-8080');
    return service?.spec.ports.length === 1 && service.spec.ports[0]?.port === 8080;
  });
  await world.client.delete(resources.disruptionBudgets, { namespace: 'bcs-system', name: 'egress-controller' });
  await world.untilThere(resources.disruptionBudgets, defaultProxy);
  const versions = async (): Promise<string[]> => {
    const kinds = [
      ...Object.values(resources).filter(({ kind }) => kind !== 'Pod'),
      resourceOf('BCSEgress'),
      resourceOf('BCSEgressController'),
    ];
    const objects = await Promise.all(kinds.map((kind) => world.list(kind)));
    return objects
      .flat()
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`)
      .toSorted();
  };
  // A change of another object makes the operator look at everything again.
  const before = await versions();
  await world.namespace('elsewhere');
  await world.egress('hn1/other', { http: [{ host: 'a.example.com' }] });
  await world.until('hn1/other', 'Synced');
  await world.remove('BCSEgress', 'hn1/other');
  await world.untilGone(resourceOf('BCSEgress'), 'hn1/other');
  const controller = await world.get(resourceOf('BCSEgressController'), defaultProxy);
  const changed = (await versions()).filter((version) => !before.includes(version) && !version.includes('elsewhere'));
  assert.deepEqual(
    changed,
    [`bcs-system/egress-controller ${controller?.metadata.resourceVersion}`],
    'only its references',
  );
});

test('the older object has port and name; the loser says so in one rule and serves the others', async () => {
  await world.egress('hn1/young', {
    tcp: [
      { name: 'port', sourceport: 8080, destport: 1, ips: '198.51.100.1' },
      { name: 'name', sourceport: 8081, destport: 1, ips: 'gamedb.proxy.tencent.com' },
      { name: 'reserved', sourceport: 61000, destport: 1, ips: '198.51.100.1' },
      { name: 'good', sourceport: 8082, destport: 1, ips: '198.51.100.1' },
    ],
  });
  const status = await world.until('hn1/young', 'Error');
  const rules = await new Promise<string[]>((resolve, reject) => {
    eventually(
      'the good rule is live',
      async () => {
        const now = await world.egressStatus('hn1/young');
        const found =
          now?.rules?.map(({ name, state, reason = '' }) => `${name} ${state} ${reason.split(':')[0]}`) ?? [];
        if (!found.includes('good Synced ')) return false;
        resolve(found);
        return true;
      },
      30_000,
    ).catch(reject);
  });
  assert.deepEqual(rules, [
    'port Error SourcePortTaken',
    'name Error DomainTaken',
    'reserved Error PortReserved',
    'good Synced ',
  ]);
  assert.match(status.reason ?? '', /belongs to rule tcp-8080 of BCSEgress hn1\/hn1-egress/);
  await world.remove('BCSEgress', 'hn1/young');
  await world.untilGone(resourceOf('BCSEgress'), 'hn1/young');
  await world.untilGone(resources.services, 'hn1/young-good');
});

test('Unknown while a replica is silent, and back without a new syncedAt', async () => {
  const { syncedAt } = await world.until('hn1/hn1-egress', 'Synced');
  await replica.silence();
  const lost = await world.until('hn1/hn1-egress', 'Unknown');
  assert.match(lost.reason ?? '', new RegExp(`No report comes from ${replica.pod}`));
  await replica.speak();
  assert.equal((await world.until('hn1/hn1-egress', 'Synced')).syncedAt, syncedAt);
});

test('what a replica refuses is the error of that rule', async () => {
  replica.alter((report) => ({
    ...report,
    rules: report.rules.map((rule) =>
      rule.id.endsWith('tcp-8080')
        ? { ...rule, state: 'error', reason: 'ListenPortTaken', sentence: 'Port 8080 is held by pid 7.' }
        : rule,
    ),
  }));
  const status = await world.until('hn1/hn1-egress', 'Error');
  assert.equal(status.reason, 'Port 8080 is held by pid 7.');
  replica.alter((report) => report);
  await world.until('hn1/hn1-egress', 'Synced');
});

test('a Service that is not ours is left alone, and the rule says so', async () => {
  await world.apply(resources.services, 'shop/mine-db', { spec: { ports: [{ name: 'x', port: 9, protocol: 'TCP' }] } });
  await world.egress('shop/mine', { tcp: [{ name: 'db', sourceport: 5432, destport: 5432, ips: '198.51.100.5' }] });
  const status = await world.until('shop/mine', 'Error');
  assert.match(status.rules?.[0]?.reason ?? '', /^ServiceNameTaken: .*shop\/mine-db/);
  const service = await world.get<Service>(resources.services, 'shop/mine-db');
  assert.deepEqual(
    service?.spec.ports.map(({ port }) => port),
    [9],
  );
  await world.client.delete(resources.services, { namespace: 'shop', name: 'mine-db' });
  await world.until('shop/mine', 'Synced', 60_000);
  await world.remove('BCSEgress', 'shop/mine');
});

test('tenants: a namespace has only what the proxy allows it', async () => {
  await world.apply(resourceOf('BCSEgressController'), 'bcs-system/shared', {
    spec: {
      minReplicas: 1,
      tenants: [{ namespaces: ['shop'], domains: ['example.com'], ports: [{ first: 3000, last: 3999 }] }],
    },
  });
  await world.replica('10.61.1.2', 'bcs-system/shared');
  const rules = {
    tcp: [
      { name: 'good', sourceport: 3306, destport: 3306, ips: 'db.example.com' },
      { name: 'port', sourceport: 80, destport: 80, ips: 'web.example.com' },
      { name: 'name', sourceport: 3307, destport: 3306, ips: 'db.other.net' },
    ],
  };
  await world.egress('shop/tenant', rules, 'bcs-system/shared');
  await world.egress('hn1/stranger', { http: [{ name: 'any', host: 'a.example.com' }] }, 'bcs-system/shared');
  await eventually(
    'the allowed rule is live',
    async () => {
      const status = await world.egressStatus('shop/tenant');
      return status?.rules?.find(({ name }) => name === 'good')?.state === 'Synced';
    },
    30_000,
  );
  const status = await world.egressStatus('shop/tenant');
  const found = status?.rules?.map(({ name, state, reason = '' }) => `${name} ${state} ${reason.split(':')[0]}`);
  assert.deepEqual(found, ['good Synced ', 'port Error ClaimNotAllowed', 'name Error ClaimNotAllowed']);
  assert.match(
    (await world.until('hn1/stranger', 'Error')).reason ?? '',
    /does not let rule any of namespace hn1 use it at all/,
  );
  for (const key of ['shop/tenant', 'hn1/stranger']) await world.remove('BCSEgress', key);
  await world.untilGone(resources.deployments, 'bcs-system/shared');
  assert.ok(await world.get(resourceOf('BCSEgressController'), 'bcs-system/shared'), 'what a user made stays');
});

test('a Deployment that somebody made is kept as it is, and the Service leads to its pods', async () => {
  const labels = { app: 'own-proxy' };
  const spec = {
    replicas: 3,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'x', image: 'own' }] } },
  };
  await world.apply(resources.deployments, 'bcs-system/own', { spec });
  await world.apply(resourceOf('BCSEgressController'), 'bcs-system/own', { spec: {} });
  await world.egress('hn1/own', { http: [{ host: 'b.example.com' }] }, 'bcs-system/own');
  const service = await world.untilThere<KubeObject & { spec: { selector: object } }>(
    resources.services,
    'bcs-system/own',
  );
  assert.deepEqual(service.spec.selector, labels);
  const deployment = await world.get<Deployment>(resources.deployments, 'bcs-system/own');
  assert.deepEqual([deployment?.spec.replicas, deployment?.spec.template.spec.containers[0]?.image], [3, 'own']);
  assert.equal(await world.get(resources.autoscalers, 'bcs-system/own'), undefined);
  await world.remove('BCSEgress', 'hn1/own');
  await world.untilGone(resources.services, 'bcs-system/own');
  assert.ok(await world.get(resources.deployments, 'bcs-system/own'));
});

test('a tenant that names a proxy of its own invention gets none', async () => {
  await world.egress('shop/lost', { http: [{ host: 'c.example.com' }] }, 'bcs-system/invented');
  const { reason } = await world.until('shop/lost', 'Error');
  assert.match(reason ?? '', /There is no BCSEgressController bcs-system\/invented/);
  assert.equal(await world.get(resourceOf('BCSEgressController'), 'bcs-system/invented'), undefined);
  await world.remove('BCSEgress', 'shop/lost');
});

test('a proxy is not run where the operator may not', async () => {
  await world.apply(resourceOf('BCSEgressController'), 'shop/private', { spec: {} });
  await world.egress('shop/astray', { http: [{ host: 'c.example.com' }] }, 'hn1/nowhere');
  assert.match(
    (await world.until('shop/astray', 'Error')).reason ?? '',
    /There is no BCSEgressController hn1\/nowhere/,
  );
  await eventually('the reason is told', async () => {
    const status = await world.proxyStatus('shop/private');
    return status?.conditions?.some(({ reason }) => reason === 'ProxyNamespaceNotAllowed') ?? false;
  });
  assert.equal(await world.get(resources.deployments, 'shop/private'), undefined);
  await world.remove('BCSEgress', 'shop/astray');
});

test('deleting: the finalizer stays until the replicas serve nothing of it, then everything goes', async () => {
  replica.alter((report) => ({ ...report, egresses: { ...report.egresses, 'hn1/hn1-egress': 1 } }));
  await world.remove('BCSEgress', 'hn1/hn1-egress');
  await world.untilGone(resources.services, 'hn1/hn1-egress-tcp-8080');
  assert.ok(await world.get(resourceOf('BCSEgress'), 'hn1/hn1-egress'), 'a replica still serves it');
  replica.alter((report) => report);
  await world.untilGone(resourceOf('BCSEgress'), 'hn1/hn1-egress');
  await world.untilGone(resourceOf('BCSEgressController'), defaultProxy);
});
