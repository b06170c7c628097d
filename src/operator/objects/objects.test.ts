import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { egressObject, planOf, proxyObject } from '../../core/testing/proxies.ts';
import { proxyObjects } from './proxy-objects.ts';
import { ruleObjects } from './rule-objects.ts';

const settings = {
  operatorNamespace: 'sallyport',
  images: { envoy: 'envoy-image', nginx: 'nginx-image' },
  imagePullPolicy: undefined,
  imagePullSecrets: [],
  serviceAccount: 'sallyport-proxy',
  proxyPageAuth: 'token' as const,
  nameservers: [],
  reservedNames: ['cluster.local'],
};
const tcp = [
  { name: 'db', sourceport: 3306, destport: 3306, ips: 'db.example.com' },
  { name: 'web', sourceport: 80, destport: 80, ips: '198.51.100.1' },
];

const objectsOf = (spec: object, more: Partial<typeof settings> = {}) => {
  const plan = planOf({ proxies: [proxyObject(undefined, spec)], egresses: [egressObject('shop/a', { tcp })] });
  const proxy = plan.proxies.get('bcs-system/egress-controller');
  assert.ok(proxy?.view);
  return proxyObjects(proxy, proxy.view, 'uid-1', { ...settings, ...more });
};
const textOf = (kind: string, spec: object, more: object = {}): string =>
  JSON.stringify(objectsOf(spec, more).find((wanted) => wanted.kind === kind)?.object);

test('everything is ours, belongs to the BCSEgressController and has its name', () => {
  for (const { object } of objectsOf({})) {
    assert.equal(object.metadata.name, 'egress-controller');
    assert.equal(object.metadata.labels?.['app.kubernetes.io/managed-by'], 'sallyport-operator');
    assert.deepEqual(
      object.metadata.ownerReferences?.map(({ kind, uid }) => [kind, uid]),
      [['BCSEgressController', 'uid-1']],
    );
  }
});

test('the pod has no privileges, and takes engine, image, nodes, size and resolvers from the spec', () => {
  const usual = textOf('deployments', {});
  assert.match(
    usual,
    /"image":"envoy-image","args":\["proxy","--controller=bcs-system\/egress-controller","--engine=envoy"/,
  );
  assert.match(usual, /"requests":\{"cpu":"4096m","memory":"4Gi"\}/);
  assert.match(usual, /"dnsPolicy":"Default"/);
  assert.match(usual, /"runAsNonRoot":true/);
  assert.match(usual, /"capabilities":\{"drop":\["ALL"\]\}/);
  assert.doesNotMatch(usual, /"replicas"/);
  const own = textOf('deployments', {
    engine: 'nginx',
    selector: { node: 'edge' },
    resource: { cpu: 2000, mem: '100Mi' },
    nameservers: ['198.51.100.53'],
  });
  assert.match(own, /"image":"nginx-image"/);
  assert.match(own, /"nodeSelector":\{"node":"edge"\}/);
  assert.match(own, /"requests":\{"cpu":"2","memory":"100Mi"\}/);
  assert.match(own, /"dnsPolicy":"None","dnsConfig":\{"nameservers":\["198.51.100.53"\]\}/);
  assert.match(textOf('deployments', { image: 'own' }), /"image":"own"/);
  assert.match(textOf('deployments', {}, { nameservers: ['198.51.100.54'] }), /"nameservers":\["198.51.100.54"\]/);
});

test('the autoscaler looks at both figures, and the Service keeps its usual ports', () => {
  const autoscaler = textOf('autoscalers', { minReplicas: 3, maxReplicas: 5, CPUPercentage: 50, MemPercentage: 70 });
  assert.match(autoscaler, /"minReplicas":3,"maxReplicas":5/);
  assert.match(autoscaler, /"name":"cpu","target":\{"type":"Utilization","averageUtilization":50\}/);
  assert.match(autoscaler, /"name":"memory","target":\{"type":"Utilization","averageUtilization":70\}/);
  const spelledAsInTheSeed = textOf('autoscalers', { MEMPercentage: 75 });
  assert.match(spelledAsInTheSeed, /"name":"memory","target":\{"type":"Utilization","averageUtilization":75\}/);
  const ports = [...textOf('services', {}).matchAll(/"port":(\d+),"targetPort":(\d+)/g)].map(
    ([, port, target]) => `${port}:${target}`,
  );
  assert.deepEqual(
    ports,
    ['80:61080', '3128:61080', '443:61443', '3306:3306'],
    'a rule on port 80 has only its own Service',
  );
});

test('a port is open to those whom its rules are for, and a port without rules to nobody', () => {
  const plan = planOf({
    proxies: [proxyObject()],
    egresses: [
      egressObject('shop/a', { tcp, http: [{ host: 'a.example.com' }] }),
      egressObject('hn1/b', {
        tcp: [{ sourceport: 9000, destport: 9000, ips: '198.51.100.1' }],
        sources: { any: true },
      }),
    ],
  }).proxies.get('bcs-system/egress-controller');
  assert.ok(plan?.view);
  const policy = proxyObjects(plan, plan.view, 'uid-1', settings).find(({ kind }) => kind === 'networkPolicies');
  const text = JSON.stringify(policy?.object.spec);
  const shop =
    '"from":[{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["shop"]}]}}]';
  const ports = (...numbers: readonly number[]) =>
    `"ports":[${numbers.map((port) => `{"protocol":"TCP","port":${port}}`).join(',')}]`;
  assert.ok(text.includes(`{${shop},${ports(80, 3306, 61080, 61443)}}`), text);
  assert.ok(text.includes(`{${ports(9000)}}`), text);
  assert.doesNotMatch(textOf('networkPolicies', {}), /61080/);
});

test('the Service of a rule has no selector, and a slice of each family names the ready pods', () => {
  const plan = planOf({ egresses: [egressObject('shop/a', { tcp })] }).egresses.get('shop/a');
  const ips = ['10.244.1.1', 'fd00:244::1'].map(ip);
  const pods = [{ name: 'p', namespace: 'bcs-system', uid: 'u', ips, node: 'n' }];
  const wanted = ruleObjects({ namespace: 'shop', name: 'a', uid: 'uid-2' }, plan?.rules ?? [], pods);
  assert.deepEqual(
    wanted.map(({ kind, object }) => `${kind} ${object.metadata.namespace}/${object.metadata.name}`),
    ['a-db', 'a-web'].flatMap((name) => [
      `services shop/${name}`,
      `endpointSlices shop/${name}-ipv4`,
      `endpointSlices shop/${name}-ipv6`,
    ]),
  );
  const [service, ipv4, ipv6] = wanted.map(({ object }) => JSON.stringify(object));
  assert.doesNotMatch(service ?? '', /"selector"/);
  assert.match(ipv4 ?? '', /"addresses":\["10.244.1.1"\].*"nodeName":"n"/);
  assert.match(ipv6 ?? '', /"addresses":\["fd00:244::1"\]/);
});

test('a family that no ready pod has gets no slice', () => {
  const plan = planOf({ egresses: [egressObject('shop/a', { tcp })] }).egresses.get('shop/a');
  const namesFor = (...ips: readonly string[]): string[] => {
    const pods = ips.map((text) => ({ name: 'p', namespace: 'bcs-system', uid: 'u', ips: [ip(text)], node: 'n' }));
    return ruleObjects({ namespace: 'shop', name: 'a', uid: 'uid-2' }, plan?.rules.slice(0, 1) ?? [], pods).map(
      ({ object }) => object.metadata.name,
    );
  };
  assert.deepEqual(namesFor('10.244.1.1'), ['a-db', 'a-db-ipv4']);
  assert.deepEqual(namesFor('fd00:244::1'), ['a-db', 'a-db-ipv6']);
  assert.deepEqual(namesFor(), ['a-db']);
});
