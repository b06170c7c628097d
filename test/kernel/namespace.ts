/**
 * Network namespaces for kernel tests. A test works only in namespaces that it made itself, so the machine's own network
 * is never touched. Names carry the process that made them: those of a test run that was killed are swept by the next one.
 */
import { machinePrograms, type Programs } from '../../src/dataplane/program.ts';

/** A network namespace of a test, with its loopback device up. `await using` deletes it at the end of the block. */
export interface Namespace extends AsyncDisposable {
  readonly name: string;
  /** Runs programs inside. */
  readonly programs: Programs;
  /** Runs a program inside and returns what it printed; rejects with its error text when it fails. */
  must(...argv: readonly string[]): Promise<string>;
  /** Runs commands of ip(8) inside, one by one: `ip -batch` takes no family in a line. Rejects at the first that fails. */
  ip(...commands: readonly string[]): Promise<void>;
  /** Loads a script of nft(8) inside, as another program would; rejects with its error text when it is refused. */
  nft(script: string): Promise<void>;
  /** Deletes the namespace and all that is in it. May be called twice. */
  close(): Promise<void>;
}

const PREFIX = 'sallyport-kt-';
const machine = machinePrograms();

/** Makes a namespace. The label tells the namespaces of one test file apart. */
export const openNamespace = async (label: string): Promise<Namespace> => {
  await sweep();
  const name = `${PREFIX}${process.pid}-${label}`;
  await runOrThrow(machine, ['ip', 'netns', 'add', name]);
  // nsenter, because `ip netns exec` also mounts a /sys of its own, which takes longer than most programs that we run.
  const programs = machinePrograms(['nsenter', `--net=/run/netns/${name}`]);
  const close = async (): Promise<void> => {
    await machine.run(['ip', 'netns', 'delete', name]);
  };
  await runOrThrow(programs, ['ip', 'link', 'set', 'lo', 'up']);
  return {
    name,
    programs,
    must: (...argv) => runOrThrow(programs, argv),
    ip: async (...commands) => {
      for (const command of commands) await runOrThrow(programs, ['ip', ...command.split(' ')]);
    },
    nft: async (script) => {
      await runOrThrow(programs, ['nft', '-f', '-'], script);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
};

/** Deletes the namespaces of test processes that are gone. */
const sweep = async (): Promise<void> => {
  const { stdout } = await machine.run(['ip', 'netns', 'list']);
  for (const line of stdout.split('\n')) {
    const [name = ''] = line.split(' ');
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await machine.run(['ip', 'netns', 'delete', name]);
  }
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const runOrThrow = async (programs: Programs, argv: readonly string[], input = ''): Promise<string> => {
  const { code, stdout, stderr } = await programs.run(argv, { input });
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${stderr.trim() || `ended with ${code}`}`);
  return stdout;
};
