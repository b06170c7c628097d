import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Eip } from '../cluster/view.ts';
import { compareAge } from '../policies/precedence.ts';
import { projectPolicy } from '../project/index.ts';
import { policyObject } from '../testing/objects.ts';
import { assignSlots, createSlots, SLOTS, type SlotClaim } from './slots.ts';

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

describe('createSlots', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
  const address = fc.option(fc.constantFrom('10.6.1.1', '10.6.1.2'), { nil: undefined, freq: 4 });
  const event = fc.record({
    name: fc.constantFrom(...names),
    isGone: fc.nat({ max: 5 }).map((chance) => chance === 0),
    has: address,
    // Most records are what was given; the others are old ones, or written by hand.
    record: fc.oneof(
      { weight: 4, arbitrary: fc.constant('given' as const) },
      { weight: 1, arbitrary: fc.constant('none' as const) },
      { weight: 1, arbitrary: fc.tuple(address, fc.integer({ min: 1, max: 4 })) },
    ),
  });

  it('gives after any history what a look at all claims gives', () => {
    fc.assert(
      fc.property(fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 20 }), (history) => {
        const assign = createSlots();
        const claims = new Map<string, SlotClaim>();
        for (const events of history) {
          const [gone, come] = [new Map<string, SlotClaim>(), new Map<string, SlotClaim>()];
          const given = assignSlots([...claims.values()].toSorted((x, y) => compareAge(x.policy, y.policy)));
          for (const { name, isGone, has, record } of events) {
            const before = claims.get(name);
            if (before !== undefined && !gone.has(name) && !come.has(name)) gone.set(name, before);
            come.delete(name);
            claims.delete(name);
            if (isGone) continue;
            const slot = given.get(`red/${name}`);
            const [had, recordedSlot] = record === 'given' ? [has, slot] : record === 'none' ? [] : record;
            claims.set(name, claim(name, had, recordedSlot, has));
            come.set(name, claim(name, had, recordedSlot, has));
          }
          const byAge = (list: Iterable<SlotClaim>) => [...list].toSorted((x, y) => compareAge(x.policy, y.policy));
          const all = byAge(claims.values());
          const { of } = assign({ gone: [...gone.values()], come: byAge(come.values()) }, () => all);
          const fresh = assignSlots(all);
          assert.deepEqual(
            all.map(({ policy }) => of(policy.key)),
            all.map(({ policy }) => fresh.get(policy.key)),
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  it('does not look at all claims when one comes or goes', () => {
    const assign = createSlots();
    const settled = claim('a', '10.6.1.1', 77, '10.6.1.1');
    assign({ gone: [], come: [settled] }, () => assert.fail('asked for all'));
    const [first, second] = [claim('b', undefined, undefined, '10.6.1.2'), claim('b', '10.6.1.2', 78, '10.6.1.2')];
    assign({ gone: [], come: [first] }, () => assert.fail('asked for all'));
    const { of, areAnew } = assign({ gone: [first], come: [second] }, () => assert.fail('asked for all'));
    assert.deepEqual([of(settled.policy.key), of(second.policy.key), areAnew], [77, 78, false]);
  });
});
