import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { Gathering } from './gathering.ts';

const times = { quietMs: 20, limitMs: 100 };

/** A gathering with a loop that counts its bursts. */
const counted = () => {
  const clock = new ManualClock();
  const gathering = new Gathering(clock);
  const stop = new AbortController();
  let bursts = 0;
  const ended = (async () => {
    while (await gathering.burst(times, stop.signal)) bursts += 1;
  })();
  return { clock, gathering, stop, ended, bursts: () => bursts };
};

describe('Gathering', () => {
  it('joins changes that come close together', async () => {
    const { clock, gathering, bursts } = counted();
    for (let index = 0; index < 4; index += 1) {
      gathering.tell();
      await clock.advance(10);
    }
    assert.equal(bursts(), 0);
    await clock.advance(20);
    assert.equal(bursts(), 1);
    await clock.advance(1_000);
    assert.equal(bursts(), 1, 'without a change there is no burst');
  });

  it('cuts a burst that does not end', async () => {
    const { clock, gathering, bursts } = counted();
    for (let index = 0; index < 30; index += 1) {
      gathering.tell();
      await clock.advance(10);
    }
    assert.equal(bursts(), 3);
  });

  it('does not lose a change that comes while a burst is worked on', async () => {
    const clock = new ManualClock();
    const gathering = new Gathering(clock);
    const { signal } = new AbortController();
    gathering.tell();
    const first = gathering.burst(times, signal);
    await clock.advance(20);
    assert.equal(await first, true);
    gathering.tell();
    const second = gathering.burst(times, signal);
    await clock.advance(20);
    assert.equal(await second, true);
  });

  it('ends at once when it is stopped, with or without a change', async () => {
    const { stop, ended, bursts } = counted();
    stop.abort();
    await ended;
    assert.equal(bursts(), 0);
  });
});
