import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { aligned, coloured, indented, plain, printable } from './text.ts';

describe('aligned', () => {
  const rows = [['NAME', 'READY'], ['a-long-name', { text: '1/2', tone: 'bad' }, 'x'], ['b']] as const;

  it('lines columns up and leaves no blanks at the end', () => {
    assert.deepEqual(aligned(rows, plain), ['NAME         READY', 'a-long-name  1/2    x', 'b']);
  });

  it('looks the same in colours', () => {
    const seen = aligned(rows, coloured).map((line) => stripVTControlCharacters(line));
    assert.deepEqual(seen, aligned(rows, plain));
    assert.ok(aligned(rows, coloured)[1]?.includes('\u001b[31m1/2\u001b[0m'), 'the colour ends with the word');
  });
});

describe('printable', () => {
  it('keeps a text from steering the terminal', () => {
    assert.equal(printable('a\u001b[2Jb\nc\td'), 'a [2Jb c d');
  });
});

describe('indented', () => {
  it('leaves empty lines empty', () => assert.deepEqual(indented(['a', '']), ['  a', '']));
});
