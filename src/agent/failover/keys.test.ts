import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keyBytes, keysIn } from './keys.ts';

const secret = (data: object) => ({ metadata: { name: 'sallyport-heartbeat' }, data }) as never;
const [long, other] = [Buffer.alloc(32, 1).toString('base64'), Buffer.alloc(48, 2).toString('base64')];

describe('the keys of a Secret', () => {
  it('are the present one and, while it changes, the one before', () => {
    assert.deepEqual(keysIn(secret({ previous: other, key: long })), [long, other]);
    assert.deepEqual(keysIn(secret({ key: long })), [long]);
    assert.deepEqual(
      keyBytes([long, other]).map(({ length }) => length),
      [32, 48],
    );
  });

  it('are none where they are missing or too short to keep a secret', () => {
    assert.equal(keysIn(secret({})), undefined);
    assert.equal(keysIn({ metadata: { name: 'x' } } as never), undefined);
    assert.equal(keysIn(secret({ key: Buffer.alloc(31).toString('base64') })), undefined);
    assert.deepEqual(keysIn(secret({ key: 7, previous: long })), [long]);
  });
});
