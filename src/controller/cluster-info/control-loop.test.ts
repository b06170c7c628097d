import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { EgressClusterInfoStatus } from '../../api/egress-cluster-info.ts';
import { kinds, resourceOf } from '../../api/kinds.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import type { ControlLoop } from '../loop/control-loop.ts';
import { coreResources, type RunningControlLoop, startControlLoop } from '../testing.ts';
import { endpointSliceResource } from './api-servers.ts';
import { definitionResource, poolDefinitionName, poolResource } from './calico.ts';
import { clusterInfoLoop } from './control-loop.ts';
import { serviceCidrResource } from './service-ranges.ts';

const [nodes, , pods] = coreResources as [Resource, Resource, Resource]; // The list has these three.
const infos = resourceOf('EgressClusterInfo');

let server: TestApiServer;
let running: RunningControlLoop<ControlLoop> | undefined;
const serve = async (...resources: Resource[]): Promise<void> => {
  const ours = Object.keys(kinds) as (keyof typeof kinds)[]; // Object.keys forgets that these are the names of kinds.
  server = await startTestApiServer({ resources: [...coreResources, ...ours.map(resourceOf), ...resources] });
};
beforeEach(() => serve(definitionResource, poolResource, serviceCidrResource, endpointSliceResource));
afterEach(async () => {
  await running?.stop();
  running = undefined;
  await server.stop();
});

const start = async (feature: object = {}): Promise<RunningControlLoop<ControlLoop>> => {
  running = await startControlLoop({ access: server.access, feature, clock: fastClock(20) }, clusterInfoLoop);
  return running;
};
const put = (resource: Resource, object: KubeObject & Record<string, unknown>) => server.put(resource, object);
const putNode = (name: string, address: string, podCIDRs: readonly string[]) =>
  put(nodes, {
    metadata: { name },
    spec: { podCIDRs },
    status: { addresses: [{ type: 'InternalIP', address }], conditions: [] },
  });
const putServiceCidr = (name: string, cidrs: readonly string[]) =>
  put(serviceCidrResource, { metadata: { name }, spec: { cidrs } });
const putApiServers = (...addresses: readonly string[]) =>
  put(endpointSliceResource, {
    metadata: { namespace: 'default', name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
const putPool = (name: string, cidr: string) => put(poolResource, { metadata: { name }, spec: { cidr } });
const setSpec = (spec: object) => put(infos, { ...server.read(infos, 'default'), metadata: { name: 'default' }, spec });

// A status of ours, or none.
const status = () => server.read(infos, 'default')?.status as EgressClusterInfoStatus | undefined;
const detected = () => status()?.conditions?.find(({ type }) => type === 'Detected');
const ignored = () => status()?.egressIgnoreCIDR;

describe('clusterInfoPart', () => {
  it('makes the object from the configuration, and says what it found where', async () => {
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    putServiceCidr('kubernetes', ['10.96.0.0/12', 'fd96::/108']);
    putApiServers('10.9.0.1');
    await start({
      egressIgnoreCIDR: { autoDetect: { podCIDR: '', clusterIP: true, nodeIP: true }, custom: ['192.168.0.0/16'] },
    });
    await eventually('the status', () => status() !== undefined);
    assert.deepEqual(server.read(infos, 'default')?.spec, {
      autoDetect: { podCidrMode: 'k8s', clusterIP: true, nodeIP: true },
    });
    assert.deepEqual(ignored(), {
      clusterIP: { ipv4: ['10.96.0.0/12'], ipv6: ['fd96::/108'] },
      nodeIP: { ipv4: ['10.0.0.1'], ipv6: [] },
      apiServer: { ipv4: ['10.9.0.1'], ipv6: [] },
      podCIDR: { ipv4: ['10.244.0.0/24'], ipv6: [] },
      custom: { ipv4: ['192.168.0.0/16'], ipv6: [] },
    });
    assert.deepEqual(
      [status()?.observedGeneration, detected()?.status, detected()?.reason],
      [1, 'True', 'RangesDetected'],
    );
    assert.equal(
      detected()?.message,
      'Pod ranges: of one node. Service ranges: from the ServiceCIDR API. Node addresses: of one node. API server: 10.9.0.1.',
    );
  });

  it('makes the object again when it is deleted, and leaves a spec that is there alone', async () => {
    put(infos, {
      metadata: { name: 'default' },
      spec: { autoDetect: { podCidrMode: '', clusterIP: false, nodeIP: false } },
    });
    await start();
    await eventually('the status', () => detected()?.message === 'Nothing is to be detected.');
    server.delete(infos, 'default');
    await eventually('a new one with a status', () => status()?.podCidrMode === 'k8s');
  });

  it('follows nodes, and writes nothing when nothing has changed', async () => {
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    const { writes } = await start();
    await eventually('the first node', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1');
    await eventually('one write to make it, one for its status', () => writes(infos.plural) === 2);
    putNode('b', '10.0.0.2', ['10.244.1.0/24']);
    await eventually('the second node', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1,10.0.0.2');
    assert.deepEqual(ignored()?.podCIDR?.ipv4, ['10.244.0.0/23']);
    putNode('b', '10.0.0.3', ['10.244.1.0/24']);
    await eventually('its new address', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1,10.0.0.3');
    server.delete(nodes, 'b');
    await eventually('one node', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1');
    assert.deepEqual(Object.keys(status()?.nodeIP ?? {}), ['a']);
    await eventually('one write for each change', () => writes(infos.plural) === 5);
    await running?.stop();
    const again = await start();
    put(nodes, { ...server.read(nodes, 'a'), metadata: { name: 'a', labels: { egress: 'true' } } });
    putServiceCidr('more', ['10.200.0.0/16']);
    await eventually('the new range', () => ignored()?.clusterIP?.ipv4?.includes('10.200.0.0/16') === true);
    await eventually('one write: no label is a range, and no restart a change', () => again.writes() === 1);
  });

  it('clears a source that is turned off, and fills it again', async () => {
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    await start();
    await eventually('the status', () => ignored()?.clusterIP?.ipv4?.length === 1);
    const off = { podCidrMode: 'k8s', clusterIP: false, nodeIP: true };
    setSpec({ autoDetect: off });
    await eventually('clusterIP is clear', () => ignored()?.clusterIP?.ipv4?.length === 0);
    assert.deepEqual(status()?.clusterIP, { ipv4: [], ipv6: [] });
    setSpec({ autoDetect: { ...off, nodeIP: false } });
    await eventually('nodeIP is clear', () => ignored()?.nodeIP?.ipv4?.length === 0);
    assert.equal(status()?.nodeIP, undefined);
    setSpec({ autoDetect: { ...off, podCidrMode: '' } });
    await eventually('podCIDR is clear', () => ignored()?.podCIDR?.ipv4?.length === 0);
    setSpec({ autoDetect: { podCidrMode: 'k8s', clusterIP: true, nodeIP: true }, extraCidr: ['172.16.0.1'] });
    await eventually('all is back', () => ignored()?.custom?.ipv4?.join() === '172.16.0.1');
    assert.deepEqual(
      [ignored()?.clusterIP?.ipv4, ignored()?.nodeIP?.ipv4, ignored()?.podCIDR?.ipv4],
      [['10.96.0.0/12'], ['10.0.0.1'], ['10.244.0.0/24']],
    );
  });

  it('follows the configuration file', async () => {
    const { configure } = await start();
    await eventually('the status', () => ignored() !== undefined);
    configure({ egressIgnoreCIDR: { custom: ['192.168.0.0/16'] } });
    await eventually('the custom range', () => ignored()?.custom?.ipv4?.join() === '192.168.0.0/16');
  });

  it('lets the spec follow autoDetect of the configuration, not only when it makes the object', async () => {
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    const { configure } = await start();
    await eventually('the nodes', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1');
    configure({ egressIgnoreCIDR: { autoDetect: { nodeIP: false } } });
    await eventually('no nodes', () => ignored()?.nodeIP === undefined || ignored()?.nodeIP?.ipv4?.length === 0);
  });

  it('finds Calico when it is installed late, follows its pools, and forgets them when it goes', async () => {
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    await start({ egressIgnoreCIDR: { autoDetect: { podCIDR: 'auto' } } });
    await eventually('the nodes first', () => ignored()?.podCIDR?.ipv4?.join() === '10.244.0.0/24');
    putPool('default', '10.10.0.0/16');
    put(definitionResource, { metadata: { name: 'others.example.com' } });
    put(definitionResource, { metadata: { name: poolDefinitionName } });
    await eventually('the pool', () => ignored()?.podCIDR?.ipv4?.join() === '10.10.0.0/16');
    assert.match(detected()?.message ?? '', /^Pod ranges: of one IPPool of Calico\./);
    putPool('second', '10.20.0.0/16');
    await eventually('two pools', () => Object.keys(status()?.podCIDR ?? {}).join() === 'default,second');
    server.delete(poolResource, 'default');
    await eventually('the second', () => Object.keys(status()?.podCIDR ?? {}).join() === 'second');
    server.delete(definitionResource, poolDefinitionName);
    await eventually('the nodes again', () => status()?.podCidrMode === 'k8s');
    // Ten caches, definitions, ServiceCIDRs and the endpoints of the API servers.
    await eventually('the watch of the pools is closed', () => server.openWatches === 13);
  });

  it('does not lose its work to one entry that cannot be read, and names it', async () => {
    putNode('a', '10.0.0.1', []);
    const autoDetect = { podCidrMode: '', clusterIP: false, nodeIP: true };
    put(infos, { metadata: { name: 'default' }, spec: { autoDetect, extraCidr: ['office', '172.16.0.1'] } });
    await start();
    await eventually('the rest', () => ignored()?.custom?.ipv4?.join() === '172.16.0.1');
    assert.match(
      detected()?.message ?? '',
      /^Left out: extraCidr\[0\] is "office": .*\. Node addresses: of one node\.$/,
    );
  });

  it('takes nothing away while a source has not answered', async () => {
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    await start();
    await eventually('the status', () => ignored()?.clusterIP?.ipv4?.length === 1);
    await running?.stop();
    putNode('b', '10.0.0.2', ['10.244.1.0/24']);
    server.faults.add({ verb: 'watch', plural: serviceCidrResource.plural }, { kind: 'answer', status: 500 }, 3);
    const { writes } = await start();
    await eventually('the new node', () => ignored()?.nodeIP?.ipv4?.length === 2);
    await eventually('one write', () => writes() === 1);
    assert.deepEqual(ignored()?.clusterIP?.ipv4, ['10.96.0.0/12']);
  });

  it('says when it may not read a source', async () => {
    server.faults.add({ verb: 'watch', plural: serviceCidrResource.plural }, { kind: 'answer', status: 403 }, 1_000);
    await start();
    await eventually('the condition', () => detected()?.reason === 'ServiceCidrNotFound');
    assert.match(detected()?.message ?? '', /the ServiceCIDR API \(reading is forbidden\), flags of the control plane/);
    server.faults.clear();
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    await eventually('the ranges, once it may', () => ignored()?.clusterIP?.ipv4?.join() === '10.96.0.0/12');
  });

  it('says what it did not find', async () => {
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    await start({ egressIgnoreCIDR: { autoDetect: { podCIDR: 'calico' } } });
    await eventually('the condition', () => detected()?.reason === 'CalicoNotFound');
    const since = detected()?.lastTransitionTime;
    assert.equal(detected()?.status, 'False');
    setSpec({ autoDetect: { podCidrMode: 'k8s', clusterIP: true, nodeIP: true } });
    await eventually('another reason', () => detected()?.reason === 'PodCidrNotFound');
    assert.deepEqual([detected()?.lastTransitionTime, detected()?.observedGeneration], [since, 2]);
  });

  it('follows the API servers, and keeps the last ones while the only one has taken itself out', async () => {
    put(endpointSliceResource, {
      metadata: { namespace: 'default', name: 'other', labels: { 'kubernetes.io/service-name': 'other' } },
      endpoints: [{ addresses: ['10.8.8.8'] }],
    });
    putApiServers('10.9.0.1', '10.9.0.2');
    await start();
    await eventually('two', () => ignored()?.apiServer?.ipv4?.join() === '10.9.0.1,10.9.0.2');
    putApiServers('10.9.0.2');
    await eventually('one', () => ignored()?.apiServer?.ipv4?.join() === '10.9.0.2');
    putApiServers();
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    await eventually('another look', () => ignored()?.nodeIP?.ipv4?.length === 1);
    assert.deepEqual(ignored()?.apiServer?.ipv4, ['10.9.0.2']);
  });

  it('removes entries that somebody else has written into the status', async () => {
    putServiceCidr('kubernetes', ['10.96.0.0/12']);
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    const foreign = { ipv4: ['10.9.9.9'], ipv6: [] };
    put(infos, {
      metadata: { name: 'default' },
      spec: {},
      status: { nodeIP: { gone: foreign }, egressIgnoreCIDR: { nodeIP: foreign } },
    });
    await start();
    await eventually('our own', () => ignored()?.nodeIP?.ipv4?.join() === '10.0.0.1');
    await eventually('nothing but our own', () => Object.keys(status()?.nodeIP ?? {}).join() === 'a');
  });
});

describe('clusterInfoPart without the ServiceCIDR API and without definitions', () => {
  beforeEach(async () => {
    await server.stop();
    await serve();
  });
  const controlPlanePod = (labels: Record<string, string>, command: readonly string[]) =>
    put(pods, {
      metadata: { namespace: 'kube-system', name: 'control-plane', labels },
      spec: { containers: [{ command }] },
    });

  it('reads the flags of the control plane, and says so', async () => {
    controlPlanePod({ component: 'kube-apiserver' }, ['kube-apiserver', '--service-cluster-ip-range=10.97.0.0/16']);
    await start();
    await eventually('the flag', () => ignored()?.clusterIP?.ipv4?.join() === '10.97.0.0/16');
    assert.match(detected()?.message ?? '', /from flags of the control plane \(component=kube-apiserver\)/);
    server.delete(pods, 'kube-system/control-plane');
    putNode('a', '10.0.0.1', ['10.244.0.0/24']);
    await eventually('another look', () => ignored()?.nodeIP?.ipv4?.length === 1);
    assert.deepEqual(ignored()?.clusterIP?.ipv4, ['10.97.0.0/16'], 'a control plane that restarts takes nothing away');
  });

  it('says where it looked in vain, and finds later what appears later', async () => {
    await start();
    await eventually('the condition', () => detected()?.reason === 'ServiceCidrNotFound');
    assert.match(
      detected()?.message ?? '',
      /looked at: the ServiceCIDR API \(not served\), flags of the control plane\)/,
    );
    controlPlanePod({ 'k8s-app': 'kube-controller-manager' }, ['x', '--service-cluster-ip-range', '10.97.0.0/16']);
    await eventually('the flag', () => ignored()?.clusterIP?.ipv4?.join() === '10.97.0.0/16');
  });
});
