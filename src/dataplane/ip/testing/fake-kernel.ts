/**
 * FakeKernel is a machine for tests: it runs the commands that Sallyport says to `ip` and `bridge`, holds what they make,
 * prints it as they would, and tells monitors. The same conformance suite runs on it and on a real kernel.
 */
import type { ProgramResult, Programs } from '../../program.ts';
import { execute } from './kernel-commands.ts';
import { show } from './kernel-output.ts';
import { CommandFailed, emptyState, type FakeState } from './kernel-state.ts';

export interface FakeKernel {
  readonly programs: Programs;
  /** Runs a command of somebody else: `ip link del eth0`. Throws when it fails. */
  say(command: string): void;
  /** Lines and single commands that changed or tried to change something, in order: `ip: link add ...`. */
  readonly said: readonly string[];
  /** Lets commands that match fail with this message from now on; undefined ends it. */
  refuse(pattern: RegExp, message: string | undefined): void;
  /** Ends all monitors, as if they had crashed. */
  endMonitors(): void;
  /** How many monitors listen now. */
  readonly monitors: number;
  /** Whether a device joins packets that arrive on it; undefined when there is none of that name. */
  hasGro(device: string): boolean | undefined;
}

interface Monitor {
  readonly onLine: (line: string) => void;
  readonly end: () => void;
}

const FAILED_LINE = 1;
const ENDED_EARLY = 2;

/** A machine with nothing but a loopback device. `lacks`: kinds of devices that its kernel does not know, or `gbp`. */
export const createFakeKernel = (lacks: readonly string[] = []): FakeKernel => {
  const state = emptyState();
  const said: string[] = [];
  const refusals = new Map<string, { readonly pattern: RegExp; readonly message: string }>();
  const monitors = new Set<Monitor>();

  /** What a command prints. Throws when it fails. */
  const command = (tool: string, words: readonly string[], family: 4 | 6): string => {
    const shown = show(state, words, family);
    if (shown !== undefined) {
      const device = tool === 'bridge' ? words.at(-1) : undefined;
      if (device !== undefined && !state.links.has(device))
        throw new CommandFailed(`Cannot find device "${device}"`, true);
      return `${JSON.stringify(shown)}\n`;
    }
    const line = words.join(' ');
    said.push(`${tool}: ${line}`);
    const refusal = [...refusals.values()].find(({ pattern }) => pattern.test(line));
    if (refusal !== undefined) throw new CommandFailed(refusal.message, words[0] === 'neigh');
    execute(state, words, family, new Set(lacks));
    for (const { onLine } of [...monitors]) for (const told of monitorLines(words)) onLine(told);
    return '';
  };

  const run = (argv: readonly string[], input: string): ProgramResult => {
    const [program = '', ...rest] = argv;
    if (program === 'ethtool') return ethtool(state, rest);
    const flags = rest.filter((word) => word.startsWith('-'));
    const family = flags.includes('-6') ? 6 : 4;
    const tool = family === 6 ? `${program} -6` : program;
    const isBatch = flags.includes('-batch');
    const words = rest.filter((word) => !word.startsWith('-'));
    const lines = isBatch
      ? input
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => line.split(' '))
      : [words];
    let stdout = '';
    let stderr = '';
    for (const [index, line] of lines.entries()) {
      try {
        stdout += command(tool, line, family);
      } catch (error) {
        if (!(error instanceof CommandFailed)) throw error;
        stderr += `${error.message}\n`;
        if (error.endsProgram) return { code: ENDED_EARLY, stdout, stderr };
        if (!isBatch) return { code: FAILED_LINE, stdout, stderr };
        stderr += `Command failed -:${index + 1}\n`;
        if (!flags.includes('-force')) return { code: FAILED_LINE, stdout, stderr };
      }
    }
    return { code: stderr === '' ? 0 : FAILED_LINE, stdout, stderr };
  };

  return {
    programs: {
      run: async (argv, options = {}) => run(argv, options.input ?? ''),
      follow: (_argv, onLine, signal) =>
        new Promise((resolve) => {
          const monitor: Monitor = {
            onLine,
            end: () => {
              monitors.delete(monitor);
              signal.removeEventListener('abort', monitor.end);
              resolve({ code: 128, stdout: '', stderr: '' });
            },
          };
          monitors.add(monitor);
          signal.addEventListener('abort', monitor.end, { once: true });
          if (signal.aborted) monitor.end();
        }),
    },
    say: (command) => {
      const { code, stderr } = run(command.split(' '), '');
      if (code !== 0) throw new Error(`${command}: ${stderr.trim()}`);
    },
    said,
    refuse: (pattern, message) => {
      if (message === undefined) refusals.delete(pattern.source);
      else refusals.set(pattern.source, { pattern, message });
    },
    endMonitors: () => {
      for (const { end } of [...monitors]) end();
    },
    get monitors() {
      return monitors.size;
    },
    hasGro: (device) => state.links.get(device)?.hasGro,
  };
};

/** `ethtool -K DEVICE gro on`, and nothing else of it. */
const ethtool = (state: FakeState, [flag, device = '', feature, to]: readonly string[]): ProgramResult => {
  const link = state.links.get(device);
  if (flag !== '-K' || feature !== 'gro' || link === undefined)
    return { code: 1, stdout: '', stderr: 'no such device' };
  link.hasGro = to === 'on';
  return { code: 0, stdout: '', stderr: '' };
};

/** What a monitor prints about a command that was done, as far as it names its object. Proxy entries are never told. */
const monitorLines = ([object, verb, ...words]: readonly string[]): readonly string[] => {
  const after = (name: string): string => words[words.indexOf(name) + 1] ?? '';
  const deleted = verb === 'del' ? 'Deleted ' : '';
  const device = words.includes('dev') ? after('dev') : after('name');
  switch (object) {
    case 'link':
      return [`${deleted}4: ${device}: <BROADCAST,MULTICAST> mtu 1450 qdisc noop state DOWN`];
    case 'addr':
      return [`${deleted}4: ${device}    inet ${words[0]} scope global ${device}`];
    case 'route':
      return [`${deleted}${words.filter((word) => word !== 'onlink').join(' ')} onlink`];
    case 'rule':
      return [`${deleted}${after('pref')}:\tfrom all fwmark ${after('fwmark')} lookup ${after('lookup')}`];
    case 'fdb':
      return [`${deleted}${after('dst')} dev ${device} lladdr ${words[0]} NOARP PERMANENT`];
    case 'neigh':
      return words[0] === 'proxy' ? [] : [`${deleted}${words[0]} dev ${device} lladdr ${after('lladdr')} PERMANENT`];
    default:
      return [];
  }
};
