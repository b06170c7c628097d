import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Digest } from './digest.ts';

const open = () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const digest = new Digest<{ readonly kind: string; readonly eip: number }>({
    clock,
    kindOf: ({ kind }) => kind,
    tellOne: ({ kind, eip }) => lines.push(`${kind} ${eip}`),
    tellMany: ({ count, first }) => lines.push(`${first[0]?.kind} ${count} with ${first.map(({ eip }) => eip).join()}`),
  });
  return { clock, lines, digest };
};

describe('Digest', () => {
  it('tells few one by one, at once', async () => {
    const { clock, lines, digest } = open();
    for (let eip = 0; eip < 5; eip += 1) digest.add({ kind: 'lost', eip });
    digest.add({ kind: 'got', eip: 7 });
    assert.equal(lines.length, 6);
    await clock.advance(60_000);
    assert.equal(lines.length, 6);
  });

  it('tells a thousand of a kind in one line more, a second later', async () => {
    const { clock, lines, digest } = open();
    for (let eip = 0; eip < 1_000; eip += 1) digest.add({ kind: 'lost', eip });
    assert.equal(lines.length, 5);
    await clock.advance(1_000);
    assert.deepEqual(lines.slice(5), ['lost 995 with 5,6,7']);
  });

  it('writes some lines a minute when a thousand EIPs go to and fro all the time', async () => {
    const { clock, lines, digest } = open();
    for (let second = 0; second < 120; second += 1) {
      for (let eip = 0; eip < 1_000; eip += 1) digest.add({ kind: 'lost', eip });
      for (let eip = 0; eip < 1_000; eip += 1) digest.add({ kind: 'got', eip });
      await clock.advance(1_000);
    }
    assert.ok(lines.length < 30, `${lines.length} lines`);
    await clock.advance(120_000);
    const told = lines.reduce((sum, line) => sum + (/ (\d+) with/.test(line) ? Number(line.split(' ')[1]) : 1), 0);
    assert.equal(told, 240_000, 'and counts all of them');
    digest.add({ kind: 'lost', eip: 1 });
    assert.equal(lines.at(-1), 'lost 1', 'after a pause one is told at once again');
  });

  it('tells what is left when it ends', () => {
    const { lines, digest } = open();
    for (let eip = 0; eip < 8; eip += 1) digest.add({ kind: 'lost', eip });
    digest.close();
    assert.equal(lines.at(-1), 'lost 3 with 5,6,7');
  });
});
