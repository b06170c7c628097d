/**
 * Values files of egressgateway, with a real helm and a real API server: what means the same is applied, what means nothing
 * is named, and what neither chart knows is refused.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { chartFolder, release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { Config } from '../../src/api/config.ts';
import { type Helm, openHelm } from './helm.ts';

const example = join(import.meta.dirname, '..', 'fixtures', 'chart', 'egressgateway-values.yaml');
const table = z
  .looseObject({ ignored: z.record(z.string(), z.string()) })
  .parse(parse(readFileSync(join(chartFolder, 'files', 'egressgateway-values.yaml'), 'utf8')));
const target = [release.name, chartFolder, '--namespace', release.namespace];

let controlPlane: BareControlPlane;
let helm: Helm;
let folder: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-values-'));
  controlPlane = await startBareControlPlane({ log: (line) => console.log(line) });
  helm = openHelm(await programs(), controlPlane.kubeconfig);
});
after(async () => {
  helm?.close();
  await controlPlane?.stop();
  rmSync(folder, { recursive: true });
});

const Pod = z.looseObject({
  metadata: z.looseObject({ annotations: z.record(z.string(), z.string()).default({}) }),
  spec: z.looseObject({
    nodeSelector: z.record(z.string(), z.string()),
    tolerations: z.array(z.unknown()).default([]),
    imagePullSecrets: z.array(z.unknown()).optional(),
    containers: z.array(
      z.looseObject({
        image: z.string(),
        imagePullPolicy: z.string(),
        args: z.array(z.string()),
        resources: z.unknown(),
      }),
    ),
  }),
});
const Rendered = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  data: z.record(z.string(), z.string()).optional(),
  spec: z
    .looseObject({
      replicas: z.int().optional(),
      updateStrategy: z.unknown().optional(),
      template: Pod.optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
});

/** The objects that helm makes of a values file, and what it says to the user. */
const rendered = async (...args: readonly string[]) => {
  const { code, stdout, stderr } = await helm.run('install', ...target, '--dry-run=client', ...args);
  assert.equal(code, 0, stderr);
  const [, manifest = '', notes = ''] = /\nMANIFEST:\n(.*)\nNOTES:\n(.*)/s.exec(stdout) ?? [];
  const objects = parseAllDocuments(manifest)
    .map((document) => document.toJS())
    .filter((object) => object !== null)
    .map((object) => Rendered.parse(object));
  const find = (kind: string, name: string) =>
    objects.find((object) => object.kind === kind && object.metadata.name === name);
  return { objects, notes, find };
};

const refused = async (values: object): Promise<string> => {
  const file = join(folder, 'values.yaml');
  writeFileSync(file, stringify(values));
  const { code, stderr } = await helm.run('install', ...target, '--dry-run=client', '-f', file);
  assert.notEqual(code, 0);
  return stderr;
};

describe('a values file of egressgateway', () => {
  test('sets what means the same', async () => {
    const { find, objects } = await rendered('-f', example);
    const { feature } = Config.parse(parse(find('ConfigMap', 'sallyport')?.data?.['config.yaml'] ?? ''));
    const { failover, strictPodStart, ...rest } = feature;
    assert.deepEqual([failover, strictPodStart], [Config.parse({}).feature.failover, false], 'ours alone');
    assert.deepEqual(rest, {
      enableIPv4: true,
      enableIPv6: true,
      tunnelIpv4Subnet: '172.30.0.0/16',
      tunnelIpv6Subnet: 'fd22::/112',
      tunnelDetectMethod: 'interface=eth1',
      tunnelDetectCustomInterface: [{ nodeSelector: { rack: 'a' }, interfaceName: 'bond0' }],
      vxlan: { name: 'egress0', id: 16777215, port: 7799, disableChecksumOffload: true, enableGRO: false },
      egressIgnoreCIDR: {
        autoDetect: { podCIDR: 'calico', clusterIP: false, nodeIP: false },
        custom: ['10.6.1.0/24'],
      },
      maxNumberEndpointPerSlice: 50,
      announcedInterfacesToExclude: ['^cali.*', 'br-*'],
      gatewayFailover: { enable: false, tunnelMonitorPeriod: 2, tunnelUpdatePeriod: 3, eipEvictionTimeout: 9 },
    });
    for (const { kind, metadata } of objects) assert.equal(metadata.labels.team, 'network', `${kind} ${metadata.name}`);
    assert.equal(find('PodDisruptionBudget', 'sallyport-controller'), undefined);

    const agents = find('DaemonSet', 'sallyport-agent')?.spec;
    const agent = agents?.template?.spec.containers[0];
    assert.deepEqual(agents?.updateStrategy, { rollingUpdate: { maxUnavailable: 2 } });
    assert.equal(agents?.template?.metadata.annotations.note, 'agent');
    assert.equal(agents?.template?.spec.nodeSelector.egress, 'yes');
    assert.deepEqual(agents?.template?.spec.imagePullSecrets, [{ name: 'registry' }, { name: 'other' }]);
    assert.deepEqual([agent?.image, agent?.imagePullPolicy], ['registry.example.com/sallyport:0.1.0', 'Always']);
    assert.ok(agent?.args.includes('--health-address=:5810') && agent.args.includes('--log-level=debug'));
    assert.deepEqual(agent?.resources, {
      limits: { cpu: '500m', memory: '512Mi' },
      requests: { cpu: '100m', memory: '128Mi' },
    });

    const controllers = find('Deployment', 'sallyport-controller')?.spec;
    assert.deepEqual([controllers?.replicas, controllers?.template?.metadata.annotations.note], [3, 'controller']);
    const levels = controllers?.template?.spec.containers[0]?.args.filter((arg) => arg.startsWith('--log-level'));
    assert.deepEqual(levels, ['--log-level=error'], 'nothing is above error here');
    const operator = find('Deployment', 'sallyport-operator')?.spec?.template?.spec.containers[0];
    assert.ok(operator?.args.includes('--cluster-domain=k8s.example.com'));
    assert.ok(operator?.args.includes('--envoy-image=registry.example.com/sallyport-proxy-envoy:0.1.0'));
  });

  test('is answered with the name of every key that means nothing, and why', async () => {
    const { notes } = await rendered('-f', example);
    for (const [key, why] of Object.entries(table.ignored)) {
      assert.ok(
        notes.split('\n').some((line) => line.trim().startsWith(`${key} `) && line.endsWith(` ${why}`)),
        key,
      );
    }
    assert.match(notes, /gatewayFailover\.enable is false/);
    assert.match(notes, /agent\.resources\.limits\.cpu/);
    const few = await rendered('--set', 'feature.datapathMode=ebpf,feature.vxlan.port=7799');
    const named = Object.keys(table.ignored).filter((key) => few.notes.includes(`  ${key} `));
    assert.deepEqual(named, ['feature.datapathMode']);
    assert.doesNotMatch((await rendered()).notes, /egressgateway|limit of CPU/);
  });

  test('takes the registry of the override for images that have one already', async () => {
    const set = ['image.repository=ghcr.example.com/team/sallyport', 'global.imageRegistryOverride=mirror:5000/cache'];
    const { find } = await rendered(...set.flatMap((pair) => ['--set', pair]));
    const [container] = find('Deployment', 'sallyport-controller')?.spec?.template?.spec.containers ?? [];
    assert.equal(container?.image, 'mirror:5000/cache/team/sallyport:0.1.0');
  });

  test('is refused for keys that neither chart knows, and for values that cannot be', async () => {
    assert.match(await refused({ feature: { tunelIpv4Subnet: '10.0.0.0/8' } }), /tunelIpv4Subnet/);
    assert.match(await refused({ agent: { debug: { loglevel: 'info' } } }), /loglevel/);
    assert.match(await refused({ clean: { enable: true } }), /clean/);
    assert.match(await refused({ feature: { vxlan: { id: 'many' } } }), /\/feature\/vxlan\/id/);
    assert.match(
      await refused({ feature: { gatewayFailover: { enable: 'sometimes' } } }),
      /\/feature\/gatewayFailover\/enable/,
    );
  });

  test('installs on a real API server', async () => {
    const { code, stdout, stderr } = await helm.run('install', ...target, '--create-namespace', '-f', example);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /STATUS: deployed/);
  });
});
