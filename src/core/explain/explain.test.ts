import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { policyKey } from '../cluster/view.ts';
import { plan } from '../plan/plan.ts';
import { projectClusterInfo, projectPod } from '../project/index.ts';
import { ip } from '../testing/address.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';
import { explainPod, explainPolicy } from './explain.ts';

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
interface PodShape {
  readonly hostNetwork?: boolean;
  readonly phase?: string;
  readonly podIPs?: readonly string[];
  readonly app?: string;
  readonly node?: string;
}
const pod = ({
  hostNetwork = false,
  phase = 'Running',
  podIPs = ['10.244.1.7'],
  app = 'shop',
  node = 'a',
}: PodShape = {}) =>
  projectPod({
    metadata: { name: 'web-0', namespace: 'red', labels: { app } },
    spec: { hostNetwork, nodeName: node },
    status: { phase, podIPs: podIPs.map((one) => ({ ip: one })) },
  });
const sentences = (view: ReturnType<typeof cluster>, one: ReturnType<typeof pod>, to?: string): string[] =>
  explainPod(view, plan(view), one, to === undefined ? undefined : ip(to)).decisions.map(({ sentence }) => sentence);

describe('explainPod', () => {
  it('tells the whole way out', () => {
    const view = cluster({ 'red/p': {} });
    const slot = plan(view).policies[0]?.binding?.slot;
    assert.deepEqual(sentences(view, pod(), '198.51.100.7'), [
      'Policy red/p selects pod red/web-0.',
      'red/p selects all destinations outside the cluster, and 198.51.100.7 is outside.',
      'Policy red/p uses gateway g.',
      'Gateway g selects 1 nodes.',
      '1 of 1 nodes of gateway g are ready.',
      `Policy red/p leaves with 10.6.1.1 through node a (slot ${slot}).`,
      `Packets to 198.51.100.7 leave node a with 10.6.1.1 (slot ${slot}).`,
    ]);
  });

  it('says which policy wins and why, and which are not about the destination', () => {
    const view = cluster({
      'red/p': { priority: 5 },
      'red/q': {},
      'red/r': { priority: 1, destSubnet: ['203.0.113.0/24'] },
    });
    const told = sentences(view, pod(), '198.51.100.7');
    assert.ok(told.includes('Policies red/q, red/r, red/p select pod red/web-0; red/q has the highest precedence.'));
    assert.ok(told.includes('destSubnet of red/r does not contain 198.51.100.7.'));
    assert.ok(told.includes('red/q comes first: priority 0 is before 5.'));
    assert.equal(explainPod(view, plan(view), pod(), ip('198.51.100.7')).policy?.key, 'red/q');
  });

  it('leaves traffic inside the cluster and exceptions alone', () => {
    const view = cluster({ 'red/p': { exceptSubnet: ['198.51.100.7'] } });
    assert.match(
      sentences(view, pod(), '10.244.9.9').join(' '),
      /10\.244\.9\.9 is inside\. No policy of pod red\/web-0 applies to 10\.244\.9\.9/,
    );
    assert.match(sentences(view, pod(), '198.51.100.7').join(' '), /exceptSubnet of red\/p contains 198\.51\.100\.7/);
  });

  const others: readonly [string, ReturnType<typeof pod>, RegExp][] = [
    ['the host network', pod({ hostNetwork: true }), /uses the host network, so no policy applies to it/],
    ['a finished pod', pod({ phase: 'Succeeded' }), /has finished/],
    ['a pod without an address', pod({ podIPs: [] }), /has no address yet/],
    ['a pod under no policy', pod({ app: 'other' }), /^No policy selects pod red\/web-0; its traffic is left alone/],
  ];
  for (const [name, one, says] of others) {
    it(`says so of ${name}`, () => assert.match(sentences(cluster({ 'red/p': {} }), one).join(' '), says));
  }
});

describe('the outcome that explainPod tells', () => {
  const both = pod({ podIPs: ['10.244.1.7', 'fd44::7'] });
  const outcome = (view: ReturnType<typeof cluster>, one: ReturnType<typeof pod>, to?: string) =>
    explainPod(view, plan(view), one, to === undefined ? undefined : ip(to)).outcome;

  it('is the EIP of the family of the destination, or what the policy says when it has none', () => {
    const drop = cluster({ 'red/p': {} });
    const slot = plan(drop).policies[0]?.binding?.slot;
    assert.deepEqual(outcome(drop, both, '198.51.100.7'), { kind: 'gateway', node: 'a', slot, eip: '10.6.1.1' });
    assert.deepEqual(outcome(drop, both, '2001:db8::7'), { kind: 'drop', because: 'noAddress' });
    assert.match(
      sentences(drop, both, '2001:db8::7').join(' '),
      /Packets to 2001:db8::7 are dropped, because red\/p has no IPv6 address and onUnavailable is Drop\./,
    );
    const open = cluster({ 'red/p': { onUnavailable: 'NodeIP' } });
    assert.deepEqual(outcome(open, both, '2001:db8::7'), { kind: 'nodeIp', because: 'noAddress' });
  });

  it('is not told where it depends on a destination that was not given', () => {
    assert.equal(outcome(cluster({ 'red/p': {} }), both), undefined);
    assert.deepEqual(outcome(cluster({}), both), { kind: 'leftAlone' });
  });

  const untouched: readonly [string, string, RegExp][] = [
    ['link-local destinations of a policy without destSubnet', '169.254.169.254', /169\.254\.169\.254 is inside/],
    ['what is never routed', '224.0.0.5', /224\.0\.0\.5 is never routed to another machine/],
    ['the node of the pod itself', '192.0.2.7', /192\.0\.2\.7 is the node that the pod runs on/],
  ];
  for (const [what, to, says] of untouched) {
    it(`leaves ${what} alone`, () => {
      const view = cluster({ 'red/p': {} }, [nodeObject('a'), nodeObject('w', ['192.0.2.7'], {})]);
      const here = pod({ node: 'w' });
      assert.deepEqual(outcome(view, here, to), { kind: 'leftAlone' });
      assert.match(sentences(view, here, to).join(' '), says);
    });
  }

  it('leaves traffic of a policy without destSubnet alone while nobody knows what is outside', () => {
    const view = cluster({ 'red/p': {} });
    const unknown = { ...view, ranges: projectClusterInfo(undefined) };
    assert.deepEqual(outcome(unknown, both, '198.51.100.7'), { kind: 'leftAlone' });
    assert.match(
      sentences(unknown, both, '198.51.100.7').join(' '),
      /outside the cluster, and the controller does not know them yet/,
    );
  });

  it('gives link-local destinations to a policy that names them', () => {
    const view = cluster({ 'red/p': { destSubnet: ['169.254.0.0/16'] } });
    assert.equal(outcome(view, both, '169.254.169.254')?.kind, 'gateway');
  });

  it('is nothing for a family that the pod does not have', () => {
    const view = cluster({ 'red/p': {} });
    assert.deepEqual(outcome(view, pod(), '2001:db8::7'), { kind: 'leftAlone' });
    assert.match(sentences(view, pod(), '2001:db8::7').join(' '), /has no IPv6 address, so it sends nothing/);
  });

  it('is left alone for a family that the configuration turns off', () => {
    const view = cluster({ 'red/p': {} });
    const off = { ...view, settings: { ...view.settings, hasIpv6: false } };
    assert.deepEqual(outcome(off, both, '2001:db8::7'), { kind: 'leftAlone' });
  });

  it('is a drop where the tunnel does not lead', () => {
    const view = cluster({ 'red/p': {} }, [nodeObject('a', ['192.0.2.1']), nodeObject('w', ['2001:db8:1::7'], {})]);
    assert.deepEqual(outcome(view, pod({ node: 'w' }), '198.51.100.7'), { kind: 'drop', because: 'unreachable' });
  });

  it('says that packets still go to a node that is not ready', () => {
    const view = cluster({ 'red/p': {} });
    const silent = { ...view, tunnels: view.tunnels.map((tunnel) => ({ ...tunnel, heartbeat: 'stale' as const })) };
    assert.equal(outcome(silent, both, '198.51.100.7')?.kind, 'gateway');
    assert.match(sentences(silent, both, '198.51.100.7').join(' '), /still go to node a \(slot \d+\); while it is not/);
  });
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
    assert.match(text, /Traffic of red\/p is dropped, because no gateway node serves it and onUnavailable is Drop/);
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
