import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plan } from '../plan/plan.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from '../testing/objects.ts';
import { viewOf } from '../testing/world.ts';
import { recordGateway, recordPolicy } from './record.ts';

const recordOf = (shape: PolicyShape) => {
  const appliedTo = { podSelector: { matchLabels: { app: 'shop' } } };
  const gateway = gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] });
  const world = worldOf([nodeObject('a')], [gateway], [policyObject('red/p', { gateway: 'g', appliedTo, ...shape })]);
  step(world);
  const [only] = plan(viewOf(world)).policies;
  return recordPolicy(only ?? assert.fail('no plan'));
};

describe('recordPolicy', () => {
  it('has the EIP, the node and the slot', () => {
    const { eip, node, slot } = recordOf({});
    assert.deepEqual([eip, node, typeof slot], [{ ipv4: '10.6.1.1' }, 'a', 'number']);
  });

  it('has no empty eip, so that a policy may be changed from an EIP to the node IP', () => {
    const record = recordOf({ useNodeIP: true });
    assert.equal(record.node, 'a');
    assert.ok(!('eip' in record));
  });

  it('is empty for a policy that is refused', () => {
    assert.deepEqual(recordOf({ gateway: 'gone' }), {});
  });
});

describe('recordGateway', () => {
  const gatewayOf = (isDeleting: boolean) => {
    const gateway = gatewayObject('g', { ipv4: ['10.6.1.1-10.6.1.9'] });
    const policy = policyObject('red/p', {
      gateway: 'g',
      appliedTo: { podSelector: { matchLabels: { app: 'shop' } } },
    });
    const world = worldOf([nodeObject('a'), nodeObject('b')], [gateway], [policy]);
    step(world);
    const view = viewOf(world);
    const gateways = view.gateways.map((each) => ({ ...each, isDeleting }));
    const [only] = plan({ ...view, gateways }).gateways;
    return only ?? assert.fail('no plan');
  };

  it('lists EIPs where there are some, and no empty list elsewhere', () => {
    const { nodeList = [] } = recordGateway(gatewayOf(false));
    assert.deepEqual(
      nodeList.map(({ name, eips }) => [name, eips?.map(({ ipv4 }) => ipv4)]),
      [
        ['a', undefined],
        ['b', ['10.6.1.1']],
      ],
    );
  });

  it('of a gateway that is deleted while a policy uses it keeps the EIP, and says who is waited for', () => {
    const plan = gatewayOf(true);
    assert.deepEqual(recordGateway(plan), recordGateway(gatewayOf(false)));
    assert.equal(plan.accepted.reason, 'GatewayInUse');
    assert.match(plan.accepted.sentence, /^Gateway g is being deleted and waits for red\/p\./);
  });
});
