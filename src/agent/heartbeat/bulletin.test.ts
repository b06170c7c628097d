import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Bulletin } from './bulletin.ts';

type Item =
  | { readonly kind: 'owner'; readonly eip: number }
  | { readonly kind: 'hold'; readonly held: readonly number[] }
  | { readonly kind: 'uplink' };

describe('Bulletin', () => {
  it('posts what a thousand new owners bring about in one turn as one message, with the last of what is held', () => {
    const posted: (readonly Item[])[] = [];
    const turns: (() => void)[] = [];
    const bulletin = new Bulletin<Item>(
      (items) => posted.push(items),
      (callback) => turns.push(callback),
    );
    for (let eip = 0; eip < 1_000; eip += 1) {
      bulletin.tell({ kind: 'owner', eip });
      bulletin.tell({ kind: 'hold', held: [eip] });
    }
    assert.deepEqual([posted.length, turns.length], [0, 1]);
    for (const turn of turns.splice(0)) turn();
    assert.equal(posted.length, 1);
    assert.equal(posted[0]?.length, 1_001);
    assert.deepEqual(
      posted[0]?.filter(({ kind }) => kind === 'hold'),
      [{ kind: 'hold', held: [999] }],
    );
    bulletin.tell({ kind: 'hold', held: [] });
    bulletin.tell({ kind: 'uplink' });
    for (const turn of turns.splice(0)) turn();
    assert.deepEqual(posted[1], [{ kind: 'hold', held: [] }, { kind: 'uplink' }]);
  });
});
