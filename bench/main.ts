/** Runs the benchmarks one after the other, each in a process of its own; arguments choose them by name. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const benchmarks = [
  'ip',
  'plan',
  'pass',
  'node',
  'informer',
  'controller',
  'agent',
  'dataplane/control',
  'dataplane/forwarding',
  'egress',
  'many-eips',
  'failover',
  'leaks',
  'mirror',
  'proxy',
  'operator',
] as const;
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !benchmarks.some((benchmark) => benchmark === name));
if (unknown !== undefined) {
  console.error(`bench: there is no benchmark ${JSON.stringify(unknown)}; there are ${benchmarks.join(', ')}`);
  process.exit(2);
}
for (const benchmark of benchmarks.filter((name) => wanted.length === 0 || wanted.includes(name))) {
  console.log(`\n## ${benchmark}\n`);
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${benchmark}.ts`)], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
