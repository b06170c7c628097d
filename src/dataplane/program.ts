/**
 * Programs of the machine (nft, ip, bridge, conntrack) as a parameter, so that tests choose the network namespace they
 * run in. Arguments are lists and scripts go to standard input: no shell reads them.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** How a program ended. A program that cannot be started has code 127, as in a shell; one that was killed, 128. */
export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How programs are run. */
export interface Programs {
  /** Runs a program to its end; it is killed after `limitMs` (default 10 s). Never rejects. */
  run(
    argv: readonly string[],
    options?: { readonly input?: string; readonly limitMs?: number },
  ): Promise<ProgramResult>;
  /** Runs a program until the signal is aborted or it ends by itself, handing over each line it prints. */
  follow(argv: readonly string[], onLine: (line: string) => void, signal: AbortSignal): Promise<ProgramResult>;
}

const DEFAULT_LIMIT_MS = 10_000;

/** The programs of this machine. `prefix` goes before every command line: `ip netns exec NAME` in tests. */
export const machinePrograms = (prefix: readonly string[] = []): Programs => ({
  run: (argv, { input, limitMs = DEFAULT_LIMIT_MS } = {}) =>
    new Promise((resolve) => {
      const child = start([...prefix, ...argv]);
      const ended = endOf(child);
      const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
      let stdout = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
      // A program that ends before it has read everything is judged by its exit code, not by the broken pipe.
      child.stdin.on('error', () => {});
      child.stdin.end(input);
      ended.then(({ code, stderr }) => {
        clearTimeout(limit);
        resolve({ code, stdout, stderr });
      });
    }),
  follow: async (argv, onLine, signal) => {
    if (signal.aborted) return { code: 128, stdout: '', stderr: '' };
    const child = start([...prefix, ...argv]);
    child.stdin.on('error', () => {});
    child.stdin.end();
    createInterface({ input: child.stdout }).on('line', onLine);
    const stop = (): void => {
      child.kill('SIGKILL');
    };
    signal.addEventListener('abort', stop, { once: true });
    const { code, stderr } = await endOf(child);
    signal.removeEventListener('abort', stop);
    return { code, stdout: '', stderr };
  },
});

const start = ([program = '', ...args]: readonly string[]) => spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });

const endOf = (child: ReturnType<typeof start>): Promise<{ code: number; stderr: string }> =>
  new Promise((resolve) => {
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', (error) => resolve({ code: 127, stderr: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 128, stderr }));
  });
