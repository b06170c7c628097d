/** The program nginx: what it was built with, whether it likes a configuration, and one running master with its workers. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { EgressError } from '../../api/error.ts';
import { type Clock, wait, withLimit } from '../../runtime/process/clock.ts';
import { errorLog, stateSocket } from './render.ts';

const TEST_LIMIT_MS = 20_000;

/** How the program was built. */
export interface Build {
  readonly version: string;
  /** Path of the stream module when it is a file of its own. */
  readonly streamModule: string | undefined;
}

/** Asks the program; throws ENGINE_FAILED when it is not there or has no stream module. */
export async function readBuild(program: string): Promise<Build> {
  const { code, text } = await output(program, ['-V']);
  if (code !== 0) throw new EgressError('ENGINE_FAILED', `${program} cannot be started: ${text.trim()}`);
  const version = /nginx\/(\S+)/.exec(text)?.[1] ?? '';
  const modules = /--modules-path=(\S+)/.exec(text)?.[1] ?? '';
  if (text.includes('--with-stream=dynamic')) return { version, streamModule: `${modules}/ngx_stream_module.so` };
  if (/--with-stream(?=\s|$)/.test(text)) return { version, streamModule: undefined };
  throw new EgressError('ENGINE_FAILED', `${program} was built without the stream module`);
}

/** Why the program refuses the configuration, in its own words; undefined when it does not. */
export async function testConfiguration(program: string, folder: string, file: string): Promise<string | undefined> {
  const { code, text } = await output(program, ['-t', '-q', '-p', folder, '-e', 'stderr', '-c', file]);
  if (code === 0) return undefined;
  const line = text.split('\n').find((one) => one.includes('[emerg]')) ?? text.trim();
  return line.replace(/^.*\[emerg\] (?:\d+#\d+: )?/, '').replaceAll(`${folder}/`, '');
}

const output = (program: string, args: readonly string[]): Promise<{ code: number; text: string }> =>
  new Promise((resolve) => {
    execFile(program, args, { timeout: TEST_LIMIT_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
      resolve({ code, text: `${stdout}${stderr}` || (error?.message ?? '') });
    });
  });

/** A running master. Its workers are in its process group, which outlives it if it is killed. */
export class Master {
  readonly pid: number;
  /** Resolves with how it ended. */
  readonly ended: Promise<string>;
  readonly #folder: string;
  readonly #clock: Clock;
  #isAlive = true;

  constructor(child: ChildProcess & { readonly pid: number }, folder: string, clock: Clock) {
    this.pid = child.pid;
    this.#folder = folder;
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        this.#isAlive = false;
        resolve(signal === null ? `code ${code}` : `signal ${signal}`);
      });
    });
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Resolves with how it ended, or with nothing when the signal is aborted. */
  endedOr(signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const stop = (): void => resolve(undefined);
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      this.ended.then((how) => {
        signal.removeEventListener('abort', stop);
        resolve(how);
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    if (this.#isAlive) process.kill(this.pid, name);
  }

  /** The name of the generation that answers; undefined when none does. */
  async generation(): Promise<string | undefined> {
    const limit = { ms: 1000, error: () => new Error('no answer') };
    const read = (signal: AbortSignal): Promise<string> => readSocket(stateSocket(this.#folder), signal);
    return withLimit(this.#clock, limit, read).then(
      (text) => (text === '' ? undefined : text),
      () => undefined,
    );
  }

  /** Workers that take connections, and those that only finish what they have. */
  async workers(): Promise<{ readonly serving: readonly number[]; readonly draining: readonly number[] }> {
    const children = await readFile(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').catch(() => '');
    const pids = children.split(' ').filter(Boolean).map(Number);
    const titles = await Promise.all(pids.map(titleOf));
    // Between fork and its title a worker looks like its master, and takes connections like any other.
    const drains = new Set(pids.filter((_, index) => titles[index]?.includes('is shutting down')));
    return { serving: pids.filter((pid) => !drains.has(pid)), draining: [...drains] };
  }

  /** Ends everything that it started; what does not end in time is killed. */
  async stop(limitMs: number): Promise<void> {
    this.signal('SIGTERM');
    const limit = new AbortController();
    await Promise.race([this.ended, wait(this.#clock, limitMs, limit.signal)]);
    limit.abort();
    killGroup(this.pid, 'SIGKILL');
    if (this.#isAlive) await this.ended;
  }

  /** After it was killed: its workers stop listening and finish what they have, so that another master can have the ports. */
  async abandon(limitMs: number): Promise<void> {
    killGroup(this.pid, 'SIGQUIT');
    const endsAtMs = this.#clock.monotonicMs() + limitMs;
    for (;;) {
      const titles = await Promise.all((await membersOf(this.pid)).map(titleOf));
      if (titles.every((title) => title === '' || title.includes('is shutting down'))) return;
      if (this.#clock.monotonicMs() > endsAtMs) return killGroup(this.pid, 'SIGKILL');
      await wait(this.#clock, 20);
    }
  }
}

/** Starts the program with the configuration in `file`; throws ENGINE_FAILED when there is no such program. */
export async function startMaster(program: string, folder: string, file: string, clock: Clock): Promise<Master> {
  // A group of its own: a signal to ours, such as Ctrl-C, must not end it before we have drained.
  const args = ['-p', folder, '-e', errorLog(folder), '-c', file];
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) =>
      reject(new EgressError('ENGINE_FAILED', `${program} cannot be started: ${cause.message}`, { cause })),
    );
  });
  // It has a process id as soon as it was spawned.
  return new Master(child as ChildProcess & { pid: number }, folder, clock);
}

/** Ends what an earlier process left running in the folder. */
export async function endLeftover(folder: string): Promise<void> {
  const pid = Number(await readFile(`${folder}/nginx.pid`, 'utf8').catch(() => ''));
  // The number may belong to anybody by now; only a master of this folder is ours.
  if (pid > 1 && (await titleOf(pid)).includes(`-p ${folder} `)) killGroup(pid, 'SIGKILL');
}

const titleOf = async (pid: number): Promise<string> =>
  (await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).replaceAll('\0', ' ');

/** Processes of a group, by reading all of them: only after a crash. */
async function membersOf(group: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')));
  return pids.map(Number).filter((_, index) => {
    const stat = stats[index] ?? '';
    const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(processGroup) === group && state !== 'Z';
  });
}

const killGroup = (group: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-group, signal);
  } catch {
    // Nobody is left in it.
  }
};

const readSocket = (path: string, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ path });
    let text = '';
    signal.addEventListener('abort', () => socket.destroy(), { once: true });
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
