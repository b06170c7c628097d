/**
 * Everything that must hold before a commit: types, lint, boundaries, generated files, unit tests.
 * Steps run side by side; each prints one line when it ends, and its whole output only if it fails. The last lines
 * are the summary of the test runner, in its own words, for people and for continuous integration.
 */
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** One command. The first word is looked up in node_modules/.bin before the rest of PATH. */
export interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

/** What became of a step; `output` is all that it wrote, in order. */
export interface StepOutcome {
  readonly name: string;
  readonly hasPassed: boolean;
  readonly milliseconds: number;
  readonly output: string;
}

const root = join(import.meta.dirname, '..');
// Catches what hangs, and nothing else: on a machine with much else to do everything takes ten times as long.
const LIMIT_MS = 900_000;
// The version in package.json. Another one could pass here and fail where the programs run.
const NODE_MAJOR = 26;

const testRunner = ['node', '--test', '--test-timeout=300000'] as const;
const shared = ['--test-isolation=none', '--import=./tools/laws.ts'] as const;
const testsOf = (...folders: readonly string[]): string[] => folders.map((folder) => `${folder}/**/*.test.ts`);

const steps: readonly Step[] = [
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'lint', command: ['node_modules/@biomejs/cli-linux-x64/biome', 'check', '--error-on-warnings', '.'] },
  { name: 'boundaries', command: ['node', 'tools/boundaries.ts'] },
  { name: 'generated', command: ['node', 'tools/generate.ts', '--check'] },
  // The files of a step share one process: a process for each of two hundred files takes three times as long.
  {
    name: 'pure tests',
    command: [...testRunner, ...shared, 'src/core/*.test.ts', ...testsOf('src/api', 'src/core/ip', 'src/core/project')],
  },
  {
    name: 'plan tests',
    command: [...testRunner, ...shared, ...testsOf('src/core/node', 'src/core/ownership', 'src/core/proxy')],
  },
  { name: 'runtime tests', command: [...testRunner, ...shared, ...testsOf('src/runtime', 'src/controller')] },
  {
    name: 'node tests',
    command: [...testRunner, ...shared, ...testsOf('src/dataplane', 'src/agent', 'src/removal', 'src/cli')],
  },
  { name: 'proxy tests', command: [...testRunner, ...shared, ...testsOf('src/proxy', 'src/operator')] },
  // One process per file: these start programs and change folders.
  { name: 'tool tests', command: [...testRunner, ...testsOf('tools', 'lab', 'bench', 'test/unit')] },
];

/** Runs a command in `folder` to its end, or ends it when `signal` aborts. Never rejects: not being found is an outcome too. */
export const runStep = (step: Step, folder: string, signal: AbortSignal): Promise<StepOutcome> =>
  new Promise((resolve) => {
    const [program, ...args] = step.command;
    const start = performance.now();
    const chunks: Buffer[] = [];
    // A group of its own, so that the processes of the test runner end with it: one that lived on would hold our pipes open.
    const child = spawn(program, args, {
      cwd: folder,
      env: {
        ...process.env,
        PATH: [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter),
        // Set when a test starts us; a test runner that sees it speaks to its parent instead of to people.
        NODE_TEST_CONTEXT: undefined,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const kill = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The group ended by itself in this very moment; its 'close' is on the way.
      }
    };
    const end = (hasPassed: boolean, note: string): void => {
      signal.removeEventListener('abort', kill);
      const output = Buffer.concat(chunks).toString('utf8') + note;
      resolve({ name: step.name, hasPassed, milliseconds: performance.now() - start, output });
    };
    signal.addEventListener('abort', kill);
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => end(false, `${program} cannot be started: ${error.message}; run make setup\n`));
    child.on('close', (code) => end(code === 0, signal.aborted ? `${step.name} was ended: ${signal.reason}\n` : ''));
  });

/** One line for a step; its name takes at least so many columns. */
export const stepLine = ({ name, hasPassed, milliseconds }: StepOutcome, columns = 12): string =>
  `${hasPassed ? 'ok  ' : 'FAIL'}  ${name.padEnd(columns)}${(milliseconds / 1000).toFixed(1).padStart(6)} s`;

/** The closing lines of node's test runner ("ℹ tests 12" or "# tests 12"), empty if there are none. */
export const testSummary = (output: string): string[] =>
  stripVTControlCharacters(output)
    .split('\n')
    .filter((line) => /^[ℹ#] (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(line));

const isRightNode = (): boolean => {
  if (Number.parseInt(process.versions.node, 10) === NODE_MAJOR) return true;
  console.error(
    `This is Node.js ${process.versions.node}, the check needs ${NODE_MAJOR}; run "make setup", then "npm run check".`,
  );
  process.exitCode = 2;
  return false;
};

if (import.meta.main && isRightNode()) {
  const start = performance.now();
  const interrupt = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interrupt.abort(`it was interrupted by ${name}`));
  setTimeout(() => interrupt.abort(`the limit is ${LIMIT_MS / 1000} s`), LIMIT_MS).unref();
  const outcomes = await Promise.all(
    steps.map(async (step) => {
      const outcome = await runStep(step, root, interrupt.signal);
      console.log(stepLine(outcome));
      return outcome;
    }),
  );
  const failed = outcomes.filter(({ hasPassed }) => !hasPassed);
  for (const { name, output } of failed) console.log(`\n--- ${name}\n${output.trimEnd()}`);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const verdict = failed.length === 0 ? 'all steps passed' : `failed: ${failed.map(({ name }) => name).join(', ')}`;
  console.log(`\n${verdict} in ${seconds} s`);
  for (const line of outcomes.flatMap(({ output }) => testSummary(output))) console.log(line);
  process.exitCode = failed.length === 0 ? 0 : 1;
}
