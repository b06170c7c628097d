import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isMet } from './difference.ts';

test('fields that nobody asked for do not count, those of lists neither', () => {
  const wanted = { spec: { ports: [{ port: 1 }], selector: { a: 'b' } } };
  const actual = { spec: { ports: [{ port: 1, nodePort: 7 }], selector: { a: 'b' }, type: 'ClusterIP' }, status: {} };
  assert.ok(isMet(actual, wanted));
  assert.ok(!isMet({ spec: { ...actual.spec, ports: [...actual.spec.ports, { port: 2 }] } }, wanted));
  assert.ok(!isMet({ spec: { ports: actual.spec.ports } }, wanted));
  assert.ok(isMet({ endpoints: null }, { endpoints: [] }), 'Go writes an empty list as null');
});

test('law: an object meets itself, and itself with more fields', () => {
  const json = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue(), { noNullPrototype: true });
  fc.assert(
    fc.property(json, fc.jsonValue(), (wanted, extra) => {
      assert.ok(isMet(wanted, wanted));
      assert.ok(isMet({ ...wanted, other: extra }, wanted));
    }),
  );
});
