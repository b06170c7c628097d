import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VersionedSet } from './versioned-set.ts';

const of = (entries: Readonly<Record<string, string>>) =>
  new Map(Object.entries(entries).map(([name, value]) => [name, { value }]));

describe('VersionedSet', () => {
  it('tells whether something changed', () => {
    const set = new VersionedSet();
    assert.ok(set.set(of({ a: '1' }), 1));
    assert.ok(!set.set(of({ a: '1' }), 2));
    assert.ok(set.set(of({ a: '2' }), 3));
    assert.ok(set.set(of({ a: '2', b: '1' }), 4));
    assert.ok(set.set(of({ b: '1' }), 5));
    assert.deepEqual([set.has('a'), set.has('b')], [false, true]);
    assert.deepEqual(JSON.parse(set.fileText(5)), { version_info: '5', resources: [{ value: '1' }] });
  });

  it('knows what is in force as it last changed', () => {
    const set = new VersionedSet();
    set.set(of({ a: '1', b: '1' }), 1);
    set.set(of({ a: '1', b: '2', c: '1' }), 2);
    const inForce = (versions: Readonly<Record<string, number>>) => (name: string) => versions[name];
    assert.deepEqual(set.notIn(inForce({ a: 1, b: 2, c: 2 })), []);
    assert.deepEqual(set.notIn(inForce({ a: 1, b: 1 })), ['b', 'c']);
    // A program that was started again read all of the newest file.
    assert.deepEqual(set.notIn(inForce({ a: 2, b: 2, c: 2 })), []);
  });

  it('keeps others when asked to', () => {
    const set = new VersionedSet();
    set.set(of({ a: '1' }), 1);
    assert.ok(set.set(of({ b: '1' }), 2, true));
    assert.deepEqual([set.has('a'), set.has('b')], [true, true]);
    assert.ok(!set.set(of({ b: '1' }), 3, true));
  });

  it('gives again what was refused, once', () => {
    const set = new VersionedSet();
    set.set(of({ a: '1' }), 1);
    set.retry(['a']);
    assert.ok(set.set(of({ a: '1' }), 2));
    assert.deepEqual(
      set.notIn(() => 1),
      ['a'],
    );
    assert.ok(!set.set(of({ a: '1' }), 3));
  });
});
