import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from './lines.ts';

function split(chunks: readonly Buffer[], maxBytes = 1_000_000): string[] {
  const splitter = new LineSplitter(maxBytes);
  return chunks.flatMap((chunk) => [...splitter.push(chunk)]);
}

test('lines do not depend on how the bytes are cut, even inside a character', () => {
  const lineText = fc.string({ unit: fc.constantFrom('a', '"', 'é', '€', '😀'), minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(fc.array(lineText, { maxLength: 20 }), fc.array(fc.nat(200), { maxLength: 30 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
      const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
      const chunks = edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
      assert.deepEqual(split(chunks), lines);
    }),
  );
});

test('a line without its end is not a line yet', () => {
  assert.deepEqual(split([Buffer.from('a\nb')]), ['a']);
});

test('empty lines are left out', () => {
  assert.deepEqual(split([Buffer.from('\n\na\n\n')]), ['a']);
});

test('a line that does not end is refused before it eats the memory', () => {
  assert.throws(() => split([Buffer.from('12345'), Buffer.from('67890')], 8), RangeError);
});
