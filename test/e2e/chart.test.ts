/**
 * The chart as text: what it promises about security, rights and availability, which values it refuses, and that a real
 * API server takes every object of it. What it does when it is installed is in chart-install.test.ts.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { run } from '../../lab/host/command.ts';
import { chartFolder, release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { Config } from '../../src/api/config.ts';
import { kinds } from '../../src/api/kinds.ts';
import {
  webhookConfiguration,
  webhookKinds,
  webhookName,
  webhookPath,
} from '../../src/controller/admission/webhooks.ts';
import { expectedRights, rightsIn } from './chart-rights.ts';
import { type Helm, objectOf, openHelm } from './helm.ts';

/** Turns everything on that is off by default. */
const everything = ['networkPolicy.enabled=true', 'extraLabels.team=network', 'imagePullSecrets[0].name=registry'];

/** Where proxies run by default, where the Corefile is, and where Kubernetes says which addresses its API servers have. */
const proxyNamespace = 'bcs-system';
const dnsNamespace = 'kube-system';
const apiServersNamespace = 'default';

let controlPlane: BareControlPlane;
let helm: Helm;
before(async () => {
  controlPlane = await startBareControlPlane({ log: (line) => console.log(line) });
  helm = openHelm(await programs(), controlPlane.kubeconfig);
  for (const namespace of [release.namespace, proxyNamespace]) await kubectl(['create', 'namespace', namespace]);
  await kubectl(['label', 'namespace', release.namespace, 'pod-security.kubernetes.io/warn=restricted']);
});
after(async () => {
  helm?.close();
  await controlPlane?.stop();
});

const kubectl = (args: readonly string[], input = '') =>
  run([controlPlane.kubectl, '--kubeconfig', controlPlane.kubeconfig, ...args], { input });

test('a cluster that is too old is refused', async () => {
  const { code, stderr } = await helm.run('template', chartFolder, '--kube-version', '1.30.9');
  assert.notEqual(code, 0);
  assert.match(stderr, /chart requires kubeVersion: >=1\.31\.0-0 which is incompatible with Kubernetes v?1\.30\.9/);
});

test('helm lint finds nothing, strictly', async () => {
  const { code, stdout } = await helm.run('lint', '--strict', chartFolder);
  assert.equal(code, 0, stdout);
  assert.doesNotMatch(stdout, /\[(WARNING|ERROR)\]/);
});

describe('every object', () => {
  test('carries our labels and those of the user, and is in the namespace of the release, of proxies or in none', async () => {
    const objects = await helm.render(...everything);
    assert.ok(objects.length > 15, `${objects.length} objects`);
    for (const { kind, metadata } of objects) {
      const { name, labels, namespace } = metadata;
      const what = `${kind} ${name}`;
      assert.equal(labels['app.kubernetes.io/part-of'], 'sallyport', what);
      assert.equal(labels['app.kubernetes.io/managed-by'], 'Helm', what);
      assert.equal(labels.team, 'network', what);
      const allowed = [
        undefined,
        release.namespace,
        ...(/Role|ServiceAccount/.test(kind) ? [proxyNamespace, dnsNamespace, apiServersNamespace] : []),
      ];
      assert.ok(allowed.includes(namespace), what);
    }
  });

  test('is taken by the API server, and all pods but the agents meet the strictest standard of pod security', async () => {
    const objects = await helm.render(...everything, 'agent.enabled=false');
    const list = stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const { code, stderr, stdout } = await kubectl(['apply', '--server-side', '--dry-run=server', '-f', '-'], list);
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '', 'no warnings');
    assert.equal(stdout.trim().split('\n').length, objects.length);
  });
});

describe('CRDs', () => {
  test('are those of files/crds, and stay when the release goes', async () => {
    const rendered = (await helm.render()).filter(({ kind }) => kind === 'CustomResourceDefinition');
    assert.equal(rendered.length, Object.keys(kinds).length);
    const folder = join(chartFolder, 'files', 'crds');
    const files = readdirSync(folder).map((file) => parse(readFileSync(join(folder, file), 'utf8')));
    for (const { metadata, ...rest } of rendered) {
      assert.deepEqual(metadata.annotations, { 'helm.sh/resource-policy': 'keep' });
      const file = files.find((candidate) => candidate.metadata.name === metadata.name);
      assert.deepEqual({ ...rest, metadata: { name: metadata.name } }, file);
    }
  });

  test('are left out on request', async () => {
    const objects = await helm.render('crds.enabled=false');
    assert.ok(objects.every(({ kind }) => kind !== 'CustomResourceDefinition'));
  });
});

describe('the controller', () => {
  const Container = z.looseObject({ image: z.string(), args: z.array(z.string()), securityContext: z.unknown() });
  const Deployment = z.looseObject({
    spec: z.looseObject({
      replicas: z.int(),
      strategy: z.unknown(),
      template: z.looseObject({
        metadata: z.looseObject({ annotations: z.record(z.string(), z.string()) }),
        spec: z.looseObject({ securityContext: z.unknown(), containers: z.array(Container) }),
      }),
    }),
  });
  const deploymentOf = async (...set: readonly string[]) =>
    Deployment.parse(objectOf(await helm.render(...set), 'Deployment', 'sallyport-controller')).spec;

  test('has no privileges at all', async () => {
    const { template } = await deploymentOf();
    assert.deepEqual(template.spec.securityContext, {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    assert.deepEqual(
      template.spec.containers.map(({ securityContext }) => securityContext),
      [{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }],
    );
    for (const key of ['hostNetwork', 'hostPID', 'hostIPC']) assert.ok(!(key in template.spec), key);
    assert.doesNotMatch(JSON.stringify(template.spec), /hostPath/);
  });

  test('is there twice, on two nodes if there are two, and loses one at a time', async () => {
    const { replicas, strategy, template } = await deploymentOf();
    assert.equal(replicas, 2);
    assert.deepEqual(strategy, { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
    assert.equal(template.spec.priorityClassName, 'system-cluster-critical');
    assert.match(JSON.stringify(template.spec.affinity), /"topologyKey":"kubernetes.io\/hostname"/);
    assert.match(JSON.stringify(template.spec.topologySpreadConstraints), /"topology.kubernetes.io\/zone"/);
    const { spec } = objectOf(await helm.render(), 'PodDisruptionBudget', 'sallyport-controller');
    assert.deepEqual(spec, {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: { 'app.kubernetes.io/name': 'sallyport', 'app.kubernetes.io/component': 'controller' } },
    });
  });

  test('has the image of the chart, unless the values name another', async () => {
    const imageOf = async (...set: readonly string[]) =>
      (await deploymentOf(...set)).template.spec.containers.map(({ image }) => image);
    assert.deepEqual(await imageOf(), ['sallyport:0.1.0']);
    const digest = `sha256:${'0'.repeat(64)}`;
    const elsewhere = ['image.repository=registry.example.com/a/sallyport', 'image.tag=v7'];
    assert.deepEqual(await imageOf(...elsewhere), ['registry.example.com/a/sallyport:v7']);
    assert.deepEqual(await imageOf(`image.digest=${digest}`), [`sallyport:0.1.0@${digest}`]);
  });

  test('is rolled out anew for a configuration that needs it, and for no other', async () => {
    const templateOf = async (...set: readonly string[]) => (await deploymentOf(...set)).template;
    const first = await templateOf();
    assert.deepEqual(await templateOf('config.feature.maxNumberEndpointPerSlice=50'), first);
    assert.notDeepEqual(await templateOf('config.feature.enableIPv6=true'), first);
  });
});

test('the configuration file is what the values say, and the controller will take it', async () => {
  const set = ['config.feature.vxlan.id=16777215', 'config.feature.egressIgnoreCIDR.custom={10.6.1.0/24}'];
  const { data } = z
    .looseObject({ data: z.record(z.string(), z.string()) })
    .parse(objectOf(await helm.render(...set), 'ConfigMap', 'sallyport'));
  assert.deepEqual(Object.keys(data), ['config.yaml']);
  const { feature } = Config.parse(parse(data['config.yaml'] ?? ''));
  assert.equal(feature.vxlan.id, 16777215);
  assert.deepEqual(feature.egressIgnoreCIDR.custom, ['10.6.1.0/24']);
});

describe('webhooks', () => {
  const Configuration = z.looseObject({
    webhooks: z.array(z.looseObject({ clientConfig: z.looseObject({}), matchConditions: z.unknown().default([]) })),
  });
  for (const kind of webhookKinds) {
    test(`${kind}: the API server is told what src/controller/admission/webhooks.ts says, but for the certificate authority`, async () => {
      const object = objectOf(await helm.render(), `${kind}WebhookConfiguration`, webhookName);
      const service = { name: 'sallyport-webhook', namespace: release.namespace, path: webhookPath(kind), port: 443 };
      const wanted = webhookConfiguration(kind, {}).webhooks?.map((webhook) => ({
        ...webhook,
        clientConfig: { service },
      }));
      assert.deepEqual(Configuration.parse(object).webhooks, wanted);
    });
  }
});

describe('rights', () => {
  const Binding = z.looseObject({
    roleRef: z.object({ apiGroup: z.string(), kind: z.string(), name: z.string() }),
    subjects: z.array(z.object({ kind: z.string(), name: z.string(), namespace: z.string() })),
  });

  test('are these and no others', async () => {
    const rights = rightsIn(await helm.render(...everything));
    console.log(rights.join('\n'));
    assert.deepEqual(rights, expectedRights);
  });

  test('use no wildcard, no role of others, and go to our service accounts only', async () => {
    const objects = await helm.render(...everything);
    assert.ok(rightsIn(objects).every((right) => !right.includes('*')));
    for (const binding of objects.filter(({ kind }) => kind === 'ClusterRoleBinding' || kind === 'RoleBinding')) {
      const { roleRef, subjects } = Binding.parse(binding);
      assert.ok(objects.some(({ kind, metadata }) => kind === roleRef.kind && metadata.name === roleRef.name));
      for (const { kind, name, namespace } of subjects) {
        assert.deepEqual(
          [kind, namespace],
          ['ServiceAccount', name === 'sallyport-proxy' ? proxyNamespace : release.namespace],
        );
        objectOf(objects, 'ServiceAccount', name);
      }
    }
  });

  test('the API server grants what is needed and nothing near it', async () => {
    const objects = (await helm.render()).filter(({ kind }) => /Role|ServiceAccount/.test(kind));
    const list = stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const applied = await kubectl(['apply', '--server-side', '-f', '-'], list);
    assert.equal(applied.code, 0, applied.stderr);
    const user = `system:serviceaccount:${release.namespace}:sallyport-controller`;
    const may = async (...question: readonly string[]) =>
      (await kubectl(['auth', 'can-i', '--as', user, ...question])).stdout.trim();
    const ours = ['--namespace', release.namespace];
    assert.equal(await may('watch', 'pods', '--all-namespaces'), 'yes');
    assert.equal(await may('update', 'secrets/sallyport-webhook', ...ours), 'yes');
    assert.equal(await may('update', 'secrets/another', ...ours), 'no');
    assert.equal(await may('list', 'secrets', ...ours), 'no');
    assert.equal(await may('get', 'secrets/sallyport-webhook', '--namespace', 'default'), 'no');
    assert.equal(await may('create', 'pods', ...ours), 'no');
    assert.equal(await may('watch', 'endpointslices.discovery.k8s.io', '--namespace', apiServersNamespace), 'yes');
    assert.equal(await may('watch', 'endpointslices.discovery.k8s.io', ...ours), 'no');
    assert.equal(await may('patch', 'nodes/any'), 'yes', 'its start-up taint, which chart-agent.test.ts is about');
    assert.equal(await may('update', 'nodes/any'), 'no');
    assert.equal(await may('patch', 'validatingwebhookconfigurations/another'), 'no');
    assert.equal(await may('delete', 'customresourcedefinitions/any'), 'no');
    const operator = `system:serviceaccount:${release.namespace}:sallyport-operator`;
    const operatorMay = async (...question: readonly string[]) =>
      (await kubectl(['auth', 'can-i', '--as', operator, ...question])).stdout.trim();
    assert.equal(await operatorMay('create', 'deployments', '--namespace', proxyNamespace), 'yes');
    assert.equal(await operatorMay('create', 'deployments', ...ours), 'no');
    assert.equal(await operatorMay('create', 'services', '--namespace', 'default'), 'yes');
    assert.equal(await operatorMay('patch', 'configmaps/coredns', '--namespace', dnsNamespace), 'yes');
    assert.equal(await operatorMay('patch', 'configmaps/another', '--namespace', dnsNamespace), 'no');
    assert.equal(await operatorMay('list', 'secrets', '--namespace', proxyNamespace), 'no');
  });
});

describe('values that are refused, in the words of helm', () => {
  const refusals: readonly (readonly [string, RegExp])[] = [
    ['controler.replicas=3', /additional properties 'controler' not allowed/],
    ['controller.replica=3', /at '\/controller': additional properties 'replica' not allowed/],
    ['controller.replicas=two', /at '\/controller\/replicas': got string, want integer/],
    ['controller.replicas=-1', /at '\/controller\/replicas': minimum: got -1, want 0/],
    ['controller.logLevel=loud', /at '\/controller\/logLevel': value must be one of 'debug', 'info', 'warn', 'error'/],
    ['agent.maxUnavailable=0', /at '\/agent\/maxUnavailable': minimum: got 0, want 1/],
    ['agent.maxUnavailable=half', /at '\/agent\/maxUnavailable': 'half' does not match pattern/],
    ['agent.healthPort=0', /at '\/agent\/healthPort': minimum: got 0, want 1/],
    ['agent.replicas=3', /at '\/agent': additional properties 'replicas' not allowed/],
    ['image.pullPolicy=Sometimes', /at '\/image\/pullPolicy': value must be one of/],
    ['image.digest=latest', /at '\/image\/digest': 'latest' does not match pattern/],
    ['image.repository=', /at '\/image\/repository': minLength: got 0, want 1/],
    ['operator.proxyNamespaces={Upper}', /at '\/operator\/proxyNamespaces\/0': 'Upper' does not match pattern/],
    ['operator.dns.kind=bind', /at '\/operator\/dns\/kind': value must be one of 'coredns', 'none'/],
    ['operator.image=x', /at '\/operator': additional properties 'image' not allowed/],
    ['webhooks.timeoutSeconds=31', /at '\/webhooks\/timeoutSeconds': maximum: got 31, want 30/],
    ['extraLabels.app\\.kubernetes\\.io/name=mine', /at '\/extraLabels\/app\.kubernetes\.io~1name': false schema/],
    ['config.feature.vxlan.port=70000', /at '\/config\/feature\/vxlan\/port': maximum: got 70,?000, want 65,?535/],
    ['config.feature.vxlan.prot=7789', /at '\/config\/feature\/vxlan': additional properties 'prot' not allowed/],
    ['config.feature.egressIgnoreCIDR.autoDetect.podCIDR=cilium', /podCIDR': value must be one of '', 'k8s'/],
  ];
  for (const [setting, words] of refusals) {
    test(setting, async () => {
      await assert.rejects(helm.render(setting), words);
    });
  }
});
