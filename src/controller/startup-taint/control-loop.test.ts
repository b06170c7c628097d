import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import { taints } from '../../api/names.ts';
import { coreResource, type KubeObject } from '../../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { coreResources, startControlLoop } from '../testing.ts';
import { startupTaintLoop } from './control-loop.ts';

const nodes = coreResource('nodes', 'Node', false);
const tunnels = resourceOf('EgressTunnel');
const resources = [...coreResources, ...Object.keys(kinds).filter(isKindName).map(resourceOf)];
const ours = (effect: string) => ({ key: taints.startup, effect });
// The server says when a node was made: now.
const [earlier, later, muchLater] = ['2001-01-01T00:00:00Z', '2101-01-01T00:00:00Z', '2101-01-01T00:00:01Z'];
const other = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

let server: TestApiServer;
before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server?.stop());
beforeEach(() => {
  for (const resource of [nodes, tunnels]) {
    for (const { metadata } of server.list(resource)) server.delete(resource, metadata.name);
  }
});

const putNode = (name: string, some: readonly object[]): void =>
  void server.put(nodes, {
    metadata: { name },
    spec: { taints: some },
  } as unknown as KubeObject);
const putTunnel = (name: string, phase: string, lastHeartbeatTime: string): void =>
  void server.put(tunnels, { metadata: { name }, status: { phase, lastHeartbeatTime } } as unknown as KubeObject);
const taintsOf = (name: string): unknown[] => Object(server.read(nodes, name)).spec.taints;

const withPart = async (work: (writes: () => number) => Promise<void>): Promise<void> => {
  const running = await startControlLoop({ access: server.access }, startupTaintLoop);
  try {
    await work(running.writes);
  } finally {
    await running.stop();
  }
};

describe('startupTaintPart', () => {
  it('takes the taint off when the agent is ready, of every effect, and leaves other taints alone', async () => {
    putNode('a', [ours('NoSchedule'), other, ours('NoExecute')]);
    await withPart(async (writes) => {
      putTunnel('a', 'Init', later);
      putNode('b', [ours('NoSchedule')]);
      putTunnel('b', 'Ready', later);
      await eventually('b has none', () => taintsOf('b').length === 0);
      assert.equal(taintsOf('a').length, 3, 'its agent is not ready');
      putTunnel('a', 'Ready', muchLater);
      await eventually('a has the other one', () => taintsOf('a').length === 1);
      assert.deepEqual(taintsOf('a'), [other]);
      await eventually('two writes', () => writes() === 2);
    });
    await withPart(async (writes) => assert.equal(writes(), 0, 'and a restart writes nothing'));
  });

  it('does not take the report of a node before for that of one that has its name', async () => {
    putTunnel('a', 'Ready', earlier);
    putNode('a', [ours('NoSchedule')]);
    putNode('b', [ours('NoSchedule')]);
    await withPart(async () => {
      putTunnel('b', 'Ready', later);
      await eventually('b has none', () => taintsOf('b').length === 0);
      assert.equal(taintsOf('a').length, 1);
      putTunnel('a', 'Ready', later);
      await eventually('a has none', () => taintsOf('a').length === 0);
    });
  });
});
