import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { objectOf } from './object-meta.ts';
import { withRules } from './rule.ts';
import { lower } from './structural.ts';

const anyRule = { rule: 'size(self) > 0', message: 'must not be empty', holds: () => true };

describe('lower', () => {
  test('keeps what Kubernetes knows, in a fixed order of keys', () => {
    const schema = z.object({
      mode: z.enum(['a', 'b']).default('a').describe('The mode.'),
      ports: z.array(z.int().min(1).max(65535)).max(8).optional(),
      labels: z.record(z.string(), z.string()).optional(),
      size: z.union([z.int(), z.string()]).optional(),
    });
    assert.deepEqual(
      JSON.stringify(lower(schema, 'T')),
      JSON.stringify({
        type: 'object',
        properties: {
          mode: { description: 'The mode.', type: 'string', enum: ['a', 'b'], default: 'a' },
          ports: { type: 'array', maxItems: 8, items: { type: 'integer', minimum: 1, maximum: 65535 } },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          size: { 'x-kubernetes-int-or-string': true },
        },
      }),
    );
  });

  test('makes a field with a default optional and another one required', () => {
    const schema = z.object({
      a: z.string(),
      b: z.string().default('x'),
      c: z.object({ d: z.int().default(1) }).prefault({}),
    });
    const { required, properties } = lower(schema, 'T');
    assert.deepEqual(required, ['a']);
    assert.deepEqual(properties?.c?.default, {});
  });

  test('writes no limits that nobody asked for, and does not forbid unknown fields', () => {
    assert.deepEqual(lower(z.strictObject({ n: z.int() }), 'T'), {
      type: 'object',
      required: ['n'],
      properties: { n: { type: 'integer' } },
    });
  });

  const refusals: readonly (readonly [string, z.ZodType, RegExp])[] = [
    ['a union', z.object({ a: z.union([z.string(), z.boolean()]) }), /^Error: T\.a: "anyOf" has no place/],
    ['a nested tuple', z.object({ a: z.array(z.tuple([z.string()])) }), /^Error: T\.a\[\]\[\]: /],
    ['anything', z.object({ a: z.record(z.string(), z.unknown()) }), /^Error: T\.a\{\}: the type is missing/],
    ['a date', z.object({ a: z.date() }), /Date/],
    [
      'an endless string under a rule',
      z.object({ a: withRules(z.string(), anyRule) }),
      /^Error: T\.a: a string under a rule/,
    ],
    [
      'an endless list below a rule',
      withRules(z.object({ a: z.array(z.int()) }), anyRule),
      /^Error: T\.a: a list under a rule/,
    ],
    [
      'an endless map below a rule',
      withRules(z.object({ a: z.record(z.string(), z.string().max(1)) }), anyRule),
      /^Error: T\.a: a map under a rule/,
    ],
    [
      'a rule of the whole object that reads more than metadata',
      withRules(objectOf('g/v1', 'T', { spec: z.object({}) }), { ...anyRule, rule: 'has(self.spec)' }),
      /^Error: T: a rule of the whole object may read self\.metadata only/,
    ],
  ];
  for (const [name, schema, message] of refusals) {
    test(`refuses ${name}, naming the field`, () => assert.throws(() => lower(schema, 'T'), message));
  }

  test('lets a rule of the whole object read the name', () => {
    const schema = withRules(objectOf('g/v1', 'T', { a: z.string() }), {
      ...anyRule,
      rule: "self.metadata.name == 'x'",
    });
    assert.equal(lower(schema, 'T')['x-kubernetes-validations']?.length, 1);
  });
});

describe('withRules', () => {
  const schema = withRules(z.string().max(9).describe('A word.'), {
    rule: "self != ''",
    message: 'word must not be empty',
    fieldPath: '.x',
    holds: (text) => text !== '',
  });

  test('lets zod judge', () => {
    assert.equal(schema.safeParse('a').success, true);
    assert.equal(schema.safeParse('').error?.issues[0]?.message, 'word must not be empty');
  });

  test('puts the rule without its TypeScript half into the CRD, and keeps the description', () => {
    assert.deepEqual(lower(schema.optional(), 'T'), {
      description: 'A word.',
      type: 'string',
      maxLength: 9,
      'x-kubernetes-validations': [{ rule: "self != ''", message: 'word must not be empty', fieldPath: '.x' }],
    });
  });
});
