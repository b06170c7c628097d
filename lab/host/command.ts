import { spawn } from 'node:child_process';
import { LabFailure } from './failure.ts';

/** What a finished command left behind. `code` is 128 + signal number when a signal ended it. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The command is killed after this time and counts as failed. */
  readonly timeoutMs?: number;
  /** Called with each whole line of stderr as it comes. */
  readonly onStderrLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

const defaultTimeoutMs = 60_000;

/** Runs a program to its end and returns what it printed, whatever its exit code. Throws if it cannot be started or takes too long. */
export function run(argv: readonly string[], options: CommandOptions = {}): Promise<Finished> {
  const [program = '', ...args] = argv;
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: options.cwd,
      env: options.env === undefined ? process.env : { ...process.env, ...options.env },
      signal: options.signal,
    });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
      // A child of the child may hold the pipes open; we do not wait for it.
      child.stdout.destroy();
      child.stderr.destroy();
    }, timeoutMs);
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let partialLine = '';
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      stderr.push(chunk);
      if (options.onStderrLine === undefined) return;
      const lines = (partialLine + chunk.toString()).split('\n');
      partialLine = lines.pop() ?? '';
      for (const line of lines) options.onStderrLine(line);
    });
    child.on('error', (cause) => {
      clearTimeout(timer);
      reject(new LabFailure(`cannot start ${program}: ${cause.message}`, '', { cause }));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) {
        reject(new LabFailure(`${argv.join(' ')} did not end within ${timeoutMs / 1000} s`, lastLines(text(stderr))));
        return;
      }
      resolve({ code: code ?? (signal === 'SIGKILL' ? 137 : 143), stdout: text(stdout), stderr: text(stderr) });
    });
    // A program that ends without reading its input is no fault of ours: its exit code says what happened.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
  });
}

/** Runs a program and returns its stdout; any exit code but 0 is a LabFailure that says what was attempted. */
export async function must(what: string, argv: readonly string[], options: CommandOptions = {}): Promise<string> {
  const finished = await run(argv, options);
  if (finished.code !== 0) {
    const said = finished.stderr.trim() || finished.stdout.trim();
    throw new LabFailure(`${what}: ${argv[0]} ended with code ${finished.code}`, lastLines(said));
  }
  return finished.stdout;
}

/** The end of a longer text: what a person reads first when something failed. */
export function lastLines(text: string, count = 15): string {
  return text.trimEnd().split('\n').slice(-count).join('\n');
}

function text(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString();
}
