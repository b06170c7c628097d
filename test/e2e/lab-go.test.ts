import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../../lab/host/command.ts';
import { buildEnv } from '../../lab/setup/go-build.ts';

/** The Go of the lab has tests of its own; those of packages that do not import all of Kubernetes take seconds. */
const modules = {
  shim: ['./...'],
  loadgen: ['./...'],
  kube: [
    './internal/cni/',
    './internal/images/',
    './internal/nodeconfig/',
    './internal/podruntime/',
    './internal/process/',
  ],
};

for (const [module, packages] of Object.entries(modules)) {
  test(`go test in lab/${module}`, async () => {
    const cwd = join(import.meta.dirname, '..', '..', 'lab', module);
    const tested = await run(['go', 'test', ...packages], { cwd, env: buildEnv, timeoutMs: 600_000 });
    assert.equal(tested.code, 0, tested.stdout + tested.stderr);
    assert.match(tested.stdout, /^ok /m);
  });
}
