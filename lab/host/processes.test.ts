import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  end,
  identify,
  isRunning,
  labMark,
  membersOf,
  nodeMark,
  type ProcessId,
  signal,
  startDaemon,
} from './processes.ts';
import { until } from './wait.ts';

const folder = mkdtempSync(join(tmpdir(), 'sallyport-processes-'));
const lab = `unit-${process.pid}`;
const mark = `${labMark}=${lab}`;
const logFile = join(folder, 'log');
after(() => rmSync(folder, { recursive: true }));

function start(script: string, env: Record<string, string> = {}): ProcessId {
  return startDaemon({ argv: ['sh', '-c', script], env: { [labMark]: lab, ...env }, logFile });
}

test('members are the marked processes with their children, and nobody else', async () => {
  const child = join(folder, 'child');
  // The child drops the environment: it is a member because its parent is one.
  const parent = start(`env -i sleep 1000 & echo $! > ${child}; wait`);
  const stranger = startDaemon({ argv: ['sleep', '1000'], env: {}, logFile });
  const pids = () => membersOf([mark], new Set()).map((member) => member.pid);
  try {
    await until({ what: 'parent and child', limitMs: 10_000 }, () => pids().length === 2);
    assert.ok(pids().includes(parent.pid));
    assert.ok(!pids().includes(stranger.pid));
    assert.ok(!pids().includes(process.pid));
  } finally {
    await end([...membersOf([mark], new Set()), stranger], 0);
  }
  assert.deepEqual(pids(), []);
});

test('who carries the mark of another lab is no member, nor are its children, whoever started it', async () => {
  const started = join(folder, 'others');
  const other = `env ${labMark}=${lab}-other sh -c 'env -i sleep 1000 & echo $! >> ${started}; wait'`;
  const parent = start(`${other} & echo $! >> ${started}; wait`);
  const others = () => readFileSync(started, { encoding: 'utf8', flag: 'a+' }).trim().split('\n').map(Number);
  const pids = (of: string) => membersOf([`${labMark}=${of}`], new Set()).map((member) => member.pid);
  try {
    // Between its fork and its exec a process still has the environment of its parent.
    await until(
      { what: 'all three', limitMs: 10_000 },
      () => pids(`${lab}-other`).length === 2 && pids(lab).length === 1 && others().length === 2,
    );
    assert.deepEqual(pids(`${lab}-other`).toSorted(), others().toSorted());
    assert.deepEqual(pids(lab), [parent.pid]);
  } finally {
    await end([...membersOf([mark], new Set()), ...membersOf([`${labMark}=${lab}-other`], new Set())], 0);
  }
});

test('the processes of one node are told apart from those of another', async () => {
  const ids = ['a', 'b'].map((node) => start('exec sleep 1000', { [nodeMark]: node }));
  try {
    const found = () => membersOf([mark, `${nodeMark}=b`], new Set());
    // In the instant of its exec a process has no environment yet.
    await until({ what: 'the process of node b', limitMs: 10_000 }, () => found().length > 0);
    assert.deepEqual(found(), [ids[1]]);
  } finally {
    await end(ids, 0);
  }
});

test('asking for the members of nothing in particular is a bug, not every process of the machine', () => {
  assert.throws(() => membersOf([], new Set()), /without a mark/);
});

test('a process is known by pid and start time: a reused pid is not it', async () => {
  const id = start('exec sleep 1000');
  assert.ok(isRunning(id));
  const impostor = { pid: id.pid, startTicks: '1' };
  assert.ok(!isRunning(impostor));
  signal(impostor, 'SIGKILL');
  assert.ok(isRunning(id), 'a signal to the impostor does not reach the process that has its pid');
  await end([id], 0);
  assert.equal(identify(id.pid), undefined);
});

test('a process whose first thread has ended runs until the last one is gone', async () => {
  // 60 is exit(2), which ends one thread only.
  const threads = 'threads->create(sub { sleep 1000 })->detach; syscall(60, 0)';
  const id = startDaemon({ argv: ['perl', '-Mthreads', '-e', threads], env: { [labMark]: lab }, logFile });
  const isZombie = () => / Z /.test(readFileSync(`/proc/${id.pid}/stat`, 'utf8'));
  await until({ what: 'the first thread to end', limitMs: 10_000 }, isZombie);
  assert.ok(isRunning(id));
  await end([id], 0);
  assert.ok(!isRunning(id));
});

test('a process that ignores SIGTERM is killed after its grace, also when it is stopped', async () => {
  const id = start(`trap "" TERM; while :; do sleep 1000; done`);
  signal(id, 'SIGSTOP');
  await end([id], 50);
  assert.ok(!isRunning(id));
  await end(membersOf([mark], new Set()), 0);
});
