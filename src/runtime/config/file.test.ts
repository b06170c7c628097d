import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { ManualClock, systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { eventually } from '../testing/eventually.ts';
import { ConfigFile, type ConfigFs, maxConfigBytes } from './file.ts';

const schema = z.strictObject({ port: z.int().max(65_535).default(1) });

/** A file in memory whose watch can be deaf. */
class FakeFs implements ConfigFs {
  text: string | undefined;
  isDeaf = false;
  watchers = 0;
  #onChange: () => void = () => undefined;

  constructor(text: string) {
    this.text = text;
  }

  async readText(): Promise<string> {
    if (this.text === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    return this.text;
  }

  watchFolder(_: string, onChange: () => void): () => void {
    this.watchers += 1;
    this.#onChange = onChange;
    return () => {
      this.watchers -= 1;
    };
  }

  write(text: string | undefined): void {
    this.text = text;
    if (!this.isDeaf) this.#onChange();
  }
}

async function setup(text: string) {
  const fs = new FakeFs(text);
  const clock = new ManualClock();
  const lines: { level: string; msg: string }[] = [];
  const inForce: boolean[] = [];
  const file = await ConfigFile.open('etc/config.yaml', schema, {
    clock,
    fs,
    log: createLog({
      process: 'test',
      level: 'debug',
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    }),
    hooks: { inForce: (isCurrent) => void inForce.push(isCurrent) },
  });
  const changes: number[] = [];
  const unsubscribe = file.changed(({ port }) => changes.push(port));
  const stop = new AbortController();
  const run = file.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await run;
    assert.equal(fs.watchers, 0, 'the folder is no longer watched');
  };
  return { fs, clock, lines, inForce, file, changes, unsubscribe, end };
}

test('a change is in force soon after the folder changed', async () => {
  const { fs, clock, file, changes, end } = await setup('port: 1');
  assert.equal(file.current.port, 1);
  fs.write('port: 2');
  await clock.advance(100);
  assert.equal(file.current.port, 2);
  assert.deepEqual(changes, [2]);
  await end();
});

test('a change that the watch misses is found by the poll', async () => {
  const { fs, clock, changes, end } = await setup('port: 1');
  fs.isDeaf = true;
  fs.write('port: 2');
  await clock.advance(30_000);
  assert.deepEqual(changes, []);
  await clock.advance(31_000);
  assert.deepEqual(changes, [2]);
  await end();
});

test('a bad file changes nothing, is reported once, and a good one is in force again', async () => {
  const { fs, clock, lines, inForce, file, changes, end } = await setup('port: 1');
  fs.write('port: 70000');
  await clock.advance(600_000);
  assert.equal(file.current.port, 1);
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error').map(({ msg }) => msg),
    [
      'etc/config.yaml:1: port is 70000: allowed is a whole number of at most 65535; the last good configuration stays in force',
    ],
  );
  assert.deepEqual(inForce, [true, false]);
  fs.write('port: 3');
  await clock.advance(100);
  assert.deepEqual(changes, [3]);
  assert.deepEqual(inForce, [true, false, true]);
  await end();
});

test('a file that vanishes changes nothing, and the same file coming back is in force', async () => {
  const { fs, clock, lines, inForce, file, end } = await setup('port: 5');
  fs.write(undefined);
  await clock.advance(200_000);
  assert.equal(file.current.port, 5);
  assert.equal(lines.filter(({ msg }) => msg.includes('there is no such file')).length, 1);
  fs.write('port: 5');
  await clock.advance(100);
  assert.deepEqual(inForce, [true, false, true]);
  await end();
});

test('many touches of an unchanged file are no change', async () => {
  const { fs, clock, changes, end } = await setup('port: 1');
  for (let index = 0; index < 10; index += 1) fs.write('port: 1');
  await clock.advance(600_000);
  assert.deepEqual(changes, []);
  await end();
});

test('nobody is called after unsubscribing', async () => {
  const { fs, clock, changes, unsubscribe, end } = await setup('port: 1');
  unsubscribe();
  fs.write('port: 2');
  await clock.advance(100);
  assert.deepEqual(changes, []);
  await end();
});

const deps = { clock: systemClock, log: createLog({ process: 'test', level: 'silent' }) };

test('on disk: the symlink swap of a ConfigMap volume is noticed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-config-'));
  try {
    // The layout that the kubelet makes: config.yaml -> ..data/config.yaml, ..data -> ..<timestamp>.
    const publish = async (version: string, text: string): Promise<void> => {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, 'config.yaml'), text);
      await symlink(version, join(folder, '..data_tmp'));
      await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    await publish('..v1', 'port: 1');
    await symlink('..data/config.yaml', join(folder, 'config.yaml'));
    const file = await ConfigFile.open(join(folder, 'config.yaml'), schema, deps);
    const stop = new AbortController();
    const run = file.run(stop.signal);
    await publish('..v2', 'port: 2');
    await eventually('the new file is in force', () => file.current.port === 2);
    stop.abort();
    await run;
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('on disk: a file that is absent, bad or too large at the start is one sentence', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-config-'));
  try {
    const path = join(folder, 'config.yaml');
    const opened = (): Promise<unknown> => ConfigFile.open(path, schema, deps);
    const message = (text: string): string => `${path}: the configuration cannot be read: ${text}`;
    await assert.rejects(opened, { code: 'CONFIG_INVALID', message: message('there is no such file') });
    await writeFile(path, 'port: x');
    await assert.rejects(opened, {
      code: 'CONFIG_INVALID',
      message: `${path}:1: port is "x": allowed is a whole number of at most 65535`,
    });
    await writeFile(path, '#'.repeat(maxConfigBytes + 1));
    const size = `it has ${maxConfigBytes + 1} bytes: allowed is at most ${maxConfigBytes}`;
    await assert.rejects(opened, { code: 'CONFIG_INVALID', message: message(size) });
  } finally {
    await rm(folder, { recursive: true });
  }
});
