import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { ManualClock } from './clock.ts';
import { type ExitCode, Lifecycle } from './lifecycle.ts';
import { createLog } from './log.ts';

class FakeProcess extends EventEmitter {
  exitCode: ExitCode | undefined;
  exit(code: ExitCode): void {
    this.exitCode = code;
  }
}

function setup(stopLimitMs?: number) {
  const process = new FakeProcess();
  const clock = new ManualClock();
  const lines: { level: string; msg: string }[] = [];
  const log = createLog({
    process: 'test',
    level: 'debug',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const lifecycle = new Lifecycle({ process, clock, log, ...(stopLimitMs === undefined ? {} : { stopLimitMs }) });
  return { process, clock, lines, lifecycle };
}

/** A unit that notes when it starts and when it is asked to stop. */
function unit(name: string, events: string[]): (signal: AbortSignal) => Promise<void> {
  return (signal) => {
    events.push(`start ${name}`);
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        events.push(`stop ${name}`);
        resolve();
      });
    });
  };
}

test('SIGTERM stops the units in reverse order and exits with 0', async () => {
  const { process, lifecycle } = setup();
  const events: string[] = [];
  const run = lifecycle.run(async () => {
    lifecycle.start('health', unit('health', events));
    lifecycle.start('lease', unit('lease', events));
    lifecycle.start('controller', unit('controller', events));
  });
  process.emit('SIGTERM', 'SIGTERM');
  await run;
  assert.deepEqual(events, [
    'start health',
    'start lease',
    'start controller',
    'stop controller',
    'stop lease',
    'stop health',
  ]);
  assert.equal(process.exitCode, 0);
  assert.equal(process.eventNames().length, 0, 'listeners are removed');
});

test('a unit that rejects with the reason of its signal has stopped normally', async () => {
  const { process, lifecycle } = setup();
  const run = lifecycle.run(async () => {
    lifecycle.start('watch', (signal) => {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
  });
  process.emit('SIGINT', 'SIGINT');
  await run;
  assert.equal(process.exitCode, 0);
});

test('nothing is started any more once the process stops', async () => {
  const { process, lifecycle } = setup();
  const events: string[] = [];
  const run = lifecycle.run(async () => {
    lifecycle.start('lease', (signal) => {
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          lifecycle.start('controller', unit('controller', events));
          resolve();
        });
      });
    });
  });
  process.emit('SIGTERM', 'SIGTERM');
  await run;
  assert.deepEqual(events, []);
});

test('a unit that does not stop is named, and the exit code is 1', async () => {
  const { process, clock, lines, lifecycle } = setup(1_000);
  const run = lifecycle.run(async () => lifecycle.start('stuck', () => new Promise(() => undefined)));
  process.emit('SIGTERM', 'SIGTERM');
  await clock.advance(999);
  assert.equal(process.exitCode, undefined);
  await clock.advance(1);
  await run;
  assert.equal(process.exitCode, 1);
  assert.ok(lines.some(({ msg }) => msg === '"stuck" did not stop in time'));
});

test('a second signal exits at once with 1', async () => {
  const { process, lifecycle } = setup();
  void lifecycle.run(async () => lifecycle.start('stuck', () => new Promise(() => undefined)));
  process.emit('SIGTERM', 'SIGTERM');
  assert.equal(process.exitCode, undefined);
  process.emit('SIGTERM', 'SIGTERM');
  assert.equal(process.exitCode, 1);
});

test('bad input gives exit code 2 and one line with the sentence', async () => {
  const { process, lines, lifecycle } = setup();
  await lifecycle.run(async () => {
    throw new EgressError('CONFIG_INVALID', 'config.yaml:3: port is 0, allowed: at least 1');
  });
  assert.equal(process.exitCode, 2);
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [['fatal', 'config.yaml:3: port is 0, allowed: at least 1']],
  );
});

test('any other failure of main gives exit code 1', async () => {
  const { process, lifecycle } = setup();
  await lifecycle.run(async () => {
    throw new Error('the API server does not answer');
  });
  assert.equal(process.exitCode, 1);
});

test('a signal during the start is obeyed', async () => {
  const { process, lifecycle } = setup();
  const run = lifecycle.run(() => new Promise(() => undefined));
  process.emit('SIGTERM', 'SIGTERM');
  await run;
  assert.equal(process.exitCode, 0);
});

test('a task that fails is logged with its name and ends the process', async () => {
  const { process, clock, lines, lifecycle } = setup();
  void lifecycle.run(async () => {
    lifecycle.tasks.spawn('report', Promise.reject(new TypeError('x is undefined')));
  });
  await clock.advance(0);
  assert.equal(process.exitCode, 1);
  assert.ok(lines.some(({ level, msg }) => level === 'fatal' && msg === 'task "report" ended by a bug'));
});

test('an uncaught error ends the process with 1', async () => {
  const { process, lifecycle, lines } = setup();
  void lifecycle.run(() => new Promise(() => undefined));
  process.emit('uncaughtException', new Error('lost'));
  assert.equal(process.exitCode, 1);
  assert.ok(lines.some(({ msg }) => msg === 'uncaught error: lost'));
});
