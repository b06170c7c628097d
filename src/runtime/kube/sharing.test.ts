import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { sharing } from './sharing.ts';

describe('sharing', () => {
  it('keeps the parts that say the same, and only those', () => {
    const before = { spec: { pods: ['a'] }, status: { node: 'n1', list: [{ x: 1n }, { x: 2n }] } };
    const after = sharing(before, { spec: { pods: ['a'] }, status: { node: 'n2', list: [{ x: 1n }, { x: 3n }] } });
    assert.equal(after.spec, before.spec);
    assert.equal(after.status.list[0], before.status.list[0]);
    assert.deepEqual(after.status, { node: 'n2', list: [{ x: 1n }, { x: 3n }] });
    assert.notEqual(after.status.list[1], before.status.list[1]);
  });

  it('tells an absent part from an undefined one', () => {
    const before: { a?: number | undefined } = {};
    const after = sharing(before, { a: undefined });
    assert.notEqual(after, before);
    assert.ok('a' in after);
    assert.ok(!('a' in sharing(after, {})));
  });

  it('keeps a name that means something to JavaScript', () => {
    const named: unknown = JSON.parse('{"__proto__":"a"}');
    assert.deepEqual(sharing<unknown>({}, named), named);
    assert.deepEqual(Object.keys(Object(sharing<unknown>({}, named))), ['__proto__']);
  });

  it('compares what is neither a list nor a record as a whole', () => {
    const before = { at: new Date(5), names: new Set(['a']) };
    const after = sharing(before, { at: new Date(5), names: new Set(['b']) });
    assert.equal(after.at, before.at);
    assert.deepEqual(after.names, new Set(['b']));
  });

  it('gives the old value exactly when both are equal, and else one that equals the new', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), (previous, value) => {
        const result = sharing(previous, value);
        assert.deepStrictEqual(result, value);
        if (isDeepStrictEqual(previous, value)) assert.ok(Object.is(result, previous));
        assert.ok(Object.is(sharing(previous, structuredClone(previous)), previous));
      }),
    );
  });
});
