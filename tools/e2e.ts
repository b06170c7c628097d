import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { requireNode } from '../src/runtime/process/node-version.ts';

/**
 * Runs the tests that need root: those of the kernel in namespaces of their own, then the end-to-end tests. One file
 * after the other, because most have a cluster of their own and two cores are soon busy. Arguments choose files by a part
 * of their path: `tools/e2e.ts power api`, `tools/e2e.ts kernel`.
 */
requireNode();
const wanted = process.argv.slice(2);
const files = ['test/kernel', 'test/e2e']
  .flatMap((folder) => globSync(`${folder}/*.test.ts`).sort())
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
if (files.length === 0) {
  process.stderr.write(`e2e: no test file has ${wanted.join(' or ')} in its name\n`);
  process.exit(2);
}
const argv = [
  '--test',
  '--test-concurrency=1',
  '--test-timeout=900000',
  '--test-reporter=spec',
  '--test-force-exit',
  ...files,
];
const { status } = spawnSync(process.execPath, argv, { stdio: 'inherit' });
process.exit(status ?? 1);
