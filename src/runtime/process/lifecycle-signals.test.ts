/** The lifecycle in a real process: what the kubelet sees. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { eventually } from '../testing/eventually.ts';

/** Runs a main in a process of its own. Resolves when it has printed its first line. */
async function start(main: string): Promise<{ child: ChildProcess; lines: string[]; exit: Promise<unknown[]> }> {
  const here = import.meta.dirname;
  const code = `
    import { EgressError } from '${here}/../../api/error.ts';
    import { systemClock, wait } from '${here}/clock.ts';
    import { Lifecycle } from '${here}/lifecycle.ts';
    import { createLog } from '${here}/log.ts';
    const log = createLog({ process: 'test', level: 'info' });
    const lifecycle = new Lifecycle({ process, clock: systemClock, log });
    await lifecycle.run(async () => { ${main} });
  `;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const output = createInterface({ input: child.stdout });
  output.on('line', (line) => lines.push(JSON.parse(line).msg));
  const exit = once(child, 'close');
  await Promise.race([once(output, 'line'), exit]);
  return { child, lines, exit };
}

const loop = (name: string): string =>
  `lifecycle.start('${name}', async (signal) => { await wait(systemClock, 60_000, signal); log.info({}, '${name} ended'); });`;

test('SIGTERM: units end in reverse order, exit code 0', async () => {
  const { child, lines, exit } = await start(`${loop('health')} ${loop('controller')} log.info({}, 'started');`);
  child.kill('SIGTERM');
  assert.deepEqual(await exit, [0, null]);
  assert.deepEqual(lines, ['started', 'stopping', 'controller ended', 'health ended', 'stopped']);
});

test('a second signal ends a process that hangs, exit code 1', async () => {
  const { child, lines, exit } = await start(
    `lifecycle.start('stuck', () => new Promise((resolve) => setTimeout(resolve, 60_000))); log.info({}, 'started');`,
  );
  child.kill('SIGTERM');
  await eventually('the first signal is seen', () => lines.includes('stopping'));
  child.kill('SIGINT');
  assert.deepEqual(await exit, [1, null]);
});

test('a rejected promise that nobody awaits ends the process with 1 and a line in the log', async () => {
  const { lines, exit } = await start(`void Promise.reject(new Error('lost')); ${loop('health')}`);
  assert.deepEqual(await exit, [1, null]);
  assert.deepEqual(lines, ['uncaught error: lost']);
});

test('bad input: exit code 2 and the sentence', async () => {
  const { lines, exit } = await start(`throw new EgressError('CONFIG_INVALID', 'config.yaml:1: port is 0');`);
  assert.deepEqual(await exit, [2, null]);
  assert.deepEqual(lines, ['config.yaml:1: port is 0']);
});
