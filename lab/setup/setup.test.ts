import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { run } from '../host/command.ts';

const tree = join(import.meta.dirname, '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'sallyport-setup-'));
after(() => rmSync(folder, { recursive: true }));

/** A machine that has only these programs: names of real ones, or scripts of its own. */
function machine(name: string, programs: Readonly<Record<string, string>>): string {
  const bin = mkdtempSync(join(folder, name));
  for (const real of ['sh', 'cat', 'cksum', 'uname', 'flock', 'rm', 'env'])
    symlinkSync(`/usr/bin/${real}`, join(bin, real));
  for (const [program, script] of Object.entries(programs)) {
    writeFileSync(join(bin, program), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, program), 0o755);
  }
  return bin;
}

/** Runs the first step of every command on a fresh clone: no node_modules. */
async function bootstrap(path: string) {
  const clone = mkdtempSync(join(folder, 'clone'));
  writeFileSync(join(clone, 'package-lock.json'), '{}');
  return run(['/bin/sh', '-c', '. "$0"', join(tree, 'tools', 'bootstrap.sh')], { env: { PATH: path, root: clone } });
}

test('without Node, without npm or with a Node that is too old, one sentence says what to install', async () => {
  const cases = [
    [machine('bare', {}), /^sallyport: node is missing; install Node.js 20 or newer/],
    [machine('no-npm', { node: 'echo 20' }), /^sallyport: npm is missing; install it/],
    [
      machine('old', { npm: '', node: 'case $1 in -p) echo 18;; *) echo v18.1.0;; esac' }),
      /^sallyport: node v18.1.0 is too old/,
    ],
    [machine('broken', { node: 'echo 20', npm: 'exit 1' }), /\nsallyport: npm could not install the packages/],
  ] as const;
  for (const [path, sentence] of cases) {
    const refused = await bootstrap(path);
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, sentence);
  }
});

test('without Go, or with one that is too old, one sentence says what to install', async () => {
  const ask = `import('${tree}/lab/setup/go-build.ts').then((m) => m.goVersion()).then(console.log, (e) => console.log(e.name, e.message))`;
  const goVersion = async (path: string) =>
    (await run([process.execPath, '-e', ask], { env: { PATH: path } })).stdout.trim();
  assert.equal(await goVersion(machine('no-go', {})), 'BadInput go is missing; install Go 1.24 or newer');
  assert.equal(
    await goVersion(machine('old-go', { go: 'echo go1.19.8' })),
    'BadInput go1.19.8 is too old; install Go 1.24 or newer',
  );
  assert.equal(await goVersion(machine('new-go', { go: 'echo go1.24' })), 'go1.24');
});

test('a kernel without a feature is refused by the name of the feature', async () => {
  const ask = `import('${tree}/lab/setup/machine.ts').then((m) => m.requireKernel()).then(() => console.log('fine'), (e) => console.log(e.name, e.message))`;
  const path = machine('poor-kernel', {
    unshare: 'case "$*" in *vxlan*) echo "Error: Unknown device type." >&2; exit 2;; esac',
  });
  const { stdout } = await run([process.execPath, '-e', ask], { env: { PATH: path } });
  assert.match(
    stdout,
    /^BadInput the kernel \(.+\) has no VXLAN with group policy, .* \(Error: Unknown device type\.\)\n$/,
  );
});
