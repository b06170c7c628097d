import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { Drain } from './drain.ts';

/** Workers as a master has them: a reload puts new ones in place of those that serve. */
class Workers {
  serving: readonly number[] = [1, 2];
  draining: readonly number[] = [];
  #next = 3;

  async workers() {
    return { serving: this.serving, draining: this.draining };
  }

  reload(): void {
    this.draining = [...this.draining, ...this.serving];
    this.serving = [this.#next, this.#next + 1];
    this.#next += 2;
  }

  end(pid: number): void {
    this.draining = this.draining.filter((other) => other !== pid);
  }
}

const open = () => {
  const workers = new Workers();
  const clock = new ManualClock();
  const ended: number[] = [];
  const log = createLog({ process: 'proxy', level: 'silent' });
  const end = (pid: number): void => {
    ended.push(pid);
    workers.end(pid);
  };
  return { workers, clock, ended, drain: new Drain({ clock, log, most: 3, waitMs: 5000, end }) };
};

describe('Drain', () => {
  it('has room for a few generations at once', async () => {
    const { workers, drain, ended } = open();
    for (let count = 0; count < 3; count += 1) {
      await drain.makeRoom(workers);
      workers.reload();
    }
    assert.deepEqual([workers.draining.length, ended], [6, []]);
  });

  it('waits for room, and goes on when an older generation has ended', async () => {
    const { workers, drain, clock, ended } = open();
    for (let count = 0; count < 3; count += 1) {
      await drain.makeRoom(workers);
      workers.reload();
    }
    const room = drain.makeRoom(workers);
    await clock.advance(1000);
    // Half of a generation is still a generation.
    workers.end(3);
    await clock.advance(1000);
    workers.end(4);
    await clock.advance(200);
    await room;
    assert.deepEqual(ended, []);
  });

  it('ends the oldest when nobody makes room in time', async () => {
    const { workers, drain, clock, ended } = open();
    for (let count = 0; count < 3; count += 1) {
      await drain.makeRoom(workers);
      workers.reload();
    }
    const room = drain.makeRoom(workers);
    await clock.advance(5200);
    await room;
    assert.deepEqual(ended, [1, 2]);
  });

  it('ends generations that had a rule which is gone when their time is over, and no younger ones', async () => {
    const { workers, drain, clock, ended } = open();
    await drain.makeRoom(workers);
    workers.reload();
    drain.limit(3_600_000);
    await clock.advance(1_000_000);
    await drain.makeRoom(workers);
    workers.reload();
    await drain.endLate(workers);
    assert.deepEqual(ended, []);
    await clock.advance(2_600_000);
    await drain.endLate(workers);
    assert.deepEqual(ended, [1, 2]);
    await clock.advance(86_400_000);
    await drain.endLate(workers);
    assert.deepEqual(ended, [1, 2]);
  });

  it('ends nobody who has another worker of the same number now', async () => {
    const { workers, drain, clock, ended } = open();
    await drain.makeRoom(workers);
    workers.reload();
    drain.limit(1000);
    workers.end(1);
    await clock.advance(2000);
    await drain.endLate(workers);
    assert.deepEqual(ended, [2]);
  });
});
