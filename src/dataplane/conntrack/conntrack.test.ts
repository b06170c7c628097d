import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Programs } from '../program.ts';
import { memoryStateFile } from '../state-file.ts';
import { createConntrack } from './conntrack.ts';
import { conntrackConformance } from './testing/conformance.ts';
import { createFakeConntrack } from './testing/fake-conntrack.ts';

conntrackConformance('fake', async () => {
  const conntrack = createFakeConntrack();
  return {
    conntrack,
    connect: async (slot) => conntrack.connect(slot),
    translate: async (eip) => conntrack.translate(eip),
    redirect: async (slot, eip, state) => conntrack.redirect(slot, eip, state),
    open: async (source, destination, mark) => conntrack.open(source, destination, mark),
    count: async () => conntrack.count,
    [Symbol.asyncDispose]: async () => {},
  };
});

const commands = { ...memoryStateFile(), path: 'state/forget' };

/** A program that has connections with these marks, keeps the commands that it reads, and ends as told. */
const programsWith = (marks: readonly number[], told: string[], code = 0, stderr = ''): Programs => ({
  run: async (argv) => {
    assert.deepEqual(argv, ['conntrack', '-R', 'state/forget']);
    told.push((await commands.read()) ?? '');
    return { code, stdout: '', stderr };
  },
  follow: async (argv, onLine) => {
    assert.deepEqual(argv, ['conntrack', '-L', '-m', '0x26000000/0xffffc000']);
    for (const mark of marks) onLine(`udp 17 99 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 mark=${mark} use=1`);
    return { code, stdout: '', stderr };
  },
});

const noFiles = async (): Promise<undefined> => undefined;
const none = (): number => 0;

test('only slots that connections carry are forgotten, many with one program', async () => {
  const told: string[] = [];
  const marks = Array.from({ length: 300 }, (_, slot) => 0x26000000 + slot);
  const conntrack = createConntrack({
    programs: programsWith(marks, told),
    readProc: noFiles,
    forgetStrays: none,
    cut: none,
    commands,
  });
  await conntrack.forget({ slots: [1, 299, 300, 0x3fff], eips: [], here: [], elsewhere: [], carried: [] });
  assert.deepEqual(told, ['-D -m 0x26000001\n-D -m 0x2600012b\n']);
  await conntrack.forget({
    slots: Array.from({ length: 1000 }, (_, slot) => slot),
    eips: [],
    here: [],
    elsewhere: [],
    carried: [],
  });
  assert.deepEqual(
    told.slice(1).map((text) => text.trim().split('\n').length),
    [128, 128, 44],
  );
  assert.equal(await commands.read(), undefined, 'nothing is left behind');
});

test('a single slot is forgotten without a look first', async () => {
  const told: string[] = [];
  const conntrack = createConntrack({
    programs: programsWith([], told),
    readProc: noFiles,
    forgetStrays: none,
    cut: none,
    commands,
  });
  await conntrack.forget({ slots: [0x3fff], eips: [], here: [], elsewhere: [], carried: [] });
  assert.deepEqual(told, ['-D -m 0x26003fff\n']);
});

test('a program that fails or is missing is an error with a code', async () => {
  const programs = programsWith([], [], 127, 'spawn conntrack ENOENT');
  const conntrack = createConntrack({ programs, readProc: noFiles, forgetStrays: none, cut: none, commands });
  for (const slots of [[1], [1, 2]]) {
    await assert.rejects(conntrack.forget({ slots, eips: [], here: [], elsewhere: [], carried: [] }), {
      code: 'CONNTRACK_FAILED',
      message: 'cannot forget the connections of slots and EIPs: spawn conntrack ENOENT',
    });
  }
});

test('the usage is the sum over all processors, and zero on a kernel without the table', async () => {
  const files: Readonly<Record<string, string>> = {
    'sys/net/netfilter/nf_conntrack_count': '4711\n',
    'sys/net/netfilter/nf_conntrack_max': '262144\n',
    'net/stat/nf_conntrack': [
      'entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error',
      '00001267  00000000 00000000 00000000 00000003 00000000 00000000 00000000 00000001 0000000a 00000001 00000000 0000',
      '00001267  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000004 00000010 00000000 00000000 0000',
      '',
    ].join('\n'),
  };
  const programs = programsWith([], []);
  const full = createConntrack({
    programs,
    readProc: async (path) => files[path],
    forgetStrays: none,
    cut: none,
    commands,
  });
  assert.deepEqual(await full.readUsage(), { entries: 4711, limit: 262_144, insertFailed: 26, dropped: 1 });
  const empty = createConntrack({ programs, readProc: noFiles, forgetStrays: none, cut: none, commands });
  assert.deepEqual(await empty.readUsage(), { entries: 0, limit: 0, insertFailed: 0, dropped: 0 });
});
