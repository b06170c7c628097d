/** What the kernel makes of our scripts: how it lists them, how much it takes, and who hears of it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Nftables } from '../../src/dataplane/nft/nftables.ts';
import { bigTable, smallTable } from '../../src/dataplane/nft/testing/tables.ts';
import { openKernelMachine } from './nft-machine.ts';

/** Watches a table to the end of the block. */
const watching = (table: Nftables): AsyncDisposable & { readonly heard: readonly string[] } => {
  const heard: string[] = [];
  const stopping = new AbortController();
  const watch = table.watch((who) => heard.push(who), stopping.signal);
  return {
    heard,
    [Symbol.asyncDispose]: () => {
      stopping.abort();
      return watch;
    },
  };
};

describe('the table in the kernel', () => {
  it('is listed as nft prints it', async (t) => {
    await using machine = await openKernelMachine('list');
    await machine.start().apply(smallTable);
    const listed = await machine.namespace.must('nft', '-s', 'list', 'table', 'inet', 'sallyport');
    // The order of elements in a hash, the number of this process and the age of its signature are not ours to choose.
    const steady = listed
      .replace(/elements = \{ (0x[0-9a-f]+) timeout.*?\}/s, 'elements = { SIGNATURE }')
      .replace(
        /elements = \{ ([^}]*) \}/g,
        (_, list: string) => `elements = { ${list.split(/,\s+/).sort().join(', ')} }`,
      );
    t.assert.fileSnapshot(steady, join(import.meta.dirname, 'golden', 'nft-list.txt'), {
      serializers: [(text: string): string => text],
    });
  });

  it('is made anew when somebody has put it to sleep', async () => {
    await using machine = await openKernelMachine('asleep');
    const table = machine.start();
    await table.apply(smallTable);
    await machine.meddle('add table inet sallyport { flags dormant; }');
    table.distrust();
    const { wasReplaced, drift } = await table.apply(smallTable);
    assert.deepEqual([wasReplaced, drift], [true, ['chains']]);
    const { stdout } = await machine.namespace.programs.run(['nft', '-t', 'list', 'table', 'inet', 'sallyport']);
    assert.doesNotMatch(stdout, /dormant/);
  });

  it('takes ten thousand pods of a thousand policies, and one more in a transaction of its own', async () => {
    await using machine = await openKernelMachine('big');
    const table = machine.start();
    await using watch = watching(table);
    const many = bigTable(1000);
    await table.apply(many);
    const pod4 = new Map([...many.elements.pod4, ['10.250.0.1', '0x25000001']]);
    const outcome = await table.apply({ ...many, elements: { ...many.elements, pod4 } });
    assert.deepEqual(outcome, { changed: 1, wasReplaced: false, drift: [] });
    assert.equal((await table.read())?.elements.pod4.size, 10_001);
    // A restart compares all that the kernel holds: nothing else got there than what was meant. nft 1.0.6 has a way to
    // turn a mark around when a list is long.
    assert.deepEqual(await machine.start().apply(many), { changed: 1, wasReplaced: false, drift: [] });
    // All of it was told to the watcher and nothing lost: the one foreign change at the end is the only thing heard.
    await machine.meddle('add element inet sallyport vteps4 { 10.6.0.99 }');
    await machine.until('the change is told', () => watch.heard.length > 0);
    assert.match(watch.heard.join(), /^nft, process \d+$/);
  });

  it('is known by its signatures also to a process in a container, whose own number the kernel does not tell', async () => {
    await using machine = await openKernelMachine('pid');
    const table = machine.start();
    await using watch = watching(table);
    await table.apply(smallTable);
    const inContainer = [
      'unshare',
      '--pid',
      '--fork',
      'sh',
      '-c',
      'echo $$; nft add element inet sallyport vteps4 "{ 10.6.0.99 }"',
    ];
    const ownNumber = (await machine.namespace.must(...inContainer)).trim();
    await machine.until('the change is told', () => watch.heard.length > 0);
    assert.equal(ownNumber, '1');
    assert.match(watch.heard.join(), /^nft, process \d{2,}$/);
  });
});
