import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { AgentThread } from './agent-thread.ts';

interface Said {
  readonly kind: 'said';
  readonly what: string;
}

/** A thread of this code, and all that it told. */
const started = (code: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-thread-'));
  writeFileSync(join(folder, 'thread.ts'), `import { parentPort, workerData } from 'node:worker_threads';\n${code}`);
  const said = Promise.withResolvers<string>();
  const failed = Promise.withResolvers<Error>();
  const place = { name: 'test', startedBy: pathToFileURL(join(folder, 'starter.ts')).href, inImage: './none.js' };
  const thread = new AgentThread<string, Said>(place, 'data', {
    told: ({ what }) => said.resolve(what),
    failed: failed.resolve,
  });
  return {
    thread,
    said: said.promise,
    failed: failed.promise,
    [Symbol.asyncDispose]: async () => {
      await thread.close();
      rmSync(folder, { recursive: true });
    },
  };
};

test('a thread says when it listens, has its data, and hears what is posted', async () => {
  await using run = started(`
    parentPort.postMessage({ kind: 'listening' });
    parentPort.on('message', (heard) => parentPort.postMessage({ kind: 'said', what: workerData + ' ' + heard }));`);
  await run.thread.listening();
  run.thread.post('heard');
  assert.equal(await run.said, 'data heard');
  await run.thread.close();
});

test('a thread that fails before it listens is told, and whoever waits for it sees why', async () => {
  await using run = started("throw new Error('cannot bind');");
  await assert.rejects(run.thread.listening(), /cannot bind/);
  assert.match((await run.failed).message, /cannot bind/);
});

test('nobody has to wait for a thread that fails', async () => {
  await using run = started("throw new Error('cannot bind');");
  assert.match((await run.failed).message, /cannot bind/);
});
