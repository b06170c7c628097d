import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ruleSetOf } from '../core/proxy/plan.ts';
import type { DesiredRules } from './desired.ts';
import { fileRuleStore, memoryRuleStore, type RuleStore } from './kept-rules.ts';

const rules = ruleSetOf(
  'bcs-system/one',
  [
    {
      kind: 'http',
      id: 'shop/a/pay',
      host: { kind: 'exact', name: 'pay.example.com' },
      isTls: true,
      destPort: 443,
    },
  ],
  ['10.0.0.0/8'],
);
const wanted: DesiredRules = { rules, egresses: new Map([['shop/a', 3]]) };

describe('kept rules', () => {
  let folder: string;
  let file: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-kept-'));
    file = join(folder, 'rules.json');
  });
  after(() => rm(folder, { recursive: true }));

  const kinds: readonly [string, () => RuleStore][] = [
    ['in a file', () => fileRuleStore(file)],
    ['in memory', memoryRuleStore],
  ];
  for (const [where, make] of kinds) {
    it(`come back as they were, ${where}, and only for their own controller`, async () => {
      const kept = make();
      assert.equal(await kept.read('bcs-system/one'), undefined);
      await kept.write(wanted);
      assert.deepEqual(await kept.read('bcs-system/one'), wanted);
      assert.equal(await kept.read('bcs-system/two'), undefined);
    });
  }

  it('are not used when the file was changed, cut or is something else', async () => {
    const kept = fileRuleStore(file);
    await kept.write(wanted);
    const text = await readFile(file, 'utf8');
    for (const other of [text.replace('pay.example.com', 'bad.example.com'), text.slice(0, 40), '', '[]', 'null']) {
      await writeFile(file, other);
      assert.equal(await kept.read('bcs-system/one'), undefined, other);
    }
  });
});
