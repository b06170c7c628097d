import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { memoryStateFile } from '../state-file.ts';
import type { Timers } from '../timers.ts';
import { assertTurnsInto, describeNftables, type Machine } from './testing/conformance.ts';
import { createFakeNftables } from './testing/fake.ts';
import { FakeNft } from './testing/fake-nft.ts';
import { smallTable, smallTableWith, TABLE_NUMBERS, tableFrom } from './testing/tables.ts';

/** Time passes when a test asks for it. */
const handClock = (): Timers & { tick(): void } => {
  const waiting = new Set<() => void>();
  return {
    after: (_delayMs, callback) => {
      waiting.add(callback);
      return () => waiting.delete(callback);
    },
    tick: () => {
      for (const callback of [...waiting]) {
        waiting.delete(callback);
        callback();
      }
    },
  };
};

const openFake = async (): Promise<Machine> => {
  const kernel = new FakeNft();
  const clock = handClock();
  let file = memoryStateFile();
  return {
    start: ({ hasState } = { hasState: true }) => {
      if (!hasState) file = memoryStateFile();
      return createFakeNftables({ kernel, file, clock });
    },
    meddle: async (script) => kernel.meddle(script),
    until: async (what, condition) => {
      clock.tick();
      assert.ok(condition(), what);
    },
    [Symbol.asyncDispose]: async () => {},
  };
};

describeNftables('nftables on the fake', openFake);

describe('nftables', () => {
  it('turn any table into any other', async () => {
    await using machine = await openFake();
    const table = fc.array(fc.nat(), { minLength: TABLE_NUMBERS, maxLength: TABLE_NUMBERS }).map(tableFrom);
    await fc.assert(
      fc.asyncProperty(table, table, (before, after) => assertTurnsInto(machine, before, after)),
      { numRuns: 50 },
    );
  });
});

describe('what nftables costs', () => {
  it('reads the kernel once at the start and never for a change', async () => {
    const table = createFakeNftables();
    await table.apply(smallTable);
    const { listings } = table.kernel;
    await table.apply(smallTableWith({ pod4: new Map() }));
    await table.apply(smallTable);
    assert.equal(table.kernel.listings, listings);
  });

  it('does not call the kernel when nothing differs', async () => {
    const table = createFakeNftables();
    await table.apply(smallTable);
    const { transactions } = table.kernel;
    await table.apply(smallTableWith({ pod4: new Map(smallTable.elements.pod4) }));
    assert.equal(table.kernel.transactions, transactions);
  });

  it('applies changes in the order of the calls', async () => {
    const table = createFakeNftables();
    const last = smallTableWith({ pod4: new Map([['10.0.0.1', '0x25000001']]) });
    await Promise.all([table.apply(smallTable), table.apply(smallTableWith({ pod4: new Map() })), table.apply(last)]);
    assert.deepEqual((await table.read())?.elements.pod4, last.elements.pod4);
  });
});

describe('a rule that others add in the moment of our load', () => {
  it('is not taken for ours, because the kernel told who added it', async () => {
    const clock = handClock();
    const table = createFakeNftables({ clock });
    const stopping = new AbortController();
    const watching = table.watch(() => table.distrust(), stopping.signal);
    const { run } = table.kernel;
    table.kernel.run = async (argv, options) => {
      // Right before the listing that tells us how our chains look.
      if (argv.includes('-t')) table.kernel.meddle('add rule inet sallyport arrive accept');
      return run(argv, options);
    };
    await table.apply(smallTable);
    table.kernel.run = run;
    clock.tick();
    assert.equal((await table.apply(smallTable)).wasReplaced, true);
    clock.tick();
    assert.equal((await table.apply(smallTable)).wasReplaced, false);
    assert.doesNotMatch((await table.read())?.chains ?? '', /"arrive","expr":"accept"/);
    stopping.abort();
    await watching;
  });
});

describe('when nft fails', () => {
  const cases = [
    { code: 127, stderr: 'spawn nft ENOENT', reason: 'NftMissing' },
    { code: 1, stderr: 'netlink: Error: cache initialization failed: Protocol not supported', reason: 'NftMissing' },
    { code: 1, stderr: 'Operation not permitted (you must be root)', reason: 'CapabilityMissing' },
    { code: 128, stderr: '', reason: 'NftRefused' },
  ] as const;
  for (const { code, stderr, reason } of cases) {
    it(`says ${reason} for ${stderr || `code ${code}`}`, async () => {
      const table = createFakeNftables();
      table.kernel.failure = { code, stdout: '', stderr };
      await assert.rejects(table.apply(smallTable), {
        code: 'NFT_REFUSED',
        data: { reason, container: undefined, element: undefined },
      });
    });
  }

  it('reads the kernel again after a program that was killed, because it may have done its work', async () => {
    const table = createFakeNftables();
    await table.apply(smallTable);
    const { listings } = table.kernel;
    table.kernel.failure = { code: 128, stdout: '', stderr: '' };
    await assert.rejects(table.apply(smallTableWith({ pod4: new Map() })), { code: 'NFT_REFUSED' });
    table.kernel.failure = undefined;
    await table.apply(smallTable);
    assert.equal(table.kernel.listings, listings + 1);
  });
});

describe('what nftables counts', () => {
  it('tells packets by slot, by EIP in both directions, and by reason of a drop', async () => {
    const table = createFakeNftables();
    await table.apply(smallTable);
    table.kernel.count('slot_fwd', '0x26000002', { packets: 3, bytes: 300 });
    table.kernel.count('sent4', '10.6.0.100', { packets: 5, bytes: 500 });
    table.kernel.count('received4', '10.6.0.100', { packets: 4, bytes: 4000 });
    table.kernel.count('drops', '0x00000003', { packets: 1, bytes: 60 });
    const { slots, eips, drops } = await table.counters();
    assert.deepEqual(
      [slots.get(1), slots.get(2)],
      [
        { packets: 0, bytes: 0 },
        { packets: 3, bytes: 300 },
      ],
    );
    assert.deepEqual(eips.get('10.6.0.100'), {
      sent: { packets: 5, bytes: 500 },
      received: { packets: 4, bytes: 4000 },
    });
    assert.deepEqual(eips.get('fd06::e:100'), { sent: { packets: 0, bytes: 0 }, received: { packets: 0, bytes: 0 } });
    assert.deepEqual(
      [drops.no_eip, drops.unavailable],
      [
        { packets: 1, bytes: 60 },
        { packets: 0, bytes: 0 },
      ],
    );
  });
});
