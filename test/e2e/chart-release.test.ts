/**
 * The life of a release on a real API server without nodes: what an upgrade changes, what it must leave alone, and what
 * stays when the release goes. A running controller is in chart-install.test.ts.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { must } from '../../lab/host/command.ts';
import { chartFolder, release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { kinds } from '../../src/api/kinds.ts';
import { type Helm, openHelm } from './helm.ts';

describe('a release', () => {
  let controlPlane: BareControlPlane;
  let helm: Helm;
  beforeEach(async () => {
    controlPlane = await startBareControlPlane({ log: (line) => console.log(line) });
    helm = openHelm(await programs(), controlPlane.kubeconfig);
  });
  afterEach(async () => {
    helm?.close();
    await controlPlane?.stop();
  });

  const target = ['--namespace', release.namespace];
  const kubectl = (args: readonly string[], input = '') => {
    const argv = [controlPlane.kubectl, '--kubeconfig', controlPlane.kubeconfig, ...target, ...args];
    return must(`kubectl ${args.join(' ')}`, argv, { input });
  };
  const succeed = async (...args: readonly string[]) => {
    const { code, stderr } = await helm.run(...args);
    assert.equal(code, 0, stderr);
  };
  const installed = (chart: string, ...args: readonly string[]) =>
    succeed('install', release.name, chart, ...target, '--create-namespace', ...args);
  const upgraded = (...args: readonly string[]) => succeed('upgrade', release.name, chartFolder, ...target, ...args);

  test('an upgrade brings new fields of CRDs, and objects of users stay', async () => {
    const older = mkdtempSync(join(tmpdir(), 'sallyport-chart-'));
    try {
      cpSync(chartFolder, older, { recursive: true });
      const file = join(older, 'files', 'crds', 'egressgateway.spidernet.io_egressgateways.yaml');
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace('eipLimit:', 'anotherLimit:'));
      await installed(older);
    } finally {
      rmSync(older, { recursive: true });
    }
    const fields = () =>
      kubectl([
        'get',
        'crd/egressgateways.egressgateway.spidernet.io',
        '-o',
        'jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties}',
      ]);
    assert.doesNotMatch(await fields(), /"eipLimit"/);
    await createTunnel();
    await upgraded();
    assert.match(await fields(), /"eipLimit"/);
    assert.doesNotMatch(await fields(), /"anotherLimit"/);
    assert.equal(await kubectl(['get', 'egresstunnels', '-o', 'name']), tunnelName);
  });

  // Both ways helm has to write: server-side apply, and the three-way merge of earlier versions.
  for (const way of ['--server-side=true', '--server-side=false']) {
    test(`an upgrade with ${way} leaves alone what the controller wrote`, async () => {
      await installed(chartFolder, way);
      await writeAsController();
      const before = await writtenByController();
      assert.ok(before.every((value) => value !== ''));
      await upgraded(way, '--set', 'webhooks.timeoutSeconds=7', '--set', 'extraLabels.team=network');
      assert.deepEqual(await writtenByController(), before);
      const timeouts = await kubectl([
        'get',
        'validatingwebhookconfigurations/sallyport',
        '-o',
        'jsonpath={.webhooks[*].timeoutSeconds}',
      ]);
      assert.deepEqual([...new Set(timeouts.split(' '))], ['7'], 'the upgrade itself has happened');
    });
  }

  test('CRDs of another program are taken over on request only, with the objects in them', async () => {
    await kubectl(['apply', '--server-side', '-f', join(chartFolder, 'files', 'crds')]);
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=180s']);
    await createTunnel();
    const refused = await helm.run('install', release.name, chartFolder, ...target, '--create-namespace');
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /invalid ownership metadata/);
    await installed(chartFolder, '--take-ownership', '--force-conflicts');
    assert.equal(await kubectl(['get', 'egresstunnels', '-o', 'name']), tunnelName);
  });

  test('a second release in the same cluster is refused', async () => {
    await installed(chartFolder);
    const second = await helm.run('install', 'second', chartFolder, '--namespace', 'second', '--create-namespace');
    assert.notEqual(second.code, 0);
    assert.match(second.stderr, /exists and cannot be imported into the current release/);
  });

  test('its end leaves CRDs with their objects, namespaces of proxies and nothing else, and it can come back', async () => {
    // The removal of agents waits for nodes, and here are none: chart-install.test.ts has it.
    await installed(chartFolder, '--set', 'networkPolicy.enabled=true', '--set', 'agent.enabled=false');
    await createTunnel();
    await writeAsController();
    assert.ok((await everythingOfOurs()).length > 10);
    await succeed('uninstall', release.name, ...target, '--wait');
    const crds = Object.values(kinds).map(
      ({ plural, group }) => `customresourcedefinition.apiextensions.k8s.io/${plural}.${group}`,
    );
    // Tenants may have put something of theirs into the namespace of proxies.
    assert.deepEqual(await everythingOfOurs(), [...crds.toSorted(), 'namespace/bcs-system']);
    const kindsOfNamespace = 'secrets,leases,configmaps,serviceaccounts,services,roles,rolebindings';
    assert.equal(await kubectl(['get', kindsOfNamespace, '-o', 'name']), '', 'also what the controller had made');
    assert.equal(await kubectl(['get', 'egresstunnels', '-o', 'name']), tunnelName);
    await installed(chartFolder);
  });

  const tunnelName = 'egresstunnel.egressgateway.spidernet.io/node-a\n';
  const createTunnel = async () => {
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=180s']);
    const tunnel = {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressTunnel',
      metadata: { name: 'node-a' },
    };
    await kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify(tunnel));
  };

  /** Makes and fills in what the controller does, without a label or annotation of helm. */
  const writeAsController = async () => {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { holderIdentity: 'somebody' } };
    const secret = { apiVersion: 'v1', kind: 'Secret', data: { 'tls.crt': 'Y2VydGlmaWNhdGU=' } };
    const objects = [
      { ...lease, metadata: { name: 'sallyport-controller' } },
      { ...secret, metadata: { name: 'sallyport-webhook' } },
    ];
    await kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    for (const kind of ['validatingwebhookconfiguration', 'mutatingwebhookconfiguration']) {
      const names = await kubectl(['get', `${kind}/sallyport`, '-o', 'jsonpath={.webhooks[*].name}']);
      const operations = names
        .split(' ')
        .map((_, index) => ({ op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: 'YXV0aG9yaXR5' }));
      await kubectl(['patch', `${kind}/sallyport`, '--type=json', '-p', JSON.stringify(operations)]);
    }
  };
  const writtenByController = () =>
    Promise.all([
      kubectl(['get', 'lease/sallyport-controller', '-o', 'jsonpath={.spec.holderIdentity}']),
      kubectl(['get', 'secret/sallyport-webhook', '-o', 'jsonpath={.data}']),
      ...['validatingwebhookconfiguration', 'mutatingwebhookconfiguration'].map((kind) =>
        kubectl(['get', `${kind}/sallyport`, '-o', 'jsonpath={.webhooks[*].clientConfig.caBundle}']),
      ),
    ]);

  /** All objects of any kind with our label. */
  const everythingOfOurs = async () => {
    const listable = await kubectl(['api-resources', '--verbs=list', '-o', 'name']);
    const resources = listable.trim().split('\n').join(',');
    const label = 'app.kubernetes.io/part-of=sallyport';
    const found = await kubectl([
      'get',
      resources,
      '--all-namespaces',
      '-l',
      label,
      '-o',
      'name',
      '--ignore-not-found',
    ]);
    return found.split('\n').filter(Boolean).toSorted();
  };
});
