import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { createKubeClient } from '../../runtime/kube/http-client.ts';
import { coreResource, type KubeObject, type Resource } from '../../runtime/kube/resource.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type AgentCaches, allOf, createAgentCaches, missingOf } from './caches.ts';
import { type ClusterInputReader, createClusterInputReader } from './gather.ts';

const pods = coreResource('pods', 'Pod', true);
const nodes = coreResource('nodes', 'Node', false);
const namespaces = coreResource('namespaces', 'Namespace', false);
const tunnels = resourceOf('EgressTunnel');
const policies = resourceOf('EgressPolicy');
const infos = resourceOf('EgressClusterInfo');

describe('Gathering', () => {
  let server: TestApiServer;
  let client: KubeClient;
  let caches: AgentCaches;
  let gathering: ClusterInputReader;
  let changes = 0;
  let waiting = 0;
  const stop = new AbortController();
  const put = (resource: Resource, object: object) => server.put(resource, object as KubeObject);
  const putPod = (name: string, nodeName: string) =>
    put(pods, { metadata: { namespace: 'shop', name }, spec: { nodeName }, status: {} });
  /** Resolves when a cache has seen the version of an object. */
  const seen = (cache: keyof AgentCaches, { metadata }: KubeObject) =>
    eventually('it is seen', () => caches[cache].version === metadata.resourceVersion);

  before(async () => {
    const ours = Object.keys(kinds).filter(isKindName).map(resourceOf);
    server = await startTestApiServer({ resources: [pods, nodes, namespaces, ...ours] });
    put(nodes, { metadata: { name: 'a', labels: { rack: '1' } } });
    put(nodes, { metadata: { name: 'b', labels: { rack: '2' } } });
    put(infos, { metadata: { name: 'default' } });
    putPod('own', 'a');
    putPod('other', 'b');
    put(tunnels, { metadata: { name: 'b' }, status: { phase: 'Ready' } });
    put(policies, { metadata: { namespace: 'shop', name: 'web' }, spec: {} });
    put(resourceOf('EgressClusterPolicy'), { metadata: { name: 'all' }, spec: {} });
    const random = Math.random;
    client = createKubeClient({ access: server.access, userAgent: 'test', clock: systemClock, random });
    caches = createAgentCaches({ node: 'a', client, clock: systemClock, random, onProblem: () => {} });
    const onChange = (canWait: boolean): void => {
      changes += 1;
      if (canWait) waiting += 1;
    };
    gathering = createClusterInputReader(caches, onChange, 'a');
    for (const [, cache] of allOf(caches)) void cache.run(stop.signal);
    await eventually('the caches are filled', () => missingOf(caches).length === 0);
  });
  after(async () => {
    stop.abort();
    await client.close();
    await server.stop();
  });

  it('knows the pods of its own node only, all policies, and its own labels', () => {
    const gathered = gathering.gather();
    assert.deepEqual(
      gathered.pods.map(({ name }) => name),
      ['own'],
    );
    assert.deepEqual(
      gathered.policies.map(({ key }) => key),
      ['shop/web', 'all'],
    );
    assert.deepEqual(gathering.labels(), { rack: '1' });
  });

  it('does not take a cluster whose ranges nobody has detected yet for one without ranges', async () => {
    assert.equal(gathering.gather().ranges, undefined);
    const info = put(infos, { metadata: { name: 'default' }, status: { egressIgnoreCIDR: {} } });
    await seen('clusterInfos', info);
    assert.notEqual(gathering.gather().ranges, undefined);
  });

  it('goes on with the ranges it knew when somebody takes the status away', async () => {
    const { ranges } = gathering.gather();
    await seen('clusterInfos', put(infos, { metadata: { name: 'default' } }));
    assert.equal(gathering.gather().ranges, ranges);
  });

  it('keeps every list the same value until something in it changes', async () => {
    const before = gathering.gather();
    putPod('second', 'a');
    await eventually('the pod is known', () => gathering.gather().pods.length === 2);
    const { pods: newPods, ...rest } = gathering.gather();
    assert.notEqual(newPods, before.pods);
    for (const name of ['ranges', 'tunnels', 'policies', 'namespaces'] as const) assert.equal(rest[name], before[name]);
  });

  it('does not take a heartbeat or a new condition for a change, but knows their versions', async () => {
    const [before, changesBefore] = [gathering.gather(), changes];
    const lastHeartbeatTime = '2026-01-01T00:00:00Z';
    await seen('tunnels', put(tunnels, { metadata: { name: 'b' }, status: { phase: 'Ready', lastHeartbeatTime } }));
    const policy = put(policies, {
      metadata: { namespace: 'shop', name: 'web' },
      spec: {},
      status: { matchedPods: 3 },
    });
    await seen('policies', policy);
    assert.deepEqual([gathering.gather().policies, changes], [before.policies, changesBefore]);
    assert.equal(gathering.gather().tunnels, before.tunnels);
    assert.equal(gathering.revisions().policies, policy.metadata.resourceVersion);
    server.compact();
    server.breakWatches('gone');
    await eventually('the cache is read anew', () => caches.policies.stats().relists > 0);
    assert.ok(Number(gathering.revisions().policies) >= Number(policy.metadata.resourceVersion));
  });

  it('says that a new policy can wait for the answer of the controller, and nothing else', async () => {
    const metadata = { namespace: 'shop', name: 'young' };
    const before = waiting;
    await seen('policies', put(policies, { metadata, spec: {} }));
    assert.equal(waiting, before + 1);
    const status = { eip: { ipv4: '10.6.1.1' }, node: 'b', slot: 7 };
    await seen('policies', put(policies, { metadata, spec: {}, status }));
    server.delete(policies, 'shop/young');
    await eventually('it is gone', () => !gathering.gather().policies.some(({ name }) => name === 'young'));
    await seen('policies', put(policies, { metadata, spec: {}, status }));
    assert.equal(waiting, before + 1);
  });
});
