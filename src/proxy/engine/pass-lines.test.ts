import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type LineJudge, passLines } from './pass-lines.ts';

/** Lines that begin with `{f` are final; of others what stands behind the first character is kept. */
const judge: LineJudge = {
  isFinal: (bytes, start) => bytes[start + 1] === 0x66,
  rewritten: (line) => line.toString('latin1').slice(1),
};
const passed = (text: string): string => passLines(Buffer.from(text), judge)?.toString() ?? '';

describe('lines that are passed on', () => {
  it('are final ones as they are and others written anew, each in its place', () => {
    const line = fc.constantFrom('{f1}', '{f22}', '{other}', '{f', '[1]', '', 'x');
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const expected = lines
          .map((each) => (/^\{f.*\}$/.test(each) ? each : each.slice(1)))
          .filter((each) => each !== '')
          .map((each) => `${each}\n`);
        assert.equal(passed(lines.map((each) => `${each}\n`).join('')), expected.join(''));
      }),
    );
  });

  it('are the same bytes when all are final, and nothing when nothing is left', () => {
    const chunk = Buffer.from('{f1}\n{f2}\n');
    assert.equal(passLines(chunk, judge)?.buffer, chunk.buffer);
    assert.equal(passLines(Buffer.from('x\n\n'), judge), undefined);
  });

  it('end with a newline, also when the last one came without', () => {
    assert.equal(passed('{f1}\n{oth'), '{f1}\noth\n');
  });
});
