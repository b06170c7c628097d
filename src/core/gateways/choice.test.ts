import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  bindingText,
  type GatewayShape,
  gatewayObject,
  nodeObject,
  type PolicyShape,
  policyObject,
  step,
  worldOf,
} from '../testing/objects.ts';

const pool = { ipv4: ['10.6.1.1'] };
const other = { ipv4: ['10.6.2.1'] };
const label = 'spidernet.io/egressgateway-default';

const choose = (
  gateways: Readonly<Record<string, GatewayShape>>,
  key: string,
  shape: PolicyShape = {},
  namespaceLabels: Record<string, string> = {},
): { text: string; gateway: string | undefined; sentence: string | undefined } => {
  const world = worldOf(
    [nodeObject('a')],
    Object.entries(gateways).map(([name, one]) => gatewayObject(name, one)),
    [policyObject(key, shape)],
  );
  world.namespaces.set('red', { metadata: { name: 'red', labels: namespaceLabels } });
  const planned = step(world);
  const [policy] = planned.policies;
  return { text: bindingText(planned, key), gateway: policy?.gateway, sentence: policy?.accepted.sentence };
};

describe('the gateway of a policy', () => {
  const defaults = { named: pool, tenant: other, cluster: { ipv4: ['10.6.3.1'], clusterDefault: true } };

  it('is the one it names', () => {
    assert.equal(choose(defaults, 'red/p', { gateway: 'named' }, { [label]: 'tenant' }).gateway, 'named');
  });
  it('is the default of its namespace', () => {
    assert.equal(choose(defaults, 'red/p', {}, { [label]: 'tenant' }).gateway, 'tenant');
  });
  it('is the cluster default', () => assert.equal(choose(defaults, 'red/p').gateway, 'cluster'));
  it('of a cluster policy is never the default of a namespace', () => {
    assert.equal(choose(defaults, 'p', {}, { [label]: 'tenant' }).gateway, 'cluster');
  });
  it('is the older of two cluster defaults, and the younger says so', () => {
    const world = worldOf(
      [nodeObject('a')],
      [
        gatewayObject('young', { ...pool, clusterDefault: true, at: 2 }),
        gatewayObject('old', { ...other, clusterDefault: true, at: 1 }),
      ],
      [policyObject('red/p')],
    );
    const planned = step(world);
    assert.equal(planned.policies[0]?.gateway, 'old');
    assert.deepEqual(
      planned.gateways.map(({ name, accepted }) => [name, accepted.reason]),
      [
        ['old', 'Valid'],
        ['young', 'ClusterDefaultTaken'],
      ],
    );
  });

  const refusals: readonly [string, ReturnType<typeof choose>, string, RegExp][] = [
    [
      'a gateway that does not exist',
      choose(defaults, 'red/p', { gateway: 'gone' }),
      'GatewayNotFound',
      /Policy red\/p names the gateway gone.*Create the gateway/,
    ],
    [
      'a namespace label that names none',
      choose(defaults, 'red/p', {}, { [label]: 'gone' }),
      'GatewayNotFound',
      /label .* of namespace red \(policy red\/p\) names the gateway gone/,
    ],
    [
      'no default',
      choose({ named: pool }, 'red/p'),
      'NoDefaultGateway',
      /Policy red\/p names no gateway.*Set egressGatewayName/,
    ],
    [
      'a namespace that is not allowed',
      choose({ g: { ...pool, allowedNamespaces: { names: ['blue'] } } }, 'red/p', { gateway: 'g' }),
      'NamespaceNotAllowed',
      /Gateway g does not serve namespace red of policy red\/p.*allowedNamespaces/,
    ],
    [
      'allowed namespaces that name nobody',
      choose({ g: { ...pool, allowedNamespaces: {} } }, 'red/p', { gateway: 'g' }),
      'NamespaceNotAllowed',
      /namespace red/,
    ],
    [
      'a gateway that goes',
      choose({ g: { ...pool, isDeleting: true } }, 'red/p', { gateway: 'g' }),
      'GatewayDeleting',
      /Gateway g of policy red\/p is being deleted. Use another gateway/,
    ],
  ];
  for (const [name, { text, sentence }, reason, says] of refusals) {
    it(`is refused: ${name}`, () => {
      assert.equal(text, reason);
      assert.match(sentence ?? '', says);
    });
  }

  it('serves a namespace by name or by label, and every cluster policy', () => {
    const bySelector = { ...pool, allowedNamespaces: { selector: { matchLabels: { team: 'x' } } } };
    assert.equal(choose({ g: bySelector }, 'red/p', { gateway: 'g' }, { team: 'x' }).text, '10.6.1.1 on a');
    assert.equal(
      choose({ g: { ...pool, allowedNamespaces: { names: ['red'] } } }, 'red/p', { gateway: 'g' }).text,
      '10.6.1.1 on a',
    );
    assert.equal(choose({ g: bySelector }, 'p', { gateway: 'g' }).text, '10.6.1.1 on a');
  });
});
