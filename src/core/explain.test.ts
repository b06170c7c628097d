import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { explainPod, explainPolicy } from './explain.ts';
import { type Ip, parseIp } from './ip/index.ts';
import { plan } from './plan.ts';
import { projectPod } from './project/index.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from './testing/objects.ts';
import { viewOf } from './testing/world.ts';
import { policyKey } from './view.ts';

const ip = (text: string): Ip => {
  const parsed = parseIp(text);
  assert.ok(parsed.ok);
  return parsed.value;
};
const shop = { podSelector: { matchLabels: { app: 'shop' } } };

const cluster = (policies: Readonly<Record<string, PolicyShape>>, nodes = [nodeObject('a')]) => {
  const world = worldOf(
    nodes,
    [gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] })],
    Object.entries(policies).map(([key, shape], at) =>
      policyObject(key, { gateway: 'g', appliedTo: shop, at, ...shape }),
    ),
  );
  const status = { egressIgnoreCIDR: { podCIDR: { ipv4: ['10.244.0.0/16'] } } };
  world.clusterInfo = { metadata: { name: 'default' }, status };
  step(world);
  return viewOf(world);
};
const pod = (over: { hostNetwork?: boolean; phase?: string; podIP?: string; app?: string } = {}) =>
  projectPod({
    metadata: { name: 'web-0', namespace: 'red', labels: { app: over.app ?? 'shop' } },
    spec: { hostNetwork: over.hostNetwork ?? false },
    status: { phase: over.phase ?? 'Running', podIP: over.podIP ?? '10.244.1.7' },
  });
const sentences = (view: ReturnType<typeof cluster>, one: ReturnType<typeof pod>, to?: string): string[] =>
  explainPod(view, plan(view), one, to === undefined ? undefined : ip(to)).decisions.map(({ sentence }) => sentence);

describe('explainPod', () => {
  it('tells the whole way out', () => {
    const view = cluster({ 'red/p': {} });
    const slot = plan(view).policies[0]?.binding?.slot;
    assert.deepEqual(sentences(view, pod(), '198.51.100.7'), [
      'Pod red/web-0 is under red/p, the first one wins.',
      'red/p is about everything outside the cluster, and 198.51.100.7 is outside.',
      'Policy red/p uses gateway g.',
      'Gateway g selects 1 nodes.',
      '1 of 1 nodes of gateway g are ready.',
      `Policy red/p leaves with 10.6.1.1 through node a (slot ${slot}).`,
      `Traffic of red/p goes to node a with slot ${slot}.`,
    ]);
  });

  it('says which policy wins and why, and which are not about the destination', () => {
    const view = cluster({
      'red/p': { priority: 5 },
      'red/q': {},
      'red/r': { priority: 1, destSubnet: ['203.0.113.0/24'] },
    });
    const told = sentences(view, pod(), '198.51.100.7');
    assert.ok(told.includes('destSubnet of red/r does not have 198.51.100.7.'));
    assert.ok(told.includes('red/q comes first: priority 0 is before 5.'));
    assert.equal(explainPod(view, plan(view), pod(), ip('198.51.100.7')).policy?.key, 'red/q');
  });

  it('leaves traffic inside the cluster and exceptions alone', () => {
    const view = cluster({ 'red/p': { exceptSubnet: ['198.51.100.7'] } });
    assert.match(
      sentences(view, pod(), '10.244.9.9').join(' '),
      /10\.244\.9\.9 is inside\. No policy of Pod red\/web-0 is about 10\.244\.9\.9/,
    );
    assert.match(sentences(view, pod(), '198.51.100.7').join(' '), /exceptSubnet of red\/p has 198\.51\.100\.7/);
  });

  const others: readonly [string, ReturnType<typeof pod>, RegExp][] = [
    ['the host network', pod({ hostNetwork: true }), /uses the network of its node, so no policy is about it/],
    ['a finished pod', pod({ phase: 'Succeeded' }), /has finished/],
    ['a pod without an address', pod({ podIP: '' }), /has no address yet/],
    ['a pod under no policy', pod({ app: 'other' }), /is under no policy; its traffic is left alone/],
  ];
  for (const [name, one, says] of others) {
    it(`says so of ${name}`, () => assert.match(sentences(cluster({ 'red/p': {} }), one).join(' '), says));
  }
});

describe('explainPolicy', () => {
  const told = (view: ReturnType<typeof cluster>, key: string): string =>
    explainPolicy(view, plan(view), policyKey(...splitKey(key)))
      .decisions.map(({ reason, sentence }) => `${reason ?? ''}: ${sentence}`)
      .join('\n');
  const splitKey = (key: string): [string | undefined, string] => {
    const [first = '', second] = key.split('/');
    return second === undefined ? [undefined, first] : [first, second];
  };

  it('gives the reason of a refusal and what happens to the traffic', () => {
    const text = told(cluster({ 'red/p': { gateway: 'gone' } }), 'red/p');
    assert.match(text, /GatewayNotFound: Policy red\/p names the gateway gone/);
    assert.match(text, /Traffic of red\/p is dropped, because nothing serves it and onUnavailable is Drop/);
  });

  it('names the policies that shadow it', () => {
    const text = told(cluster({ 'red/p': {}, 'red/q': {} }), 'red/q');
    assert.match(text, /ShadowedByPolicy: Policy red\/p wins over red\/q for all of its traffic/);
  });

  it('says that traffic leaves with node IPs where the policy wants it', () => {
    assert.match(
      told(cluster({ 'red/p': { onUnavailable: 'NodeIP' } }, []), 'red/p'),
      /leaves with the address of its own node/,
    );
  });

  it('knows policies that are not there or are going', () => {
    const view = cluster({ 'red/p': { isDeleting: true } });
    assert.match(told(view, 'red/none'), /There is no policy red\/none/);
    assert.match(told(view, 'red/p'), /is being deleted/);
  });
});
