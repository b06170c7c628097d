/**
 * Runs the tests that need root: those of the kernel in namespaces of their own and the end-to-end tests.
 * Most have a cluster of their own that waits more than it works, so two files run side by side; files that measure time, or
 * look at the whole machine, run alone. Nothing is tried twice. Arguments choose files by a part of their path:
 * `tools/e2e.ts power api`, `tools/e2e.ts kernel`.
 */
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { requireNode } from '../src/runtime/process/node-version.ts';
import { runStep, type StepOutcome, stepLine, testSummary } from './check.ts';

const root = join(import.meta.dirname, '..');
export const folders = ['test/kernel', 'test/e2e', 'test/chaos'];
/** How many files run side by side. */
const lanes = 2;

/** Files that must have the machine for themselves, and why; they come last, in this order. */
const alone: readonly string[] = [
  // Takes pictures of the machine and compares them.
  'lab-lifecycle',
  // Another machine has 25 ms to say that an EIP is its own; with forty programs in the queue it once came too late.
  'egress-bad-input',
  // Nodes watch each other every 25 ms, and outages are measured.
  'strict-start',
  'egress-endurance',
  'failover',
  // Keeps every core busy for a minute.
  'failover-starved',
  // Keeps every core busy now and then.
  'chaos',
];

/** Seconds that the longer files take, as the last line of a run tells them. Only the order follows from it: longest first. */
const secondsOf: Readonly<Record<string, number>> = {
  proxy: 200,
  'egress-reboot': 150,
  'proxy-nginx': 120,
  'proxy-clients': 110,
  'chart-install': 100,
  'proxy-failures': 95,
  egctl: 90,
  'chart-release': 70,
  'egress-random': 70,
  'lab-workloads': 70,
  'proxy-envoy': 70,
  'egress-features': 65,
  'egress-single-stack': 65,
  'operator-processes': 65,
  'chart-removal': 60,
  'egress-coexistence': 60,
  'informer-restarts': 60,
  'lab-power': 55,
  'controller-processes': 50,
  'admission-trust': 40,
  'agent-first': 40,
  'ownership-simulation': 40,
  'controller-gateways': 35,
  'controller-policies': 35,
  admission: 30,
};

/** What runs side by side, in the order in which it begins, and what runs alone after that. */
export interface Timetable {
  readonly together: readonly string[];
  readonly alone: readonly string[];
}

/** The name of a file in the tables above. */
const nameOf = (file: string): string => basename(file, '.test.ts');

/** Who runs when. */
export const timetable = (files: readonly string[]): Timetable => {
  const seconds = (file: string): number => secondsOf[nameOf(file)] ?? 15;
  const place = (file: string): number => alone.indexOf(nameOf(file));
  return {
    together: files.filter((file) => place(file) < 0).toSorted((a, b) => seconds(b) - seconds(a)),
    alone: files.filter((file) => place(file) >= 0).toSorted((a, b) => place(a) - place(b)),
  };
};

/** Works the jobs off in their order, so many at a time. */
export const inLanes = async <Job>(
  count: number,
  jobs: readonly Job[],
  work: (job: Job) => Promise<void>,
): Promise<void> => {
  const waiting = [...jobs];
  const lane = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await work(job);
  };
  await Promise.all(Array.from({ length: count }, lane));
};

const failingTests = '✖ failing tests:';

/** What the test runner said about the failed tests of a file; all that was said when it did not come to that. */
export const failuresIn = (output: string): string => {
  const start = output.lastIndexOf(failingTests);
  return (start < 0 ? output : output.slice(start + failingTests.length)).trim();
};

/** The lines of a summary with the counts of all files together, in the words of the test runner. */
export const total = (summaries: readonly (readonly string[])[]): string[] => {
  const counts = new Map<string, number>();
  for (const line of summaries.flat()) {
    const [, word = '', count = '0'] = line.split(' ');
    if (word !== 'duration_ms') counts.set(word, (counts.get(word) ?? 0) + Number(count));
  }
  return [...counts].map(([word, count]) => `ℹ ${word} ${count}`);
};

const limits = ['--test-timeout=900000', '--test-force-exit'];

/** Runs one file in a process of its own and prints what it said in one piece, when it has ended. */
const runFile = async (file: string, signal: AbortSignal): Promise<StepOutcome> => {
  console.log(`run   ${file}`);
  const command = [process.execPath, '--test', '--test-reporter=spec', ...limits, file] as const;
  const outcome = await runStep({ name: file, command }, root, signal);
  // The summary of each file would only be in the way: one of all comes at the end.
  const summary = new Set(testSummary(outcome.output));
  const said = outcome.output.split('\n').filter((line) => !summary.has(line));
  console.log(`\n${stepLine(outcome)}\n${said.join('\n').trim()}`);
  return outcome;
};

const runAll = async (files: readonly string[], signal: AbortSignal): Promise<boolean> => {
  const startMs = performance.now();
  const plan = timetable(files);
  const outcomes: StepOutcome[] = [];
  const work = async (file: string): Promise<void> => {
    if (!signal.aborted) outcomes.push(await runFile(file, signal));
  };
  await inLanes(lanes, plan.together, work);
  await inLanes(1, plan.alone, work);

  const columns = Math.max(...files.map(({ length }) => length));
  const failed = outcomes.filter(({ hasPassed }) => !hasPassed);
  console.log('\nseconds per file, longest first');
  for (const outcome of outcomes.toSorted((a, b) => b.milliseconds - a.milliseconds))
    console.log(stepLine(outcome, columns));
  if (failed.length > 0) console.log(`\n${failingTests}`);
  for (const { name, output } of failed) console.log(`\n--- ${name}\n${failuresIn(output)}`);
  const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
  const verdict = failed.length === 0 ? 'all files passed' : `failed: ${failed.map(({ name }) => name).join(', ')}`;
  console.log(`\n${verdict} in ${minutes} minutes`);
  for (const line of total(outcomes.map(({ output }) => testSummary(output)))) console.log(line);
  return failed.length === 0 && outcomes.length === files.length;
};

if (import.meta.main) {
  requireNode();
  const wanted = process.argv.slice(2);
  const files = folders
    .flatMap((folder) => globSync(`${folder}/*.test.ts`, { cwd: root }))
    .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
  if (files.length === 0) {
    process.stderr.write(`e2e: no test file has ${wanted.join(' or ')} in its name\n`);
    process.exit(2);
  }
  const interrupt = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interrupt.abort(`it was interrupted by ${name}`));
  process.exit((await runAll(files.toSorted(), interrupt.signal)) ? 0 : 1);
}
