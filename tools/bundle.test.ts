import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import packageJson from '../package.json' with { type: 'json' };
import { bundle } from './bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-bundle-'));
after(() => rmSync(folder, { recursive: true }));
const made = await bundle(folder);
const run = (...argv: readonly string[]): string =>
  execFileSync(process.execPath, argv, { cwd: '/', encoding: 'utf8' });

test('the bundle runs far from the tree and is the same program', () => {
  assert.equal(run(made.main, '--version').trim(), packageJson.version);
  const tree = join(import.meta.dirname, '..', 'src', 'main.ts');
  assert.equal(run(made.main, 'crds'), run(tree, 'crds'));
});

test('every command of the program is in the bundle, and says what it takes', () => {
  const commands = [...run(made.main, '--help').matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name);
  assert.ok(commands.includes('controller'), commands.join(', '));
  for (const command of commands) assert.match(run(made.main, command, '--help'), new RegExp(`sallyport ${command}`));
});

test('the native addon lies beside the bundle and can be loaded from there', () => {
  const probe = join(folder, 'probe.js');
  writeFileSync(probe, "const { default: koffi } = await import('koffi'); console.log(typeof koffi.load(null).func);");
  assert.equal(run(probe).trim(), 'function');
});

test('the same sources give the same digest, so that nothing is rolled out for nothing', async () => {
  assert.equal((await bundle(join(folder, 'again'))).digest, made.digest);
});
