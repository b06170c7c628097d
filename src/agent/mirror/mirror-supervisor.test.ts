import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { ManualClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { MirrorSupervisor, type Taker } from './mirror-supervisor.ts';
import type { MirrorHooks } from './mirror-thread.ts';
import type { MirrorPlan, MirrorStats } from './port.ts';
import type { MirrorThreadData } from './thread.ts';

const data: MirrorThreadData = { node: 'a', address: '192.200.0.1', port: 7792, keys: [new Uint8Array(32)] };
const plan: MirrorPlan = { owned: [], awaited: [], addresses: new Map(), replyMark: undefined };
const stats: MirrorStats = {
  mirrored: 1,
  held: 2,
  dropped: 0,
  lagSeconds: 0,
  behind: 0,
  resets: 0,
  written: 0,
  refused: 0,
};

/** A thread that does what the test says. */
interface FakeThread {
  readonly hooks: MirrorHooks;
  readonly plans: MirrorPlan[];
  isClosed: boolean;
}

describe('Mirroring', () => {
  let clock: ManualClock;
  let threads: FakeThread[];
  let mirrorSupervisor: MirrorSupervisor;
  let joined: number;
  const taker: Taker = {
    setMirror: (port) => {
      joined += 1;
      port.close();
    },
  };
  beforeEach(() => {
    clock = new ManualClock();
    threads = [];
    joined = 0;
    mirrorSupervisor = new MirrorSupervisor({
      startMirror: (_, hooks) => {
        const thread: FakeThread = { hooks, plans: [], isClosed: false };
        threads.push(thread);
        return {
          set: (told) => void thread.plans.push(told),
          port: () => new MessageChannel().port1,
          close: async () => {
            thread.isClosed = true;
          },
        };
      },
      clock,
      log: createLog({ process: 'test', level: 'silent' }),
    });
  });

  it('starts the thread once, tells it what is new, and joins it to who takes over', () => {
    for (let round = 0; round < 2; round += 1) mirrorSupervisor.set({ data, plan: { ...plan }, taker });
    mirrorSupervisor.set({ data, plan: { ...plan, replyMark: 1 }, taker });
    assert.deepEqual([threads.length, threads[0]?.plans.length, joined], [1, 2, 1]);
    mirrorSupervisor.set({ data, plan, taker: { ...taker } });
    assert.equal(joined, 2, 'another thread of heartbeats has to be told');
  });

  it('starts another thread when the keys change, and ends it where no EIP can come', async () => {
    mirrorSupervisor.set({ data, plan, taker });
    mirrorSupervisor.set({ data: { ...data, keys: [new Uint8Array(32).fill(1)] }, plan, taker });
    assert.deepEqual([threads.length, threads[0]?.isClosed, threads[1]?.plans.length, joined], [2, true, 1, 2]);
    mirrorSupervisor.set(undefined);
    assert.equal(threads[1]?.isClosed, true);
    await mirrorSupervisor.close();
  });

  it('starts a thread that failed again, after a while', async () => {
    mirrorSupervisor.set({ data, plan, taker });
    threads[0]?.hooks.failed(new Error('EADDRINUSE'));
    mirrorSupervisor.set({ data, plan, taker });
    assert.equal(threads.length, 1);
    await clock.advance(5_000);
    mirrorSupervisor.set({ data, plan, taker });
    assert.deepEqual([threads.length, threads[1]?.plans.length, joined], [2, 1, 2]);
  });

  it('knows how the thread stands, while there is one', async () => {
    assert.equal(mirrorSupervisor.stats, undefined);
    mirrorSupervisor.set({ data, plan, taker });
    threads[0]?.hooks.stats(stats);
    assert.deepEqual(mirrorSupervisor.stats, stats);
    await mirrorSupervisor.close();
    threads[0]?.hooks.stats(stats);
    assert.equal(mirrorSupervisor.stats, undefined);
  });
});
