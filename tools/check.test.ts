import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runStep, type Step, stepLine, testSummary } from './check.ts';

const node = (script: string): Step => ({ name: 'sample', command: ['node', '-e', script] });
const run = (step: Step, signal = AbortSignal.timeout(30_000)) => runStep(step, import.meta.dirname, signal);

describe('a step', () => {
  it('passes with exit code 0 and keeps both outputs', async () => {
    const outcome = await run(node('console.log("out"); console.error("err")'));
    assert.equal(outcome.hasPassed, true);
    assert.deepEqual(outcome.output.trim().split('\n').sort(), ['err', 'out']);
  });

  it('runs on the Node.js of the project, whatever PATH says', async () => {
    const { output } = await run(node('console.log(process.versions.node)'));
    assert.equal(output.trim(), process.versions.node);
  });

  it('fails with any other exit code', async () => {
    const outcome = await run(node('console.log("why"); process.exit(3)'));
    assert.equal(outcome.hasPassed, false);
    assert.equal(outcome.output, 'why\n');
  });

  it('is ended together with the processes it started, and says why', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'check-'));
    t.after(() => rmSync(folder, { recursive: true }));
    // The grandchild inherits our pipes and never ends; the file says that it is there.
    const grandchild = 'require("node:fs").writeFileSync("started", ""); setInterval(() => {}, 1000)';
    const script = `require("node:child_process").spawn("node", ["-e", ${JSON.stringify(grandchild)}], { stdio: "inherit" })`;
    const stop = new AbortController();
    const outcome = runStep(node(script), folder, stop.signal);
    await t.waitFor(() => assert.ok(existsSync(join(folder, 'started'))), { interval: 10, timeout: 30_000 });
    stop.abort('the limit is 5 s');
    const { hasPassed, output } = await outcome;
    assert.equal(hasPassed, false);
    assert.equal(output, 'sample was ended: the limit is 5 s\n');
  });

  it('whose program is missing fails with the remedy', async () => {
    const outcome = await run({ name: 'sample', command: ['no-such-program'] });
    assert.equal(outcome.hasPassed, false);
    assert.match(outcome.output, /no-such-program cannot be started: .*; run make setup/);
  });
});

describe('the report', () => {
  it('has one line per step', () => {
    const outcome = { name: 'types', milliseconds: 1234, output: '' };
    assert.equal(stepLine({ ...outcome, hasPassed: true }), 'ok    types          1.2 s');
    assert.equal(stepLine({ ...outcome, hasPassed: false }), 'FAIL  types          1.2 s');
  });

  it('repeats the summary of the test runner in both of its styles, without colours', () => {
    const output = [
      '✔ a test (0.1ms)',
      'ℹ tests 3',
      '\u001b[34mℹ pass 2\u001b[39m',
      'ℹ fail 1',
      '# tests 3',
      '# Subtest: x',
      'tests 9',
    ].join('\n');
    assert.deepEqual(testSummary(output), ['ℹ tests 3', 'ℹ pass 2', 'ℹ fail 1', '# tests 3']);
  });
});
