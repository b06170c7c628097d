/** What needs no nginx; test/kernel/proxy-nginx*.test.ts have the real one. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { ruleSet } from '../testing/rules.ts';
import { createNginx } from './engine.ts';

const open = async (program: (folder: string) => Promise<string>) => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-nginx-'));
  const engine = createNginx({
    program: await program(folder),
    folder,
    accessLog: () => {},
    log: createLog({ process: 'proxy', level: 'silent' }),
    clock: systemClock,
  });
  return { engine, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
};
const signal = new AbortController().signal;

describe('nginx as a program', () => {
  it('fails at once, and every change with it, when it is not there', async () => {
    await using bed = await open(async (folder) => join(folder, 'missing'));
    await assert.rejects(bed.engine.run(signal), { code: 'ENGINE_FAILED', message: /missing cannot be started/ });
    await assert.rejects(bed.engine.apply(ruleSet()), { code: 'ENGINE_FAILED', message: /missing cannot be started/ });
    await assert.rejects(bed.engine.read(), { code: 'ENGINE_FAILED' });
  });

  it('fails with a sentence when it was built without what it needs', async () => {
    await using bed = await open(async (folder) => {
      const file = join(folder, 'other-nginx');
      await writeFile(file, '#!/bin/sh\necho "nginx version: nginx/1.22.1" >&2\n', { mode: 0o755 });
      return file;
    });
    await assert.rejects(bed.engine.run(signal), { code: 'ENGINE_FAILED', message: /without the stream module/ });
  });
});
