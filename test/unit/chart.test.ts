/** What the chart says about the configuration and about itself agrees with the sources it was copied from. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
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
});
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
      if (!(key in known)) problems.push(`${at}.${key}: not in values.yaml`);
      else walk(`${at}.${key}`, known[key], child);
    }
  };
  walk('', values, valuesSchema);
  assert.deepEqual(problems, []);
});
