import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { requireNode } from '../src/runtime/process/node-version.ts';

/**
 * Runs the end-to-end tests, one file after the other: each has a cluster of its own and two cores are soon busy.
 * Arguments choose files by a part of their name: `tools/e2e.ts power api`.
 */
requireNode();
const wanted = process.argv.slice(2);
const files = globSync('test/e2e/*.test.ts')
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();
if (files.length === 0) {
  process.stderr.write(`e2e: no test file of test/e2e has ${wanted.join(' or ')} in its name\n`);
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
