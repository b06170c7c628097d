import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKubeClient } from '../runtime/kube/http-client.ts';
import { systemClock } from '../runtime/process/clock.ts';
import { startTestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { fastClock } from '../runtime/testing/fast-clock.ts';
import { awaitClean, daemonSets, nodes, pods } from './main.ts';
import type { DaemonSet, Node, Pod } from './nodes.ts';

/** A cluster of two nodes whose DaemonSet has been seen; node-a is clean. */
const openCluster = async () => {
  const stack = new AsyncDisposableStack();
  const server = stack.adopt(await startTestApiServer({ resources: [daemonSets, pods, nodes] }), (it) => it.stop());
  const client = createKubeClient({
    access: server.access,
    userAgent: 'test',
    clock: systemClock,
    random: Math.random,
  });
  stack.adopt(client, (it) => it.close());
  const wanted: DaemonSet = {
    metadata: { namespace: 'sallyport', name: 'sallyport-agent' },
    status: { observedGeneration: 1, desiredNumberScheduled: 2 },
  };
  const { metadata } = server.put(daemonSets, wanted);
  const ready = (isReady: boolean) => ({ conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] });
  const put = (node: string, isClean: boolean) => {
    const machine: Node = { metadata: { name: node }, status: ready(true) };
    server.put(nodes, machine);
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'sallyport-agent', uid: metadata.uid ?? '' };
    const pod: Pod = {
      metadata: { namespace: 'sallyport', name: `pod-${node}`, ownerReferences: [owner] },
      spec: { nodeName: node },
      status: ready(isClean),
    };
    server.put(pods, pod);
  };
  put('node-a', true);
  put('node-b', false);
  const lines: string[] = [];
  const run = (limit: number) =>
    awaitClean({
      namespace: 'sallyport',
      daemonset: 'sallyport-agent',
      limit,
      client,
      clock: fastClock(100),
      print: (line) => lines.push(line),
    });
  return { server, put, lines, run, [Symbol.asyncDispose]: () => stack.disposeAsync() };
};

test('it ends well when the last node is clean, and has said what it waited for, once', async () => {
  await using cluster = await openCluster();
  const ended = cluster.run(3600);
  await eventually('it waits', () => cluster.lines.length > 0);
  cluster.put('node-b', true);
  assert.equal(await ended, 0);
  assert.deepEqual(cluster.lines, [
    'nodes that are clean: 1\nnode-b is not clean yet: its pod has not started',
    'nodes that are clean: 2',
  ]);
});

test('it gives up after its limit with another exit code and the names of the nodes', async () => {
  await using cluster = await openCluster();
  assert.equal(await cluster.run(2), 1);
  assert.match(cluster.lines.join('\n'), /node-b is not clean yet.*\n.*gave up after 2 s/);
});

test('an API server that is away for a moment is waited for', async () => {
  await using cluster = await openCluster();
  cluster.put('node-b', true);
  for (let times = 0; times < 4; times += 1)
    cluster.server.faults.add({ verb: 'list' }, { kind: 'answer', status: 500 });
  assert.equal(await cluster.run(3600), 0);
});
