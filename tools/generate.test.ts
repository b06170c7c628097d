import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { Config } from '../src/api/config.ts';
import { crdOf } from '../src/api/crd.ts';
import { errorCodes } from '../src/api/error.ts';
import { type KindDescription, kinds } from '../src/api/kinds.ts';
import { reasons } from '../src/api/reasons.ts';
import { crdFolder, kindNames, madeMark } from './generate/crds.ts';
import { fieldRows } from './generate/fields.ts';
import { exampleFolder, pageName, referenceFolder } from './generate/reference.ts';
import { outputs, staleFiles, writeOutputs } from './generate.ts';

const root = join(import.meta.dirname, '..');
const readExample = (name: string) => readFileSync(join(root, exampleFolder, name), 'utf8');
const wanted = outputs(readExample);
const page = (name: string) =>
  wanted.get(join(referenceFolder, `${name}.md`)) ?? assert.fail(`there is a page ${name}`);

test('the committed files are up to date', () => {
  assert.deepEqual(staleFiles(root, wanted), []);
});

test('the same input gives the same files', () => {
  assert.deepEqual(outputs(readExample), wanted);
});

test('a folder is complete after writing, and each change is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'generate-'));
  try {
    writeOutputs(folder, wanted);
    assert.deepEqual(staleFiles(folder, wanted), []);
    const changed = join(crdFolder, 'egressgateway.spidernet.io_egressgateways.yaml');
    const missing = join(referenceFolder, 'errors.md');
    const extra = join(referenceFolder, 'egress-node.md');
    writeFileSync(join(folder, changed), '# edited by hand\n');
    rmSync(join(folder, missing));
    writeFileSync(join(folder, extra), `<!-- ${madeMark} -->\n`);
    writeFileSync(join(folder, referenceFolder, 'written-by-hand.md'), 'This stays.\n');
    assert.deepEqual(staleFiles(folder, wanted), [
      `${changed} is stale`,
      `${missing} is missing`,
      `${extra} is not made any more`,
    ]);
    writeOutputs(folder, wanted);
    assert.deepEqual(staleFiles(folder, wanted), []);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an unknown flag is refused with exit code 2', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'tools', 'generate.ts'), '--chek'], {
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.match(stderr, /--chek/);
});

test('the YAML of a CRD reads back as the CRD', () => {
  for (const kind of kindNames) {
    const { group, plural } = kinds[kind];
    assert.deepEqual(
      parse(wanted.get(join(crdFolder, `${group}_${plural}.yaml`)) ?? ''),
      JSON.parse(JSON.stringify(crdOf(kind))),
    );
  }
});

test('the pages name every kind, reason and error', () => {
  for (const kind of kindNames) assert.ok(page('README').includes(`[${kind}](${pageName(kind)}.md)`), kind);
  for (const reason of Object.keys(reasons)) assert.ok(page('conditions').includes(`| \`${reason}\` |`), reason);
  for (const code of Object.keys(errorCodes)) assert.ok(page('errors').includes(`| \`${code}\` |`), code);
});

test('the example of every page is taken by zod', () => {
  const exampleOf = (name: string): unknown => parse(/```yaml\n(.*?)```/s.exec(page(name))?.[1] ?? assert.fail(name));
  for (const kind of kindNames) {
    const { schema }: KindDescription = kinds[kind];
    schema.parse(exampleOf(pageName(kind)));
  }
  Config.parse(exampleOf('configuration'));
});

test('rows give the path, type, default and rules of a field', () => {
  const rows = fieldRows({
    type: 'object',
    required: ['list'],
    properties: {
      list: {
        description: 'Things.',
        type: 'array',
        maxItems: 3,
        items: {
          type: 'object',
          properties: { port: { description: 'A port.', type: 'integer', default: 80, minimum: 1 } },
        },
      },
      byName: {
        description: 'More.',
        type: 'object',
        additionalProperties: { type: 'object', properties: { on: { description: 'On.', type: 'boolean' } } },
      },
    },
  });
  assert.deepEqual(rows, [
    { path: 'list', type: 'list of object', default: '', meaning: 'Things.', rules: ['required', 'at most 3 entries'] },
    { path: 'list[].port', type: 'integer', default: '`80`', meaning: 'A port.', rules: ['at least 1'] },
    { path: 'byName', type: 'map of object', default: '', meaning: 'More.', rules: [] },
    { path: 'byName{}.on', type: 'boolean', default: '', meaning: 'On.', rules: [] },
  ]);
});
