import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { InternedRules, MOST_INTERNED } from './known-rules.ts';

const QUOTE = 0x22;
const lineOf = (id: string): Buffer => Buffer.from(`{"rule":"${id}","more":1}`);
const FROM = '{"rule":"'.length;

describe('known rules', () => {
  it('are found by their bytes, whatever was asked before', () => {
    const id = fc.stringMatching(/^[a-c/.-]{0,6}$/);
    fc.assert(
      fc.property(fc.array(id, { maxLength: 40 }), (ids) => {
        const known = new InternedRules();
        assert.deepEqual(
          ids.map((one) => known.at(lineOf(one), FROM, QUOTE).id),
          ids,
        );
        assert.equal(known.count, new Set(ids).size);
      }),
    );
  });

  it('are told apart when their sums are the same', () => {
    const known = new InternedRules();
    // 31 * 'a' + 'b' is 31 * 'b' + 'C'.
    assert.equal(known.at(lineOf('ab'), FROM, QUOTE).id, 'ab');
    assert.equal(known.at(lineOf('bC'), FROM, QUOTE).id, 'bC');
    assert.equal(known.at(lineOf('ab'), FROM, QUOTE).id, 'ab');
    assert.equal(known.count, 2);
  });

  it('do not become more and more while rules come and go', () => {
    const known = new InternedRules();
    for (let index = 0; index < 5 * MOST_INTERNED; index += 1) {
      const id = `team/egress/rule-${index}`;
      assert.equal(known.at(lineOf(id), FROM, QUOTE).id, id);
      assert.equal(known.at(lineOf('team/egress/stays'), FROM, QUOTE).id, 'team/egress/stays');
      assert.ok(known.count <= MOST_INTERNED);
    }
  });

  it('keep their bytes when those of the line are used again', () => {
    const known = new InternedRules();
    const line = lineOf('first');
    const rule = known.at(line, FROM, QUOTE);
    const again = lineOf('first');
    line.fill(0);
    assert.ok(rule.isAt(new DataView(again.buffer, again.byteOffset, again.length), FROM, QUOTE));
    assert.equal(known.at(again, FROM, QUOTE), rule);
  });

  it('are where their bytes are, whole', () => {
    const id = fc.stringMatching(/^[a-b/]{4,9}$/);
    fc.assert(
      fc.property(id, id, (one, other) => {
        const rule = new InternedRules().at(lineOf(one), FROM, QUOTE);
        const line = lineOf(other);
        assert.equal(rule.isAt(new DataView(line.buffer, line.byteOffset, line.length), FROM, QUOTE), one === other);
        // Nothing is read behind the end.
        assert.equal(rule.isAt(new DataView(line.buffer, line.byteOffset, FROM + other.length), FROM, QUOTE), false);
      }),
    );
  });
});
