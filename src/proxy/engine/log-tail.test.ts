import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { LogTail } from './log-tail.ts';

const open = async (maxBytes?: number) => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-log-'));
  const file = join(folder, 'a.log');
  const lines: string[] = [];
  const clock = new ManualClock();
  let reopened = 0;
  const tail = new LogTail({
    file,
    clock,
    onLines: (more) => lines.push(...more.toString().trimEnd().split('\n')),
    reopen: () => {
      reopened += 1;
    },
    ...(maxBytes === undefined ? {} : { maxBytes }),
  });
  return {
    folder,
    file,
    lines,
    clock,
    tail,
    reopened: () => reopened,
    async [Symbol.asyncDispose]() {
      await tail.close();
      await rm(folder, { recursive: true });
    },
  };
};

describe('LogTail', () => {
  it('hands over whole lines, each once, also of a log that comes later', async () => {
    await using log = await open();
    await log.tail.read();
    await appendFile(log.file, 'one\ntw');
    await Promise.all([log.tail.read(), log.tail.read()]);
    assert.deepEqual(log.lines, ['one']);
    await appendFile(log.file, 'o\nthree\n');
    await log.tail.read();
    assert.deepEqual(log.lines, ['one', 'two', 'three']);
  });

  it('has the log renamed when it has grown, and loses nothing on the way', async () => {
    await using log = await open(10);
    await appendFile(log.file, 'a long line of text\n');
    await log.tail.read();
    assert.equal(log.reopened(), 1);
    // One writer has opened the new log already, another still writes to the old one.
    await appendFile(`${log.file}.old`, 'late\n');
    await appendFile(log.file, 'new\n');
    await log.tail.read();
    assert.deepEqual(log.lines.toSorted(), ['a long line of text', 'late', 'new']);
    await log.clock.advance(5000);
    await log.tail.read();
    assert.deepEqual(await readdir(log.folder), ['a.log']);
    await appendFile(log.file, 'more\n');
    await log.tail.read();
    assert.equal(log.lines.at(-1), 'more');
  });

  it('asks again when nobody opened a new log, and loses nothing meanwhile', async () => {
    await using log = await open(10);
    await appendFile(log.file, 'a long line of text\n');
    await log.tail.read();
    await log.clock.advance(5000);
    await log.tail.read();
    assert.equal(log.reopened(), 2);
    await appendFile(`${log.file}.old`, 'late\n');
    await log.tail.read();
    await appendFile(log.file, 'new\n');
    await log.clock.advance(5000);
    await log.tail.read();
    assert.deepEqual(log.lines, ['a long line of text', 'late', 'new']);
    assert.deepEqual([log.reopened(), await readdir(log.folder)], [2, ['a.log']]);
  });

  it('forgets half a line of a writer that ended, and begins anew', async () => {
    await using log = await open();
    await appendFile(log.file, 'one\nha');
    await log.tail.restart();
    assert.deepEqual([log.lines, await readdir(log.folder)], [['one'], []]);
    await appendFile(log.file, 'two\n');
    await log.tail.read();
    assert.deepEqual(log.lines, ['one', 'two']);
  });

  it('is followed until its end, and then to its last line', async () => {
    await using log = await open();
    const stop = new AbortController();
    const following = log.tail.follow(stop.signal);
    await appendFile(log.file, 'one\n');
    await log.clock.advance(500);
    await eventually('the first line', () => log.lines.length === 1);
    await appendFile(log.file, 'two\n');
    stop.abort();
    await following;
    assert.deepEqual(log.lines, ['one', 'two']);
  });
});
