import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { LabFailure } from './failure.ts';
import { exclusively } from './lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-lock-'));
// Nothing is left in it.
after(() => rmdirSync(folder));

test('one after the other, also when the first one fails', async () => {
  let inside = 0;
  const order: number[] = [];
  const work = (number: number) =>
    exclusively(folder, async () => {
      inside += 1;
      assert.equal(inside, 1);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(number);
      inside -= 1;
      if (number === 1) throw new Error('one');
      return number;
    });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(work));
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
    ['Error: one', 2, 3, 4],
  );
  assert.deepEqual(order.toSorted(), [1, 2, 3, 4]);
});

test('a process that is killed lets go', async () => {
  const script = `import { exclusively } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
    await exclusively(${JSON.stringify(folder)}, () => new Promise(() => { console.log('in'); setInterval(() => {}, 1e6); }));`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const ended = once(holder, 'exit');
  let isOver = false;
  const next = exclusively(folder, async () => isOver);
  isOver = true;
  holder.kill('SIGKILL');
  assert.equal(await next, true);
  await ended;
});

test('a folder that is not there cannot be locked', async () => {
  await assert.rejects(
    exclusively(join(folder, 'nowhere', 'at-all'), async () => 1),
    LabFailure,
  );
});
