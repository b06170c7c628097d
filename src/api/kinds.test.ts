import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { crdOf, schemaOf } from './crd.ts';
import { isKindName, type KindDescription, type KindName, kinds, resourceOf } from './kinds.ts';
import { faultsOf } from './sentence.ts';
import type { StructuralSchema } from './structural.ts';

const root = join(import.meta.dirname, '..', '..');
const kindNames = Object.keys(kinds).filter(isKindName);

function* fieldsOf(node: StructuralSchema, path: string): Generator<readonly [string, StructuralSchema]> {
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    yield [`${path}.${name}`, child];
    yield* fieldsOf(child, `${path}.${name}`);
  }
  if (node.items) yield* fieldsOf(node.items, `${path}[]`);
  if (node.additionalProperties) yield* fieldsOf(node.additionalProperties, `${path}{}`);
}

interface Manifest {
  readonly kind: KindName;
  readonly apiVersion: string;
}

function objectsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const object: unknown = document.toJS();
    assert.ok(typeof object === 'object' && object !== null && 'kind' in object && 'apiVersion' in object);
    assert.ok(typeof object.kind === 'string' && isKindName(object.kind) && typeof object.apiVersion === 'string');
    return { ...object, kind: object.kind, apiVersion: object.apiVersion };
  });
}

function manifestsIn(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.yaml') && name !== 'configuration.yaml')
    .map((name) => [name, readFileSync(join(root, folder, name), 'utf8')] as const);
}

describe('every kind', () => {
  for (const kind of kindNames) {
    test(`${kind}: every field has a sentence`, () => {
      const silent = [...fieldsOf(schemaOf(kind), kind)]
        .filter(([path]) => path !== `${kind}.metadata`)
        .filter(([, { description }]) => !/^[A-Z`].*\.$/.test(description ?? ''))
        .map(([path]) => path);
      assert.deepEqual(silent, []);
    });

    test(`${kind}: every rule names a field and says what is allowed`, () => {
      const nodes = [
        schemaOf(kind),
        ...[...fieldsOf(schemaOf(kind), kind)].flatMap(([, node]) => [node, node.items ?? {}]),
      ];
      for (const { rule, message } of nodes.flatMap((node) => node['x-kubernetes-validations'] ?? [])) {
        assert.match(message, /\bmust\b/, rule);
        assert.ok(message.length < 260, `short enough to read: ${message}`);
      }
    });
  }

  test('is described to clients by its own data', () => {
    assert.deepEqual(resourceOf('EgressPolicy'), {
      group: 'egressgateway.spidernet.io',
      version: 'v1beta1',
      plural: 'egresspolicies',
      kind: 'EgressPolicy',
      namespaced: true,
    });
    for (const kind of kindNames) {
      const { group, version } = kinds[kind];
      assert.equal(crdOf(kind).spec.names.singular, kind.toLowerCase());
      const parsed = kinds[kind].schema.safeParse({
        apiVersion: `${group}/${version}`,
        kind: 'Other',
        metadata: { name: 'x' },
      });
      assert.ok(
        parsed.error?.issues.some(({ path }) => path[0] === 'kind'),
        `${kind} knows its name`,
      );
      assert.ok(!parsed.error?.issues.some(({ path }) => path[0] === 'apiVersion'), `${kind} knows its version`);
    }
  });

  test('has short names and plurals that no other kind has', () => {
    const names = kindNames.flatMap((kind) => [kinds[kind].plural, ...kinds[kind].shortNames]);
    assert.equal(new Set(names).size, names.length);
  });
});

describe('zod', () => {
  for (const folder of ['test/fixtures/api/valid', 'docs/examples']) {
    for (const [name, text] of manifestsIn(folder)) {
      test(`takes ${folder}/${name}`, () => {
        for (const object of objectsIn(text)) {
          const { schema }: KindDescription = kinds[object.kind];
          const result = schema.safeParse(object);
          assert.ok(result.success, String(result.error));
        }
      });
    }
  }

  for (const [name, text] of manifestsIn('test/fixtures/api/invalid')) {
    test(`refuses invalid/${name}`, () => {
      const field = /^# refused: (\S+): /.exec(text)?.[1] ?? '';
      for (const object of objectsIn(text)) {
        const { schema }: KindDescription = kinds[object.kind];
        const result = schema.safeParse(object);
        assert.ok(!result.success, 'it is refused');
        const sentences = faultsOf(result.error, schemaOf(object.kind), object).map(({ sentence }) => sentence);
        assert.ok(
          sentences.some((sentence) => sentence.startsWith(`${field} `) || sentence.startsWith(`${field}: `)),
          `one of the sentences is about ${field}: ${sentences.join('; ')}`,
        );
      }
    });
  }
});

/** The text up to the parenthesis that closes the one before it. */
const argumentOf = (text: string): string => {
  let depth = 1;
  const end = [...text].findIndex((character) => {
    depth += character === '(' ? 1 : character === ')' ? -1 : 0;
    return depth === 0;
  });
  return text.slice(0, end);
};

test('no rule in CEL goes through a list of the object once for each of its items', () => {
  // 456 rules of a BCSEgress compared with each other took seconds for each write of the object.
  const macro = /\bself(\.\w+)*\.(all|exists|exists_one|map|filter)\(/g;
  for (const kind of kindNames) {
    for (const [, text = ''] of JSON.stringify(crdOf(kind)).matchAll(/"rule":"((?:[^"\\]|\\.)*)"/g)) {
      for (const { index, 0: call } of text.matchAll(macro)) {
        assert.doesNotMatch(argumentOf(text.slice(index + call.length)), new RegExp(macro.source), `${kind}: ${text}`);
      }
    }
  }
});

test('the fixtures are as many as the issue asks for', () => {
  assert.ok(manifestsIn('test/fixtures/api/valid').length >= 25);
  assert.ok(manifestsIn('test/fixtures/api/invalid').length >= 40);
});
