import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { projectPolicy } from './project/index.ts';
import { assignSlots, SLOTS, type SlotClaim } from './slots.ts';
import { policyObject } from './testing/objects.ts';
import type { Eip } from './view.ts';

const recorded = (name: string, eip: object, slot?: number, uid = name) =>
  projectPolicy({ ...policyObject(`red/${name}`, { uid }), status: { eip, ...(slot === undefined ? {} : { slot }) } });
const claim = (name: string, had: string | undefined, slot: number | undefined, has: string | undefined): SlotClaim => {
  const policy = recorded(name, had === undefined ? {} : { ipv4: had }, slot);
  return { policy, eip: has === undefined ? undefined : eipOf(has) };
};
const eipOf = (text: string): Eip => recorded('x', { ipv4: text }).recorded.eip;

describe('assignSlots', () => {
  it('keeps the slot while the EIP stays', () => {
    assert.equal(assignSlots([claim('p', '10.6.1.1', 77, '10.6.1.1')]).get('red/p'), 77);
  });

  it('gives another slot with another EIP: connections still carry the old one', () => {
    const slot = assignSlots([claim('p', '10.6.1.1', 77, '10.6.1.2')]).get('red/p');
    assert.ok(slot !== undefined && slot !== 77);
  });

  it('keeps the slot when the EIP gets its other half', () => {
    const policy = recorded('p', { ipv4: '10.6.1.1' }, 77);
    const whole = recorded('x', { ipv4: '10.6.1.1', ipv6: 'fd00::1' }).recorded.eip;
    assert.equal(assignSlots([{ policy, eip: whole }]).get('red/p'), 77);
  });

  it('gives another slot between EIP and node IP, both ways', () => {
    assert.notEqual(assignSlots([claim('p', '10.6.1.1', 77, undefined)]).get('red/p'), 77);
    assert.notEqual(assignSlots([claim('p', undefined, 77, '10.6.1.1')]).get('red/p'), 77);
    assert.equal(assignSlots([claim('p', undefined, 77, undefined)]).get('red/p'), 77);
  });

  it('repairs a slot that two policies have: the first keeps it', () => {
    const slots = assignSlots([claim('old', '10.6.1.1', 77, '10.6.1.1'), claim('young', '10.6.1.1', 77, '10.6.1.1')]);
    assert.equal(slots.get('red/old'), 77);
    assert.notEqual(slots.get('red/young'), 77);
  });

  it('has 16,383 of them and then none', () => {
    const claims = Array.from({ length: SLOTS + 2 }, (_, index) => claim(`p${index}`, undefined, undefined, undefined));
    const slots = assignSlots(claims);
    assert.equal(slots.size, SLOTS);
    assert.equal(new Set(slots.values()).size, SLOTS);
    assert.ok([...slots.values()].every((slot) => slot >= 1 && slot <= 0x3fff));
  });

  it('does not hand a freed slot to the next policy', () => {
    const before = [...assignSlots([claim('a', undefined, undefined, '10.6.1.1')]).values()];
    const after = [...assignSlots([claim('b', undefined, undefined, '10.6.1.1')]).values()];
    assert.notDeepEqual(after, before);
  });
});
