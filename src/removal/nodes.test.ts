import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DaemonSet, judgeNodes, type Node, type Pod } from './nodes.ts';

const daemonSet = (wanted: number): DaemonSet => ({
  metadata: { name: 'sallyport-agent', uid: 'new', generation: 2 },
  status: { observedGeneration: 2, desiredNumberScheduled: wanted },
});
const pod = (node: string, status: Pod['status'], uid = 'new'): Pod => ({
  metadata: {
    name: `pod-${node}`,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'sallyport-agent', uid }],
  },
  spec: node === '' ? {} : { nodeName: node },
  status: status ?? {},
});
const node = (name: string, status = 'True'): Node => ({
  metadata: { name },
  status: { conditions: [{ type: 'Ready', status }] },
});
const ready = { conditions: [{ type: 'Ready', status: 'True' }] };

test('all is done when the pod of every node is ready', () => {
  const judged = judgeNodes(daemonSet(2), [pod('b', ready), pod('a', ready)], [node('a'), node('b')]);
  assert.deepEqual(judged, { isDone: true, clean: ['a', 'b'], unreachable: [], missing: [] });
});

test('without agents there is nothing to wait for', () => {
  assert.equal(judgeNodes(undefined, [], [node('a')]).isDone, true);
});

test('a DaemonSet that nobody has looked at yet is not done, though it wants no pod', () => {
  assert.equal(judgeNodes({ metadata: { name: 'sallyport-agent', generation: 1 } }, [], []).isDone, false);
  const old: DaemonSet = { ...daemonSet(0), status: { observedGeneration: 1, desiredNumberScheduled: 0 } };
  assert.equal(judgeNodes(old, [], []).isDone, false);
});

test('pods of the agents before do not count', () => {
  const judged = judgeNodes(daemonSet(1), [pod('a', ready, 'old')], [node('a')]);
  assert.deepEqual(judged.missing, ['nodes without a pod that cleans them: 1']);
});

test('a node that is not ready is not waited for', () => {
  const judged = judgeNodes(daemonSet(2), [pod('a', ready), pod('b', {})], [node('a'), node('b', 'Unknown')]);
  assert.deepEqual(judged, { isDone: true, clean: ['a'], unreachable: ['b'], missing: [] });
});

test('a node that is not clean is named with the reason', () => {
  const failed = { name: 'clean', ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } };
  const ended = { ...failed, lastState: { terminated: { exitCode: 1 } } };
  const reasons = [
    [{ initContainerStatuses: [ended] }, 'it ended with code 1; kubectl logs pod-a --container clean says why'],
    [
      {
        initContainerStatuses: [
          { ...failed, state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } } },
        ],
      },
      'ErrImagePull, no such image',
    ],
    [{ initContainerStatuses: [{ name: 'clean', ready: false, state: {} }] }, 'it is at work'],
    [
      {
        initContainerStatuses: [{ name: 'clean', ready: true, state: { terminated: { exitCode: 0 } } }],
        containerStatuses: [{ name: 'cleaned', ready: false, state: { waiting: { reason: 'PodInitializing' } } }],
      },
      'PodInitializing',
    ],
    [{ conditions: [{ type: 'PodScheduled', status: 'False', message: 'the port is taken' }] }, 'the port is taken'],
    [{}, 'its pod has not started'],
  ] as const;
  for (const [status, why] of reasons) {
    const judged = judgeNodes(daemonSet(1), [pod('a', status)], [node('a')]);
    assert.deepEqual([judged.isDone, judged.missing], [false, [`a is not clean yet: ${why}`]]);
  }
});
