import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingInRollout, type RolloutFacts } from './rollout.ts';

const words = 'config.yaml:3: vxlan.port is 70000: allowed is a whole number from 1 to 65535';

function facts(...objects: readonly object[]): RolloutFacts {
  return {
    objects: () => Promise.resolve(objects),
    lastWords: (pod, ofRunBefore) => Promise.resolve(pod === 'a' && ofRunBefore ? words : ''),
  };
}

function deployment(status: object, replicas = 2): object {
  return { kind: 'Deployment', metadata: { name: 'controller', generation: 3 }, spec: { replicas }, status };
}
const rolledOut = deployment({ observedGeneration: 3, replicas: 2, updatedReplicas: 2, availableReplicas: 2 });
const halfWay = deployment({ observedGeneration: 3, replicas: 3, updatedReplicas: 2, availableReplicas: 1 });
const halfWaySentence = 'deployment controller has 1 of 2 replicas';

function pod(state: object, lastState: object = {}, ready = false): object {
  return { kind: 'Pod', metadata: { name: 'a' }, status: { containerStatuses: [{ ready, state, lastState }] } };
}

function webhooks(caBundle?: string): object {
  const clientConfig = caBundle === undefined ? {} : { caBundle };
  return {
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'controller' },
    webhooks: [{ name: 'validate.sallyport.io', clientConfig }],
  };
}

const led = { kind: 'Lease', metadata: { name: 'controller' }, spec: { holderIdentity: 'a_1' } };

test('nothing is missing when all replicas are new and available, one leads and the webhooks can be called', async () => {
  assert.deepEqual(await missingInRollout(facts(rolledOut, led, pod({}, {}, true), webhooks('Q0E='))), []);
});

test('a deployment that the cluster has not looked at yet is not rolled out, whatever its old numbers say', async () => {
  const unseen = deployment({ observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2 });
  assert.deepEqual(await missingInRollout(facts(unseen)), ['deployment controller has 2 of 2 replicas']);
});

test('webhooks without a certificate authority are missing, unless nobody is there to give them one', async () => {
  const missing = await missingInRollout(facts(rolledOut, led, webhooks()));
  assert.deepEqual(missing, ['webhook validate.sallyport.io has no certificate authority']);
  const none = deployment({ observedGeneration: 3 }, 0);
  assert.deepEqual(await missingInRollout(facts(none, webhooks())), []);
});

test('replicas without a leader decide nothing', async () => {
  for (const lease of [
    [],
    [{ kind: 'Lease', metadata: { name: 'controller' }, spec: {} }],
    [{ ...led, metadata: { name: 'operator' } }],
  ]) {
    assert.deepEqual(await missingInRollout(facts(rolledOut, ...lease)), ['no replica of the controller leads']);
  }
});

test('a pod that ends again and again is explained by its code and its last words', async () => {
  const crashed = pod({ waiting: { reason: 'CrashLoopBackOff' } }, { terminated: { exitCode: 2 } });
  assert.deepEqual(await missingInRollout(facts(halfWay, crashed)), [
    `pod a ended with code 2: ${words}`,
    halfWaySentence,
  ]);
});

test('other reasons of pods: no image, no node, not ready', async () => {
  const noImage = pod({ waiting: { reason: 'ErrImagePull', message: 'no such image' } });
  const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }];
  const noNode = { kind: 'Pod', metadata: { name: 'a' }, status: { conditions } };
  const cases: readonly (readonly [object, string])[] = [
    [noImage, 'pod a waits: ErrImagePull, no such image'],
    [noNode, 'pod a has no node: 0/2 nodes are available'],
    [pod({ running: {} }), 'pod a runs but is not ready'],
  ];
  for (const [object, sentence] of cases) {
    assert.deepEqual(await missingInRollout(facts(halfWay, object)), [sentence, halfWaySentence]);
  }
});

test('a pod that is being deleted explains nothing', async () => {
  const leaving = { ...pod({}), metadata: { name: 'a', deletionTimestamp: '2026-11-15T08:00:00Z' } };
  assert.deepEqual(await missingInRollout(facts(halfWay, leaving)), [halfWaySentence]);
});

test('pods that may not be made at all are explained by the deployment', async () => {
  const conditions = [{ type: 'ReplicaFailure', status: 'True', message: 'pods "a" is forbidden' }];
  const refused = deployment({ observedGeneration: 3, conditions });
  assert.deepEqual(await missingInRollout(facts(refused)), [
    'deployment controller has 0 of 2 replicas: pods "a" is forbidden',
  ]);
});

test('a daemonset is rolled out when the pod of every node is new and available', async () => {
  const daemonset = (status: object) => ({ kind: 'DaemonSet', metadata: { name: 'agent', generation: 2 }, status });
  const all = { observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 4 };
  assert.deepEqual(await missingInRollout(facts(rolledOut, led, daemonset(all))), []);
  for (const part of [{ numberAvailable: 3 }, { updatedNumberScheduled: 3 }, { observedGeneration: 1 }]) {
    const [missing] = await missingInRollout(facts(rolledOut, led, daemonset({ ...all, ...part })));
    assert.match(missing ?? '', /^daemonset agent is available on [34] of 4 nodes$/);
  }
});
