import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadLibc } from '../dataplane/libc.ts';
import { ManualClock } from '../runtime/process/clock.ts';
import { Footprint, ownMemory, type ProcessMemory, programPages } from './footprint.ts';

/** Holds what it was filled with, what cannot be given back, and pages that come when something runs. */
class FakeMemory implements ProcessMemory {
  bytes = 90e6;
  pages = 50;
  readonly #leastBytes = 50e6;

  ownBytes(): number {
    return this.bytes;
  }

  collect(): void {
    this.bytes = this.#leastBytes;
    this.pages = 50;
  }

  dropPages(): void {
    this.pages = 0;
  }
}

const begin = () => {
  const clock = new ManualClock();
  const memory = new FakeMemory();
  return { clock, memory, footprint: new Footprint({ clock, memory }) };
};

test('memory is given back when the node is quiet, not while it works', async () => {
  const { clock, memory, footprint } = begin();
  for (let second = 0; second < 20; second += 1) {
    footprint.worked();
    await clock.advance(1_000);
  }
  assert.deepEqual([memory.bytes, memory.pages], [90e6, 50]);
  await clock.advance(2_000);
  assert.deepEqual([memory.bytes, memory.pages], [50e6, 0]);
});

test('pages that came back for what follows a collection are let go twice more, and then no more', async () => {
  const { clock, memory, footprint } = begin();
  footprint.worked();
  await clock.advance(3_000);
  for (const afterMs of [2_000, 20_000]) {
    memory.pages = 30;
    await clock.advance(afterMs - 1);
    assert.equal(memory.pages, 30);
    await clock.advance(1);
    assert.equal(memory.pages, 0);
  }
  memory.pages = 20;
  await clock.advance(60_000);
  assert.equal(memory.pages, 20);
});

test('a little work in between does not keep pages', async () => {
  const { clock, memory, footprint } = begin();
  footprint.worked();
  await clock.advance(3_000);
  memory.pages = 30;
  for (let second = 0; second < 21; second += 1) {
    footprint.worked();
    await clock.advance(1_000);
  }
  memory.pages = 30;
  await clock.advance(1_000);
  assert.equal(memory.pages, 0);
});

test('a little more than before is left alone, much more is not', async () => {
  const { clock, memory, footprint } = begin();
  footprint.worked();
  await clock.advance(3_000);
  for (const [bytes, after] of [
    [61e6, 61e6],
    [63e6, 50e6],
  ] as const) {
    memory.bytes = bytes;
    footprint.worked();
    await clock.advance(3_000);
    assert.equal(memory.bytes, after);
  }
});

test('nothing is given back after the end, whatever is done then', async () => {
  const { clock, memory, footprint } = begin();
  footprint.worked();
  footprint.close();
  footprint.close();
  await clock.advance(60_000);
  assert.equal(memory.bytes, 90e6);
  footprint.worked();
  await clock.advance(60_000);
  assert.equal(memory.bytes, 90e6);
});

const part = (head: string, anonymousKb: number) =>
  `${head}\nSize: 8 kB\nRss: 8 kB\nAnonymous: ${String(anonymousKb).padStart(9)} kB\nAnonHugePages:         0 kB\n`;

test('only parts of files that nobody can write to, and of which no page was changed, are program pages', () => {
  const smaps = [
    part('00400000-0082e000 r--p 00000000 fe:00 5334915     /usr/bin/node', 0),
    part('0082e000-03489000 r-xp 0042e000 fe:00 5334915     /usr/bin/node', 0),
    // Relocated by the loader.
    part('072a7000-072dc000 r--p 06ea7000 fe:00 5334915     /usr/bin/node', 24),
    part('072dc000-07308000 rw-p 06edc000 fe:00 5334915     /usr/bin/node', 0),
    part('7f1c00000000-7f1c00021000 r-xp 00000000 00:00 0 ', 0),
    part('7ffc11111000-7ffc11113000 r-xp 00000000 00:00 0     [vdso]', 0),
    part('7ffc22222000-7ffc22224000 r--s 00000000 fe:00 17     /usr/lib/locale', 0),
  ].join('');
  assert.deepEqual(programPages(smaps), [
    { address: 0x400000, length: 0x82e000 - 0x400000 },
    { address: 0x82e000, length: 0x3489000 - 0x82e000 },
  ]);
});

test('a process that gave back what it can goes on, with what it had', async () => {
  const read = (file: 'smaps' | 'status') => readFileSync(`/proc/self/${file}`, 'utf8');
  const memory = ownMemory(await loadLibc(), read);
  const kept = Array.from({ length: 1_000 }, (_, index) => ({ name: `kept-${index}` }));
  assert.ok(programPages(read('smaps')).length > 0);
  for (let round = 0; round < 3; round += 1) {
    memory.collect();
    memory.dropPages();
  }
  assert.ok(memory.ownBytes() > 1e6 && memory.ownBytes() < process.memoryUsage.rss());
  assert.ok(kept.every(({ name }, index) => name === `kept-${index}`));
  assert.equal(JSON.stringify(JSON.parse(JSON.stringify(kept))), JSON.stringify(kept));
});
