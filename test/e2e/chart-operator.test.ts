/**
 * The operator in the chart: its command line, its webhook, that it can be left out, and what a real API server lets it
 * write.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { run } from '../../lab/host/command.ts';
import { until } from '../../lab/host/wait.ts';
import { chartFolder, release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { webhookSet as operatorWebhook, webhookService } from '../../src/operator/admission.ts';
import { type Helm, objectOf, openHelm } from './helm.ts';

const everything = ['networkPolicy.enabled=true', 'imagePullSecrets[0].name=registry'];

let helm: Helm;
before(async () => {
  // Rendering asks no cluster.
  helm = openHelm(await programs(), '/nowhere');
});
after(() => {
  helm?.close();
});

/** A Deployment, as far as its command line goes. */
const Workload = z.looseObject({
  spec: z.looseObject({
    replicas: z.int(),
    template: z.looseObject({
      spec: z.looseObject({ containers: z.array(z.looseObject({ args: z.array(z.string()) })) }),
    }),
  }),
});

describe('the operator', () => {
  test('tells the API server what src/operator/admission.ts says, but for the certificate authority', async () => {
    const object = objectOf(await helm.render(), 'ValidatingWebhookConfiguration', operatorWebhook.name);
    const service = { name: webhookService, namespace: release.namespace, path: operatorWebhook.path, port: 443 };
    const wanted = operatorWebhook.whole({}).webhooks?.map((webhook) => ({ ...webhook, clientConfig: { service } }));
    assert.deepEqual(z.looseObject({ webhooks: z.unknown() }).parse(object).webhooks, wanted);
  });

  test('gets a command line that it takes', async () => {
    const set = [
      ...everything,
      'operator.proxyNamespaces={bcs-system,tenants}',
      'operator.defaultProxy.minReplicas=3',
      'operator.nameservers={198.51.100.53}',
      'operator.images.nginx.repository=registry.example.com/nginx',
    ];
    const { spec } = Workload.parse(objectOf(await helm.render(...set), 'Deployment', 'sallyport-operator'));
    assert.equal(spec.replicas, 2);
    const [{ args } = { args: [] }] = spec.template.spec.containers;
    const { code, stdout } = await run(
      [join(chartFolder, '..', '..', 'bin', 'sallyport'), ...args, '--kubeconfig=/nowhere'],
      {},
    );
    assert.equal(code, 2);
    assert.match(stdout, /KUBECONFIG_INVALID|\/nowhere/, 'everything before the kubeconfig is understood');
    assert.ok(args.includes('--proxy-namespace=tenants'));
    assert.ok(args.includes('--default-proxy={"minReplicas":3}'));
    assert.ok(args.includes('--nginx-image=registry.example.com/nginx:0.1.0'));
    assert.ok(args.includes('--image-pull-secret=registry'));
  });

  test('is left out on request, with all that belongs to it', async () => {
    const objects = await helm.render('operator.enabled=false');
    assert.deepEqual(
      objects.filter(
        ({ kind, metadata }) =>
          kind !== 'CustomResourceDefinition' && /operator|proxy|bcs-system|own-objects/.test(metadata.name),
      ),
      [],
    );
  });
});

describe('a real API server', () => {
  let controlPlane: BareControlPlane;
  before(async () => {
    controlPlane = await startBareControlPlane();
  });
  after(() => controlPlane?.stop());

  const kubectl = (args: readonly string[], input = '') =>
    run([controlPlane.kubectl, '--kubeconfig', controlPlane.kubeconfig, ...args], { input });
  const operator = ['--as', `system:serviceaccount:${release.namespace}:sallyport-operator`];
  const write = (object: object, ...who: readonly string[]) =>
    kubectl(['apply', '--server-side', '--force-conflicts', ...who, '-f', '-'], JSON.stringify(object));
  const ownerOf = (kind: string, apiVersion: string) => [
    { apiVersion, kind, name: 'orders', uid: 'e5a9f0d2-9a3e-4a51-8c60-0d6e4f1c8b7a', controller: true },
  ];
  const rule = ownerOf('BCSEgress', 'bkbcs.tencent.com/v1alpha1');
  const service = (name: string, namespace: string, ownerReferences: readonly object[], spec: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, ownerReferences },
    spec: { ports: [{ name: 'rule-80', port: 80, protocol: 'TCP' }], ...spec },
  });
  const slice = (name: string, ownerReferences: readonly object[]) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'shop', ownerReferences, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.66'] }],
    ports: [],
  });

  test('lets the operator write Services and EndpointSlices that are its own, and no others', async () => {
    for (const namespace of [release.namespace, 'bcs-system', 'shop'])
      await kubectl(['create', 'namespace', namespace]);
    const objects = (await helm.render('agent.enabled=false')).filter(({ kind }) =>
      /Role|ServiceAccount|Policy/.test(kind),
    );
    const list = stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const applied = await kubectl(['apply', '--server-side', '-f', '-'], list);
    assert.equal(applied.code, 0, applied.stderr);
    for (const theirs of [service('web', 'shop', []), slice('web-1', [])]) assert.equal((await write(theirs)).code, 0);

    // The API server takes a new policy into use after a moment.
    await until({ what: 'the policy in force', limitMs: 60_000, everyMs: 200 }, async () => {
      return (await write(service('other', 'shop', []), ...operator, '--dry-run=server')).code !== 0;
    });
    const stolen = { spec: { selector: { app: 'thief' } } };
    const neither = /of a BCSEgress or BCSEgressController only, and shop\/\S* is of neither/;
    const denied = [
      [await write(service('other', 'shop', ownerOf('Deployment', 'apps/v1')), ...operator), neither],
      [await write(service('web', 'shop', rule), ...operator), neither],
      [await kubectl(['-n', 'shop', 'patch', 'service', 'web', ...operator, '-p', JSON.stringify(stolen)]), neither],
      [await kubectl(['-n', 'shop', 'delete', 'service', 'web', ...operator]), neither],
      [await kubectl(['-n', 'shop', 'delete', 'endpointslice', 'web-1', ...operator]), neither],
      [await write(slice('web-2', []), ...operator), neither],
      [await write(service('own', 'shop', rule, { selector: { app: 'a' } }), ...operator), /has no selector/],
      [await write(service('own', 'shop', rule, { externalIPs: ['192.0.2.1'] }), ...operator), /external addresses/],
      [await write(service('own', 'shop', rule, { type: 'NodePort' }), ...operator), /type ClusterIP/],
    ] as const;
    for (const [{ code, stderr }, message] of denied) {
      assert.notEqual(code, 0, String(message));
      assert.match(stderr, message);
    }

    const proxy = ownerOf('BCSEgressController', 'bkbcs.tencent.com/v1');
    for (const object of [
      service('own', 'shop', rule),
      service('own', 'shop', rule, { ports: [{ name: 'rule-81', port: 81, protocol: 'TCP' }] }),
      slice('own-ipv4', rule),
      service('egress-controller', 'bcs-system', proxy, { selector: { app: 'proxy' } }),
    ]) {
      const { code, stderr } = await write(object, ...operator);
      assert.equal(code, 0, `${object.kind} ${object.metadata.name}: ${stderr}`);
    }
    for (const [kind, name] of [
      ['service', 'own'],
      ['endpointslice', 'own-ipv4'],
    ]) {
      const { code, stderr } = await kubectl(['-n', 'shop', 'delete', kind ?? '', name ?? '', ...operator]);
      assert.equal(code, 0, stderr);
    }
    assert.equal((await write(service('web', 'shop', [], { selector: { app: 'b' } }))).code, 0, 'others may');
  });
});
