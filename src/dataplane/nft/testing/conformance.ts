/** What every Nftables promises. The fake runs it in the unit tests, the kernel in test/kernel. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TableDesired } from '../../../core/node/desired.ts';
import type { Nftables } from '../nftables.ts';
import { storedOf } from '../stored.ts';
import { settings, smallTable, smallTableWith } from './tables.ts';

/** A kernel and the agents that run on it, one after the other. */
export interface Machine extends AsyncDisposable {
  /** The agent starts: a new Nftables with the state that the last one left, or without it. */
  start(options?: { readonly hasState: boolean }): Nftables;
  /** Another program runs a script. */
  meddle(script: string): Promise<void>;
  /** Waits until the condition holds, however time passes on this machine. */
  until(what: string, condition: () => boolean): Promise<void>;
}

/** Registers the suite. */
export const describeNftables = (name: string, openMachine: () => Promise<Machine>): void => {
  describe(name, () => {
    it('holds nothing before the first apply, and nothing is counted', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      assert.equal(await table.read(), undefined);
      const { slots, eips, drops } = await table.counters();
      assert.deepEqual([slots.size, eips.size, drops.unavailable], [0, 0, { packets: 0, bytes: 0 }]);
    });

    it('makes the table with every container filled, and then has nothing more to do', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      const first = await table.apply(smallTable);
      assert.deepEqual([first.wasReplaced, first.drift], [true, []]);
      await assertHolds(table, smallTable);
      assert.deepEqual(await table.apply(smallTable), { changed: 0, wasReplaced: false, drift: [] });
    });

    it('replaces the value of a map element in one transaction', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      const moved = smallTableWith({
        slot_fwd: new Map([...smallTable.elements.slot_fwd].with(0, ['0x26000001', '0x26020001'])),
      });
      assert.deepEqual(await table.apply(moved), { changed: 1, wasReplaced: false, drift: [] });
      await assertHolds(table, moved);
    });

    it('changes ranges that overlap those they replace', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      const wider = smallTableWith({
        cluster4: new Map([['10.0.0.0/8', '']]),
        net4: new Map([['10.244.0.0/16', '0x25000003']]),
        dst4: new Map([['0x25000001 . 203.0.112.0/20', '0x26000001']]),
      });
      await table.apply(wider);
      await assertHolds(table, wider);
      await table.apply(smallTable);
      await assertHolds(table, smallTable);
    });

    it('loads the chains anew when a setting changes', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      const before = (await table.read())?.chains;
      const outcome = await table.apply({ ...smallTable, settings: { ...settings, port: 7790 } });
      assert.equal(outcome.wasReplaced, true);
      assert.notEqual((await table.read())?.chains, before);
    });

    it('changes only what differs after a restart', async () => {
      await using machine = await openMachine();
      await machine.start().apply(smallTable);
      assert.deepEqual(await machine.start().apply(smallTable), { changed: 0, wasReplaced: false, drift: [] });
      const less = smallTableWith({ pod4: new Map() });
      assert.deepEqual(await machine.start().apply(less), { changed: 2, wasReplaced: false, drift: [] });
    });

    it('replaces a table of which it has no record', async () => {
      await using machine = await openMachine();
      await machine.start().apply(smallTable);
      const restarted = machine.start({ hasState: false });
      assert.equal((await restarted.apply(smallTable)).wasReplaced, true);
      await assertHolds(restarted, smallTable);
    });

    it('puts back an element that another program deleted, and says where', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await machine.meddle('delete element inet sallyport pod4 { 10.244.1.1 }');
      table.distrust();
      assert.deepEqual(await table.apply(smallTable), { changed: 1, wasReplaced: false, drift: ['pod4'] });
      await assertHolds(table, smallTable);
    });

    it('takes away an element that another program added, also where only we count', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await machine.meddle('add element inet sallyport sent4 { 10.6.0.200 }');
      table.distrust();
      assert.deepEqual(await table.apply(smallTable), { changed: 1, wasReplaced: false, drift: ['sent4'] });
    });

    it('replaces the table when another program added a rule', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await machine.meddle('add rule inet sallyport arrive accept');
      table.distrust();
      const { wasReplaced, drift } = await table.apply(smallTable);
      assert.deepEqual([wasReplaced, drift], [true, ['chains']]);
      table.distrust();
      assert.deepEqual(await table.apply(smallTable), { changed: 0, wasReplaced: false, drift: [] });
    });

    it('makes the table again when another program deleted it', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await machine.meddle('delete table inet sallyport');
      table.distrust();
      const { wasReplaced, drift } = await table.apply(smallTable);
      assert.deepEqual([wasReplaced, drift], [true, ['table']]);
      await assertHolds(table, smallTable);
    });

    it('makes the seal again when another program deleted it or took a pod from it, and says so', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      for (const script of [
        'delete table inet sallyport_seal',
        'delete element inet sallyport_seal pods4 { 10.244.1.1 }',
      ]) {
        await machine.meddle(script);
        table.distrust();
        assert.deepEqual(await table.apply(smallTable), { changed: 0, wasReplaced: false, drift: ['seal'] });
        table.distrust();
        assert.deepEqual(await table.apply(smallTable), { changed: 0, wasReplaced: false, drift: [] });
      }
    });

    it('finds out by itself that the kernel does not hold what it thought', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await machine.meddle('delete element inet sallyport pod4 { 10.244.1.1 }');
      const less = smallTableWith({ pod4: new Map() });
      assert.deepEqual((await table.apply(less)).drift, ['pod4']);
      await assertHolds(table, less);
      await machine.meddle('delete table inet sallyport');
      assert.equal((await table.apply(smallTable)).wasReplaced, true);
    });

    it('keeps what it had when a change is refused, names the element, and goes on', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      const bad = smallTableWith({
        eips4: new Map(),
        pod6: new Map([
          ['fd44::1:1', '0x25000009'],
          ['10.0.0.1', '0x25000001'],
        ]),
      });
      await assert.rejects(table.apply(bad), (error: Error & { code?: string; data?: Record<string, unknown> }) => {
        assert.deepEqual([error.code, error.data?.reason], ['NFT_REFUSED', 'NftRefused']);
        assert.equal(error.data?.container, 'pod6');
        assert.equal(error.data?.element, '10.0.0.1');
        return true;
      });
      await assertHolds(table, smallTable);
      const good = smallTableWith({ eips4: new Map() });
      assert.equal((await table.apply(good)).wasReplaced, false);
      await assertHolds(table, good);
    });

    it('tells changes by others and not its own', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      const heard: string[] = [];
      const stopping = new AbortController();
      const watching = table.watch((who) => heard.push(who), stopping.signal);
      await table.apply(smallTable);
      await table.apply(smallTableWith({ dst4: new Map(), cluster4: new Map() }));
      await machine.meddle('table inet other');
      await machine.meddle('add element inet sallyport vteps4 { 10.6.0.99 }');
      await machine.until('the change is told', () => heard.length > 0);
      assert.equal(heard.length, 1);
      await machine.meddle('delete table inet sallyport_seal');
      await machine.until('a change of the seal is told', () => heard.length > 1);
      assert.match(heard[0] ?? '', /^(nft|intruder), process \d+$/);
      stopping.abort();
      await watching;
    });

    it('removes every trace, and may do so twice', async () => {
      await using machine = await openMachine();
      const table = machine.start();
      await table.apply(smallTable);
      await table.remove();
      assert.equal(await table.read(), undefined);
      await table.remove();
      assert.equal((await machine.start().apply(smallTable)).wasReplaced, true);
    });
  });
};

/** The law that tests try with random tables: any table turns into any other, and then there is nothing more to do. */
export const assertTurnsInto = async (machine: Machine, before: TableDesired, after: TableDesired): Promise<void> => {
  const table = machine.start();
  await table.apply(before);
  await table.apply(after);
  await assertHolds(table, after);
  assert.deepEqual(await machine.start().apply(after), { changed: 0, wasReplaced: false, drift: [] });
};

const assertHolds = async (table: Nftables, { elements }: TableDesired): Promise<void> => {
  const actual = await table.read();
  const sorted = (held: object) =>
    Object.entries(held).map(([name, content]: [string, ReadonlyMap<string, string>]) => [name, [...content].sort()]);
  assert.deepEqual(sorted(actual?.elements ?? {}), sorted(storedOf(elements)));
};
