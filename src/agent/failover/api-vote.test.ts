import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LeaseStore, StoredLease } from '../../runtime/control/lease-record.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { fastClock } from '../../runtime/testing/fast-clock.ts';
import { ApiVote } from './api-vote.ts';

/** A Lease in memory, as the API server keeps it. */
class Shared implements LeaseStore {
  stored: StoredLease | undefined;
  isAway = false;
  #version = 0;

  async read() {
    if (this.isAway) throw new ApiError({ message: 'away', status: 503, reason: 'ServiceUnavailable' });
    return this.stored;
  }

  async write(record: StoredLease['record'], version: string | undefined) {
    if (this.isAway) throw new ApiError({ message: 'away', status: 503, reason: 'ServiceUnavailable' });
    if (this.stored?.version !== version) return false;
    this.#version += 1;
    this.stored = { record, version: `${this.#version}` };
    return true;
  }
}

const clock = fastClock(20);
const open = (node: string, store: LeaseStore) => {
  const votes: (readonly [number | undefined, number])[] = [];
  const vote = new ApiVote({ node, store, clock, onVote: (untilMs, epoch) => votes.push([untilMs, epoch]) });
  const stop = new AbortController();
  const done = vote.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await done;
  };
  const isOurs = (): boolean => (votes.at(-1)?.[0] ?? -1) > clock.monotonicMs();
  return { vote, votes, end, isOurs };
};

describe('ApiVote', () => {
  it('is asked for only when it is wanted, kept while it is, and given back', async () => {
    const store = new Shared();
    const { vote, votes, end, isOurs } = open('a', store);
    vote.want(true, 7);
    await eventually('a has it', isOurs);
    assert.deepEqual([store.stored?.record.holder, votes.at(-1)?.[1]], ['a', 7]);
    const first = votes.length;
    await eventually('it is renewed', () => votes.length > first + 2);
    vote.want(false, 7);
    assert.equal(votes.at(-1)?.[0], undefined, 'whoever relied on it knows before it is given back');
    await eventually('it is free', () => store.stored?.record.holder === undefined);
    assert.equal(store.stored?.record.transitions, 7, 'the epoch stays');
    await end();
  });

  it('is one node at a time, and the next one records a later epoch', async () => {
    const store = new Shared();
    const [a, b] = [open('a', store), open('b', store)];
    a.vote.want(true, 3);
    await eventually('a has it', a.isOurs);
    b.vote.want(true, 2);
    await a.end();
    await eventually('b has it when the time of a is over', b.isOurs);
    assert.equal(b.votes.at(-1)?.[1], 4);
    assert.ok(!a.isOurs(), 'a has stopped to count on it before');
    await b.end();
  });

  it('lasts as long as was promised while the API server is away, and no longer', async () => {
    const store = new Shared();
    const { vote, votes, end, isOurs } = open('a', store);
    vote.want(true, 1);
    await eventually('a has it', isOurs);
    store.isAway = true;
    const [untilMs] = votes.at(-1) ?? [];
    await eventually('its time is over', () => !isOurs());
    assert.equal(votes.at(-1)?.[0], untilMs);
    store.isAway = false;
    await eventually('a has it again', isOurs);
    await end();
  });
});
