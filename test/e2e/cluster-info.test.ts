/**
 * EgressClusterInfo on a real API server, which has ServiceCIDRs of its own and merges statuses by field manager. Nodes
 * are plain objects; Calico is its IPPool kind, installed by the test while the controller already runs.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EgressClusterInfoStatus } from '../../src/api/egress-cluster-info.ts';
import { resourceOf } from '../../src/api/kinds.ts';
import { definitionResource, poolDefinitionName, poolResource } from '../../src/controller/cluster-info/calico.ts';
import { clusterInfoLoop } from '../../src/controller/cluster-info/control-loop.ts';
import { serviceCidrResource } from '../../src/controller/cluster-info/service-ranges.ts';
import type { ControlLoop } from '../../src/controller/loop/control-loop.ts';
import { type RunningControlLoop, startControlLoop } from '../../src/controller/testing.ts';
import { loadAccess } from '../../src/runtime/kube/load-access.ts';
import type { KubeObject, Resource } from '../../src/runtime/kube/resource.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { conditionOf, nodes, World } from './controller-world.ts';
import { tellOfProcesses } from './witness.ts';

const infos = resourceOf('EgressClusterInfo');
const fieldManager = 'e2e';
const limitMs = 30_000;

let world: World;
let running: RunningControlLoop<ControlLoop>;
const start = async (): Promise<void> => {
  const feature = { egressIgnoreCIDR: { autoDetect: { podCIDR: 'auto' }, custom: ['198.51.100.0/24'] } };
  running = await startControlLoop(
    { access: await loadAccess({ path: world.plane.kubeconfig }), feature },
    clusterInfoLoop,
  );
};
tellOfProcesses(() => world?.started ?? []);
before(async () => {
  world = await World.start();
  await makeNode('node-1', '10.244.0.0/24');
  await makeNode('node-2', '10.244.1.0/24');
  await start();
});
after(async () => {
  await running?.stop();
  await world?.stop();
});

/** Makes a node; a node keeps its first pod range for good. */
async function makeNode(name: string, podCIDR: string): Promise<void> {
  const object: KubeObject & { readonly spec: object } = { metadata: { name }, spec: { podCIDR, podCIDRs: [podCIDR] } };
  await world.client.apply(nodes, object, { fieldManager: 'e2e-ranges' });
  await world.node(name);
}

const apply = (resource: Resource, name: string, spec: object) =>
  world.client.apply(resource, { metadata: { name }, ...{ spec } }, { fieldManager });
const autoDetect = { podCidrMode: 'auto', clusterIP: true, nodeIP: true };
const setSpec = (change: object, extraCidr: readonly string[] = []) =>
  apply(infos, 'default', { autoDetect: { ...autoDetect, ...change }, extraCidr });

const status = async (): Promise<EgressClusterInfoStatus> => {
  const info = await world.get('EgressClusterInfo', 'default');
  return EgressClusterInfoStatus.parse(info?.status ?? {});
};
const untilStatus = (what: string, holds: (now: EgressClusterInfoStatus) => boolean): Promise<void> =>
  eventually(what, async () => holds(await status()), limitMs);
const ofFamily4 = (lists: { readonly ipv4?: readonly string[] | undefined } | undefined): string =>
  (lists?.ipv4 ?? []).join();

test('I00001 the status is the cluster: Services from the ServiceCIDR API, pods and nodes from the Nodes', async () => {
  await untilStatus('all is detected', (now) => conditionOf(now, 'Detected')?.status === 'True');
  const now = await status();
  const api = await world.client.get<KubeObject & { spec: { cidrs: string[] } }>(serviceCidrResource, {
    name: 'kubernetes',
  });
  const [ipv4 = '', ipv6 = ''] = api?.spec.cidrs ?? [];
  assert.deepEqual(now.egressIgnoreCIDR, {
    clusterIP: { ipv4: [ipv4], ipv6: [ipv6] },
    nodeIP: { ipv4: ['192.0.2.1', '192.0.2.2'], ipv6: [] },
    // This API server is on the loopback address, which is no endpoint; test/e2e/egress-coexistence.test.ts has one that is.
    apiServer: { ipv4: [], ipv6: [] },
    podCIDR: { ipv4: ['10.244.0.0/23'], ipv6: [] },
    custom: { ipv4: ['198.51.100.0/24'], ipv6: [] },
  });
  assert.deepEqual([now.podCidrMode, Object.keys(now.nodeIP ?? {})], ['k8s', ['node-1', 'node-2']]);
  assert.equal(
    conditionOf(now, 'Detected')?.message,
    'IPPools of Calico: not installed. Pod ranges: of 2 nodes. Service ranges: from the ServiceCIDR API. Node addresses: of 2 nodes.',
  );
});

test('a new Service range, a new node and a node that goes are followed', async () => {
  await apply(serviceCidrResource, 'more', { cidrs: ['10.200.0.0/16'] });
  await untilStatus('the range', ({ egressIgnoreCIDR }) =>
    ofFamily4(egressIgnoreCIDR?.clusterIP).includes('10.200.0.0/16'),
  );
  await makeNode('node-3', '10.244.2.0/24');
  await untilStatus('the node', ({ podCIDR }) => ofFamily4(podCIDR?.['node-3']) === '10.244.2.0/24');
  await world.client.delete(nodes, { name: 'node-3' });
  await untilStatus('the node is gone', ({ nodeIP, podCIDR }) => {
    return !('node-3' in (nodeIP ?? {})) && !('node-3' in (podCIDR ?? {}));
  });
});

test('I00002 clusterIP off, I00003 nodeIP off: what is turned off is cleared', async () => {
  await setSpec({ clusterIP: false });
  await untilStatus('no Service range', ({ clusterIP, egressIgnoreCIDR }) => {
    return ofFamily4(clusterIP) === '' && ofFamily4(egressIgnoreCIDR?.clusterIP) === '';
  });
  await setSpec({ clusterIP: false, nodeIP: false });
  await untilStatus('no node', ({ nodeIP, egressIgnoreCIDR }) => {
    return Object.keys(nodeIP ?? {}).length === 0 && ofFamily4(egressIgnoreCIDR?.nodeIP) === '';
  });
  await setSpec({});
  await untilStatus('all is back', ({ nodeIP, clusterIP }) => {
    return Object.keys(nodeIP ?? {}).length === 2 && ofFamily4(clusterIP) !== '';
  });
});

test('I00005 extraCidr: addresses, ranges and CIDRs count as part of the cluster', async () => {
  await setSpec({}, ['203.0.113.7', '203.0.113.64/26', '203.0.113.16-203.0.113.31']);
  await untilStatus('they are in the merged set', ({ egressIgnoreCIDR }) => {
    return ofFamily4(egressIgnoreCIDR?.custom) === '198.51.100.0/24,203.0.113.7,203.0.113.16/28,203.0.113.64/26';
  });
  assert.deepEqual((await status()).extraCidr, ['203.0.113.7', '203.0.113.64/26', '203.0.113.16-203.0.113.31']);
});

test('I00006, I00004 Calico is installed late, its pools are followed, podCidrMode is changed, Calico goes', async () => {
  await world.client.apply(definitionResource, ippoolDefinition, { fieldManager });
  await eventually('IPPools are served', async () => {
    return (await apply(poolResource, 'default', { cidr: '10.10.0.0/16' }).catch(() => undefined)) !== undefined;
  });
  await untilStatus('the pool', (now) => now.podCidrMode === 'calico' && ofFamily4(now.podCIDR?.default) !== '');
  assert.equal(ofFamily4((await status()).egressIgnoreCIDR?.podCIDR), '10.10.0.0/16');
  await apply(poolResource, 'second', { cidr: 'fd10::/64' });
  await untilStatus('the second pool', ({ podCIDR }) => podCIDR?.second?.ipv6?.join() === 'fd10::/64');
  await world.client.delete(poolResource, { name: 'second' });
  await untilStatus('it is gone', ({ podCIDR }) => Object.keys(podCIDR ?? {}).join() === 'default');
  await setSpec({ podCidrMode: 'k8s' });
  await untilStatus('the nodes', (now) => now.podCidrMode === 'k8s' && 'node-1' in (now.podCIDR ?? {}));
  await setSpec({ podCidrMode: 'calico' });
  await untilStatus('the pool again', (now) => Object.keys(now.podCIDR ?? {}).join() === 'default');
  await world.client.delete(definitionResource, { name: poolDefinitionName });
  await untilStatus('Calico is missed', (now) => conditionOf(now, 'Detected')?.reason === 'CalicoNotFound');
  assert.deepEqual((await status()).egressIgnoreCIDR?.podCIDR, { ipv4: [], ipv6: [] });
  await world.client.apply(definitionResource, ippoolDefinition, { fieldManager });
  await eventually('IPPools are served again', async () => {
    return (await apply(poolResource, 'third', { cidr: '10.30.0.0/16' }).catch(() => undefined)) !== undefined;
  });
  await untilStatus('the third pool', ({ podCIDR }) => ofFamily4(podCIDR?.third) === '10.30.0.0/16');
  await setSpec({ podCidrMode: 'k8s' });
});

test('entries that another program has written into the status go', async () => {
  const foreign = { ipv4: ['10.9.9.9'], ipv6: [] };
  const object = { metadata: { name: 'default' }, status: { nodeIP: { intruder: foreign } } };
  await world.client.applyStatus(infos, object, { fieldManager: 'somebody-else' });
  await untilStatus('the nodes only', ({ nodeIP }) => Object.keys(nodeIP ?? {}).join() === 'node-1,node-2');
});

test('I00007 a deleted EgressClusterInfo comes back, filled from the configuration', async () => {
  await world.client.delete(infos, { name: 'default' });
  await untilStatus('it is back', (now) => conditionOf(now, 'Detected')?.status === 'True');
  const info = await world.get('EgressClusterInfo', 'default');
  assert.deepEqual(info?.spec.autoDetect, autoDetect);
});

test('the spec follows the configuration until somebody writes it', async () => {
  const podCidrMode = async () => (await world.get('EgressClusterInfo', 'default'))?.spec?.autoDetect?.podCidrMode;
  running.configure({ egressIgnoreCIDR: { autoDetect: { podCIDR: 'k8s' } } });
  await eventually('the configuration is followed', async () => (await podCidrMode()) === 'k8s', limitMs);
  await setSpec({ podCidrMode: 'calico' });
  running.configure({ egressIgnoreCIDR: { autoDetect: { podCIDR: 'auto' }, custom: ['198.51.100.0/24'] } });
  await untilStatus('the configuration is in force', ({ egressIgnoreCIDR: now }) => ofFamily4(now?.custom) !== '');
  assert.equal(await podCidrMode(), 'calico');
  await setSpec({});
  const generation = (await world.get('EgressClusterInfo', 'default'))?.metadata.generation;
  await untilStatus('the spec is in force', (now) => now.observedGeneration === generation);
});

test('a restart changes nothing, and neither does a node that only gets a label', async () => {
  await running.stop();
  const version = async () => (await world.client.get(infos, { name: 'default' }))?.metadata.resourceVersion;
  const before = await version();
  await start();
  await world.node('node-1', { labels: { egress: 'no' } });
  await makeNode('node-4', '10.244.4.0/24');
  await untilStatus('the new node', ({ nodeIP }) => 'node-4' in (nodeIP ?? {}));
  await eventually('one write, for node-4 alone', () => running.writes() === 1);
  assert.notEqual(await version(), before);
});

test('the API server goes and comes back: what is known stays, what is new is found', async () => {
  await world.plane.kill('kube-apiserver');
  await world.plane.start('kube-apiserver');
  assert.ok('node-4' in ((await status()).nodeIP ?? {}));
  await world.client.delete(nodes, { name: 'node-4' });
  await untilStatus('the node is gone', ({ nodeIP }) => !('node-4' in (nodeIP ?? {})));
});

/** As much of Calico's own definition as matters here. */
const ippoolDefinition: KubeObject & { readonly spec: object } = {
  metadata: { name: poolDefinitionName },
  spec: {
    group: poolResource.group,
    names: { kind: poolResource.kind, listKind: 'IPPoolList', plural: poolResource.plural, singular: 'ippool' },
    scope: 'Cluster',
    versions: [
      {
        name: poolResource.version,
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { cidr: { type: 'string' } }, required: ['cidr'] } },
          },
        },
      },
    ],
  },
};
