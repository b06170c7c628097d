/** What the chart says about the configuration and about itself agrees with the sources it was copied from. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { Config, configSchema } from '../../src/api/config.ts';

const chart = join(import.meta.dirname, '..', '..', 'charts', 'sallyport');
const read = (file: string): string => readFileSync(join(chart, file), 'utf8');

/** As much of a JSON schema as the walk below needs. */
const Schema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  additionalProperties: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  $comment: z.string().optional(),
});
/** Marks keys that our values do not have. */
const otherChart = 'egressgateway 0.6';
const valuesSchema = Schema.required({ properties: true }).parse(JSON.parse(read('values.schema.json')));
const values = z.record(z.string(), z.unknown()).parse(parse(read('values.yaml')));

describe('configuration', () => {
  test('the values hold every key of the configuration, at its default', () => {
    assert.deepEqual(values.config, Config.parse({}));
  });

  test('the schema of the values judges the configuration by the schema of src/api/config.ts', () => {
    const { $schema, ...wanted } = z.toJSONSchema(Config, { io: 'input' });
    assert.deepEqual(valuesSchema.properties.config, wanted, 'copy what is expected here into values.schema.json');
  });

  test('pods are rolled out for exactly the keys that need a restart of all processes', () => {
    const features = configSchema().properties?.feature?.properties ?? {};
    const needed = Object.keys(features).filter((key) =>
      /all processes restart/.test(features[key]?.description ?? ''),
    );
    const [, picked = ''] = /pick \([^)]*\)((?: "\w+")+)/.exec(read('templates/_names.tpl')) ?? [];
    assert.deepEqual(picked.match(/\w+/g), needed);
  });
});

test('chart and program have the same version', () => {
  const { version, appVersion } = z
    .object({ version: z.string(), appVersion: z.string() })
    .parse(parse(read('Chart.yaml')));
  assert.deepEqual([version, appVersion], [packageJson.version, packageJson.version]);
});

test('every value is in the schema, every key of the schema has a value, and unknown keys are refused everywhere', () => {
  const problems: string[] = [];
  const walk = (at: string, value: unknown, rawSchema: unknown): void => {
    const schema = Schema.parse(rawSchema);
    if (schema.properties === undefined) return;
    if (schema.additionalProperties !== false) problems.push(`${at}: unknown keys are not refused`);
    const known = z.record(z.string(), z.unknown()).parse(value);
    for (const key of Object.keys(known)) if (!(key in schema.properties)) problems.push(`${at}.${key}: not in schema`);
    for (const [key, child] of Object.entries(schema.properties)) {
      // A parent chart's, not ours.
      if (at === '' && key === 'global') continue;
      if (Schema.parse(child).$comment === otherChart) continue;
      if (!(key in known)) problems.push(`${at}.${key}: not in values.yaml`);
      else walk(`${at}.${key}`, known[key], child);
    }
  };
  walk('', values, valuesSchema);
  assert.deepEqual(problems, []);
});

describe('a values file of egressgateway', () => {
  const reasons = z.record(z.string(), z.string());
  const table = z
    .strictObject({ applied: reasons, converted: z.array(z.string()), ignored: reasons })
    .parse(parse(read('files/egressgateway-values.yaml')));
  const known = [...Object.keys(table.applied), ...table.converted, ...Object.keys(table.ignored)];

  test('every key of it that the schema takes is applied, converted or named as ignored, and no other', () => {
    const taken: string[] = [];
    const walk = (at: string, rawSchema: unknown, isTheirs: boolean): void => {
      const { properties, $comment, additionalProperties } = Schema.parse(rawSchema);
      const isNowTheirs = isTheirs || $comment === otherChart;
      if (isNowTheirs && properties === undefined) taken.push(at);
      if (isNowTheirs && properties !== undefined) assert.equal(additionalProperties, false, `${at}: unknown keys`);
      for (const [key, child] of Object.entries(properties ?? {})) {
        if (at !== '' || key !== 'config') walk(at === '' ? key : `${at}.${key}`, child, isNowTheirs);
      }
    };
    walk('', valuesSchema, false);
    // A parent chart may pass anything under global, so that the schema does not list what is ignored there.
    const listed = known.filter((key) => !key.startsWith('global.') || !(key in table.ignored));
    assert.deepEqual(taken.toSorted(), listed.toSorted());
  });

  test('what it is applied to is a value of ours', () => {
    const valueAt = (path: string): unknown =>
      path.split('.').reduce<unknown>((value, key) => z.record(z.string(), z.unknown()).parse(value)[key], values);
    for (const target of Object.values(table.applied)) assert.notEqual(valueAt(target), undefined, target);
  });

  test('every template looks at it before anything else', () => {
    const templates = globSync('templates/**/*', { cwd: chart, withFileTypes: true }).filter((entry) => entry.isFile());
    const files = templates
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((file) => !file.endsWith('.tpl'));
    assert.ok(files.length > 20, `${files.length} files`);
    for (const file of files) {
      assert.match(readFileSync(file, 'utf8'), /^\{\{- include "sallyport\.adopt" \. -\}\}\n/, file);
    }
  });

  test('the example of the tests has every key', () => {
    const example = parse(
      readFileSync(join(import.meta.dirname, '../fixtures/chart/egressgateway-values.yaml'), 'utf8'),
    );
    for (const key of known) {
      const value = key.split('.').reduce((place: unknown, name) => z.looseObject({}).parse(place)[name], example);
      assert.notEqual(value, undefined, key);
    }
  });
});
