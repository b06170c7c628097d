import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exchangedBetween, MapChangeLog } from '../incremental/change-log.ts';
import { ip } from '../testing/address.ts';
import type { SlotBinding } from './bindings.ts';
import { createGroups, type Group } from './groups.ts';

const bindingOf = (slot: number, eip: string, node: string): SlotBinding =>
  ({
    policy: { key: `shop/${slot}`, recorded: { eip: { ipv4: ip(eip), ipv6: undefined } } },
    spec: { address: { kind: 'allocated' } },
    slot,
    node,
  }) as unknown as SlotBinding;

/** Groups as text, for which order means nothing. */
const shown = (groups: readonly Group[]): string[] =>
  groups
    .map(({ key, bindings, slots }) => {
      assert.deepEqual(new Set(bindings.map(({ slot }) => slot)), new Set(slots));
      return `${key}: ${slots.toSorted((a, b) => a - b).join()}`;
    })
    .toSorted();

describe('groups', () => {
  it('are the same when a change log tells which slots are others, and so are the change logs of their slots', () => {
    const steps = fc.array(
      fc.record({
        slot: fc.nat(5),
        eip: fc.constantFrom(undefined, '10.6.0.1', '10.6.0.2'),
        node: fc.constantFrom('a', 'b'),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(steps, (changes) => {
        const groupsOf = createGroups();
        const changeLog = new MapChangeLog<number>();
        let bySlot: ReadonlyMap<number, SlotBinding> = changeLog.mark(new Map());
        let last = groupsOf(bySlot);
        for (const { slot, eip, node } of changes) {
          const next = new Map(bySlot);
          if (eip === undefined) next.delete(slot);
          else next.set(slot, bindingOf(slot, eip, node));
          changeLog.touch(slot);
          bySlot = changeLog.mark(next);
          const now = groupsOf(bySlot);
          assert.deepEqual(shown(now), shown(createGroups()(bySlot)));
          for (const { key, slots } of now) {
            const before = last.find((group) => group.key === key)?.slots;
            const exchanged = before && before !== slots ? exchangedBetween(before, slots) : undefined;
            if (before === undefined || exchanged === undefined) continue;
            const [were, are] = [new Set(before), new Set(slots)];
            assert.deepEqual(exchanged, { gone: were.difference(are), come: are.difference(were) });
          }
          last = now;
        }
      }),
    );
  });
});
