import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plan } from '../plan/plan.ts';
import {
  bindingText,
  type GatewayShape,
  gatewayObject,
  nodeObject,
  policyObject,
  step,
  worldOf,
} from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';

const problems = (gateways: Readonly<Record<string, GatewayShape>>, nodeAddresses: readonly string[] = []) => {
  const world = worldOf(
    [nodeObject('a', nodeAddresses)],
    Object.entries(gateways).map(([name, shape]) => gatewayObject(name, shape)),
    [],
  );
  return Object.fromEntries(
    plan(viewOf(world)).gateways.map(({ name, problems: found }) => [name, found.map(({ reason }) => reason)]),
  );
};

describe('the pools of a gateway', () => {
  it('are fine when they share nothing', () => {
    assert.deepEqual(problems({ a: { ipv4: ['10.6.1.0/24'] }, b: { ipv4: ['10.6.2.0/24'] } }), { a: [], b: [] });
  });

  it('that overlap are a problem of the younger gateway', () => {
    const found = problems({ old: { ipv4: ['10.6.1.0/24'], at: 1 }, young: { ipv4: ['10.6.1.200-10.6.2.9'], at: 2 } });
    assert.deepEqual(found, { old: [], young: ['PoolsOverlap'] });
  });

  it('give no address twice where they overlap', () => {
    const world = worldOf(
      [nodeObject('a')],
      [
        gatewayObject('old', { ipv4: ['10.6.1.1-10.6.1.2'], at: 1 }),
        gatewayObject('young', { ipv4: ['10.6.1.2-10.6.1.3'], at: 2 }),
      ],
      ['old', 'old', 'young', 'young'].map((gateway, index) =>
        policyObject(`red/p${index}`, { gateway, allocator: 'rr', at: index }),
      ),
    );
    const planned = step(world);
    assert.deepEqual(
      [0, 1, 2, 3].map((index) => bindingText(planned, `red/p${index}`)),
      ['10.6.1.1 on a', '10.6.1.2 on a', '10.6.1.3 on a', '10.6.1.3 on a'],
    );
  });

  it('leave an address that two have to the older gateway, even while that does not use it', () => {
    const world = worldOf(
      [nodeObject('a')],
      [
        gatewayObject('old', { ipv4: ['10.6.1.1'], at: 1 }),
        gatewayObject('young', { ipv4: ['10.6.1.1-10.6.1.2'], at: 2 }),
      ],
      [policyObject('red/p', { gateway: 'young', allocator: 'rr' })],
    );
    assert.equal(bindingText(step(world), 'red/p'), '10.6.1.2 on a');
  });

  it('leave it to the older one too when the statuses of both have it', () => {
    const world = worldOf(
      [nodeObject('a')],
      [
        gatewayObject('old', { ipv4: ['10.6.1.1'], at: 1 }),
        gatewayObject('young', { ipv4: ['10.6.1.1-10.6.1.2'], at: 2 }),
      ],
      [],
    );
    const status = { eip: { ipv4: '10.6.1.1' }, node: 'a', slot: 7 };
    for (const gateway of ['old', 'young']) {
      world.policies.set(`red/${gateway}`, { ...policyObject(`red/${gateway}`, { gateway, allocator: 'rr' }), status });
    }
    const planned = step(world);
    assert.deepEqual(
      [bindingText(planned, 'red/old'), bindingText(planned, 'red/young')],
      ['10.6.1.1 on a', '10.6.1.2 on a'],
    );
    assert.equal(new Set(planned.policies.map(({ binding }) => binding?.slot)).size, 2);
  });

  it('lose the addresses of nodes, and say which', () => {
    const world = worldOf(
      [nodeObject('a', ['10.6.1.1'])],
      [gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.2'] })],
      [policyObject('red/p', { gateway: 'g', allocator: 'rr' })],
    );
    const planned = step(world);
    assert.equal(bindingText(planned, 'red/p'), '10.6.1.2 on a');
    assert.equal(
      planned.gateways[0]?.accepted.sentence,
      'Gateway g has 10.6.1.1 in its pools, which the cluster uses; they are left out. Use addresses that nothing in the cluster has.',
    );
    assert.deepEqual(planned.gateways[0]?.usage, { ipv4Total: 2, ipv4Free: 0, ipv6Total: 0, ipv6Free: 0 });
  });

  it('lose pod and Service ranges too', () => {
    const world = worldOf([nodeObject('a')], [gatewayObject('g', { ipv4: ['10.96.0.1-10.96.0.3', '10.244.0.1'] })], []);
    const egressIgnoreCIDR = {
      clusterIP: { ipv4: ['10.96.0.0/12'] },
      podCIDR: { ipv4: ['10.244.0.0/16', 'nonsense'] },
      custom: { ipv4: ['10.0.0.0/8'] },
    };
    world.clusterInfo = { metadata: { name: 'default' }, status: { egressIgnoreCIDR } };
    assert.match(
      step(world).gateways[0]?.accepted.sentence ?? '',
      /has 10\.96\.0\.1-10\.96\.0\.3, 10\.244\.0\.1 in its pools/,
    );
  });

  it('need as many addresses of one family as of the other', () => {
    // The schema cannot count every pool and lets this pass: a /29 has six hosts.
    assert.deepEqual(problems({ g: { ipv4: ['10.6.1.0/29'], ipv6: ['fd00::1-fd00::7'] } }), { g: ['PoolsUnequal'] });
  });

  it('of a family that is turned off are not used', () => {
    const world = worldOf(
      [nodeObject('a')],
      [gatewayObject('g', { ipv4: ['10.6.1.1'], ipv6: ['fd00::1'] })],
      [policyObject('red/p', { gateway: 'g', allocator: 'rr' })],
    );
    const view = viewOf(world);
    const planned = plan({ ...view, settings: { ...view.settings, hasIpv6: false } });
    assert.equal(planned.gateways[0]?.accepted.reason, 'FamilyDisabled');
    assert.equal(bindingText(planned, 'red/p'), '10.6.1.1 on a');
  });

  it('with an unknown node policy work as average and say so', () => {
    const world = worldOf([nodeObject('a')], [gatewayObject('g', { ipv4: ['10.6.1.1'], policy: 'fair' })], []);
    assert.match(
      step(world).gateways[0]?.accepted.sentence ?? '',
      /nodeSelector.policy "fair" works as average\. Write average/,
    );
  });
});
