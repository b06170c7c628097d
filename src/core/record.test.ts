import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plan } from './plan.ts';
import { recordPolicy } from './record.ts';
import { gatewayObject, nodeObject, type PolicyShape, policyObject, step, worldOf } from './testing/objects.ts';
import { viewOf } from './testing/world.ts';

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
