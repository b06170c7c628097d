import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { LabelSelector } from '../../api/label-selector.ts';
import {
  compileSelector,
  covers,
  everything,
  type Labels,
  matches,
  nothing,
  type Selector,
  tokensOfLabels,
} from './labels.ts';

const compiled = (selector: LabelSelector | undefined): Selector => {
  const result = compileSelector(selector, 'EgressPolicy red/p: podSelector');
  assert.ok(result.ok);
  return result.value;
};

const sentence = (selector: LabelSelector): string => {
  const result = compileSelector(selector, 'EgressPolicy red/p: podSelector');
  assert.ok(!result.ok);
  return `${result.finding.reason}: ${result.finding.sentence}`;
};

const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3'), { maxKeys: 3 });
const requirement = fc.oneof(
  fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    operator: fc.constantFrom('In' as const, 'NotIn' as const),
    values: fc.uniqueArray(fc.constantFrom('1', '2', '3'), { minLength: 1 }),
  }),
  fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const),
  }),
);
const selector = fc
  .array(requirement, { maxLength: 3 })
  .map((matchExpressions): Selector => compiled({ matchExpressions }));

describe('matches', () => {
  const cases: readonly [string, LabelSelector, Labels, boolean][] = [
    ['a label with its value', { matchLabels: { app: 'shop' } }, { app: 'shop', x: 'y' }, true],
    ['another value', { matchLabels: { app: 'shop' } }, { app: 'web' }, false],
    ['In', { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b'] }] }, { app: 'b' }, true],
    ['NotIn of an absent label', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['a'] }] }, {}, true],
    [
      'NotIn of a listed value',
      { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['a'] }] },
      { app: 'a' },
      false,
    ],
    ['Exists', { matchExpressions: [{ key: 'app', operator: 'Exists' }] }, { app: '' }, true],
    ['DoesNotExist', { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, { app: '' }, false],
    [
      'all requirements together',
      { matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] },
      { a: '1' },
      false,
    ],
  ];
  for (const [name, given, on, expected] of cases) {
    it(name, () => assert.equal(matches(compiled(given), on), expected));
  }

  it('everything is matched by no requirement, and nothing by the stand-in', () => {
    assert.ok(matches(everything, {}) && matches(compiled(undefined), { a: '1' }));
    assert.ok(!matches(nothing, {}) && !matches(nothing, { nothing: 'x' }));
  });
});

describe('compileSelector', () => {
  it('does not depend on how the selector was written', () => {
    const one = compiled({ matchLabels: { b: '1', a: '2' } });
    const other = compiled({
      matchExpressions: [
        { key: 'a', operator: 'In', values: ['2', '2'] },
        { key: 'b', operator: 'In', values: ['1'] },
      ],
    });
    assert.deepEqual(one, other);
  });

  it('refuses what no label can be, and says where', () => {
    assert.equal(
      sentence({ matchLabels: { 'a b': 'x' } }),
      'SelectorInvalid: EgressPolicy red/p: podSelector has the label key "a b", which no label can have. Correct the key, operator or value that the message names.',
    );
    assert.match(sentence({ matchLabels: { app: '-x' } }), /asks app for the value "-x"/);
    assert.match(sentence({ matchLabels: { 'Upper.io/app': 'x' } }), /label key "Upper.io\/app"/);
  });

  it('takes prefixed keys and empty values', () => {
    assert.ok(compileSelector({ matchLabels: { 'kubernetes.io/os': '' } }, 'x').ok);
  });
});

describe('covers', () => {
  it('never says so when something is matched by the inner selector alone', () => {
    fc.assert(
      fc.property(selector, selector, labels, (outer, inner, on) => {
        if (covers(outer, inner) && matches(inner, on)) assert.ok(matches(outer, on));
      }),
      { numRuns: 2000 },
    );
  });

  it('holds for a selector and itself, and for fewer requirements', () => {
    const wide = compiled({ matchLabels: { a: '1' } });
    const narrow = compiled({ matchLabels: { a: '1', b: '2' } });
    assert.ok(covers(wide, wide) && covers(wide, narrow) && covers(everything, wide) && !covers(narrow, wide));
  });
});

describe('anchors', () => {
  it('find every match: whatever a selector matches has one of its anchors', () => {
    fc.assert(
      fc.property(selector, labels, (given, on) => {
        if (!matches(given, on)) return;
        const tokens = new Set(tokensOfLabels(on));
        assert.ok(given.anchors.some((anchor) => tokens.has(anchor)));
      }),
      { numRuns: 2000 },
    );
  });

  it('find every selector that covers another', () => {
    fc.assert(
      fc.property(selector, selector, (outer, inner) => {
        if (covers(outer, inner)) assert.ok(outer.anchors.some((anchor) => inner.tokens.includes(anchor)));
      }),
      { numRuns: 2000 },
    );
  });
});
