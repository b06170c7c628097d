import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploymentTrouble, podTrouble } from './pod-trouble.ts';

const pod = (status: object) => podTrouble({ metadata: { name: 'p1', namespace: 'bcs-system' }, status });
const waiting = (reason: string, message?: string, lastState?: object) =>
  pod({
    containerStatuses: [
      { name: 'proxy', image: 'example.com/proxy:1', state: { waiting: { reason, message } }, lastState },
    ],
  });

test('a pod that finds no node says why, as the scheduler does', () => {
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: "0/3 nodes are available: 3 node(s) didn't match.",
  };
  assert.deepEqual(pod({ conditions: [condition] }), {
    reason: 'PodUnschedulable',
    sentence:
      "Pod p1 finds no node: 0/3 nodes are available: 3 node(s) didn't match. Correct spec.selector or spec.resource of the BCSEgressController, or add nodes.",
  });
  assert.equal(pod({ conditions: [{ ...condition, reason: 'SchedulingGated' }] }), undefined);
});

test('an image that cannot be pulled is told with the same words while it is tried and while it is waited for', () => {
  const error = 'failed to pull image: not found';
  const tried = waiting('ErrImagePull', error);
  assert.equal(tried?.reason, 'ImageNotPulled');
  assert.match(tried.sentence, /^Pod p1 waits for the image example\.com\/proxy:1: failed to pull image: not found\. /);
  assert.deepEqual(
    waiting('ImagePullBackOff', `Back-off pulling image "example.com/proxy:1": ErrImagePull: ${error}`),
    tried,
  );
});

test('a container that cannot be started, or ends again and again, is told with the pod to look at', () => {
  const ended = { terminated: { exitCode: 2, reason: 'Error' } };
  const first = waiting('CrashLoopBackOff', 'back-off 10s restarting failed container', ended);
  assert.equal(first?.reason, 'ContainerFailing');
  assert.match(first.sentence, /^Container proxy of p1 ends with exit code 2 \(Error\) again and again\. Look/);
  assert.deepEqual(waiting('CrashLoopBackOff', 'back-off 5m0s restarting failed container', ended), first);
  assert.equal(waiting('CreateContainerConfigError', 'secret "x" not found')?.reason, 'ContainerFailing');
});

test('a pod that only takes its time has no trouble', () => {
  assert.equal(waiting('ContainerCreating'), undefined);
  assert.equal(pod({}), undefined);
});

test('a quota that keeps a Deployment from making pods is told', () => {
  const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota: small' };
  const metadata = { name: 'proxy', namespace: 'bcs-system' };
  const trouble = deploymentTrouble({ metadata, status: { conditions: [failure] } });
  assert.equal(trouble?.reason, 'WorkloadRefused');
  assert.match(trouble.sentence, /^Pods of Deployment proxy cannot be made: exceeded quota: small\. /);
  assert.equal(deploymentTrouble({ metadata }), undefined);
});
