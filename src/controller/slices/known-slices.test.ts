import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { policyKey } from '../../core/cluster/view.ts';
import { ManualClock } from '../../runtime/process/clock.ts';
import type { CachedSlice } from '../loop/caches.ts';
import { SliceIndex } from './known-slices.ts';

const slice = (policy: string, { uid = 'u', generation = 1 } = {}): CachedSlice => ({
  identity: { name: 's', namespace: 'red', uid, resourceVersion: '1', generation, isDeleting: false, finalizers: [] },
  policy,
  generateName: `${policy}-`,
  owners: [],
  endpoints: [],
});
const put = (value: CachedSlice) => ({ kind: 'put', key: 'red/s', value, previous: undefined }) as const;
const gone = { kind: 'delete', key: 'red/s', previous: slice('a') } as const;
const [a, b] = [policyKey('red', 'a'), policyKey('red', 'b')];
const never = new AbortController().signal;

describe('KnownSlices', () => {
  it('files slices by policy, and names the old and the new one when a slice moves', () => {
    const known = new SliceIndex();
    assert.deepEqual(known.take(put(slice('a'))), [a]);
    assert.deepEqual(known.take(put(slice('b'))), [a, b]);
    assert.deepEqual([known.of(a).length, known.of(b).length, [...known.policies()]], [0, 1, [b]]);
    assert.deepEqual(known.take(gone), [b]);
    assert.deepEqual([...known.policies()], []);
  });

  it('waits until the caches show the generation that was written', async () => {
    const known = new SliceIndex();
    known.take(put(slice('a', { generation: 4 })));
    const clock = new ManualClock();
    let shown: boolean | undefined;
    const wait = known.shown([{ key: 'red/s', uid: 'u', generation: 5 }], clock, 1_000, never).then((isShown) => {
      shown = isShown;
    });
    known.take(put(slice('a', { generation: 4 })));
    await clock.advance(500);
    assert.equal(shown, undefined, 'an older one is not enough');
    known.take(put(slice('a', { generation: 6 })));
    await wait;
    assert.equal(shown, true, 'a younger one is');
  });

  it('ends the wait when the slice that was written goes again', async () => {
    const known = new SliceIndex();
    const wait = known.shown([{ key: 'red/s', uid: 'u', generation: 5 }], new ManualClock(), 1_000, never);
    known.take(gone);
    assert.equal(await wait, true);
  });

  it('waits until a removed slice is gone, and takes one that was made anew for gone', async () => {
    const write = { key: 'red/s', uid: 'u', generation: 'gone' } as const;
    for (const change of [gone, put(slice('a', { uid: 'another' }))]) {
      const known = new SliceIndex();
      known.take(put(slice('a')));
      const wait = known.shown([write], new ManualClock(), 1_000, never);
      known.take(change);
      assert.equal(await wait, true);
    }
  });

  it('ends the wait when the time is over, when it is told to, and at once when there is nothing to wait for', async () => {
    const known = new SliceIndex();
    const clock = new ManualClock();
    const write = { key: 'red/s', uid: 'u', generation: 1 };
    const late = known.shown([write], clock, 1_000, never);
    await clock.advance(1_000);
    assert.equal(await late, false);
    assert.equal(await known.shown([write], clock, 1_000, AbortSignal.abort()), false);
    known.take(put(slice('a')));
    assert.equal(await known.shown([write], clock, 1_000, never), true);
  });
});
