import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ended, Programs } from '../program.ts';
import { runChanges } from './batch.ts';
import type { Change, Tool } from './change.ts';

const change = (line: string, tool: Tool = 'ip'): Change => ({ tool, line, what: line, reason: 'RouteRefused' });

/** A program that fails for some lines, and for others ends without a word about the rest; counts how often each line ran. */
const programsThat = (fails: Readonly<Record<string, string>>, ends: Readonly<Record<string, string>>) => {
  const runs: string[][] = [];
  const programs: Programs = {
    run: async (argv, options): Promise<Ended> => {
      const lines = (options?.input ?? '').trim().split('\n');
      runs.push([argv.join(' '), ...lines]);
      let stderr = '';
      for (const [index, line] of lines.entries()) {
        const end = ends[line];
        if (end !== undefined) return { code: 2, stdout: '', stderr: `${stderr}${end}\n` };
        const failure = fails[line];
        if (failure !== undefined) stderr += `${failure}\nCommand failed -:${index + 1}\n`;
      }
      return { code: stderr === '' ? 0 : 1, stdout: '', stderr };
    },
    follow: () => assert.fail('nothing is followed'),
  };
  return { programs, runs };
};

describe('batches', () => {
  test('lines for one program are one run, in order', async () => {
    const { programs, runs } = programsThat({}, {});
    const changes = [change('a'), change('b'), change('c', 'bridge'), change('d', 'ip -6'), change('e')];
    assert.deepEqual(await runChanges(programs, changes), { changed: 5, refused: [] });
    assert.deepEqual(runs, [
      ['ip -force -batch -', 'a', 'b'],
      ['bridge -force -batch -', 'c'],
      ['ip -6 -force -batch -', 'd'],
      ['ip -force -batch -', 'e'],
    ]);
  });

  test('no changes start no program', async () => {
    const { programs, runs } = programsThat({}, {});
    assert.deepEqual(await runChanges(programs, []), { changed: 0, refused: [] });
    assert.deepEqual(runs, []);
  });

  test('each failure goes to its line, with all that was said about it', async () => {
    const { programs } = programsThat(
      { b: 'Error: first part.\nsecond part', d: 'RTNETLINK answers: Invalid argument' },
      {},
    );
    const { changed, refused } = await runChanges(
      programs,
      ['a', 'b', 'c', 'd'].map((line) => change(line)),
    );
    assert.equal(changed, 2);
    assert.deepEqual(refused, [
      { what: 'b', message: 'first part; second part', reason: 'RouteRefused' },
      { what: 'd', message: 'Invalid argument', reason: 'RouteRefused' },
    ]);
  });

  test('lines that end the program are found, and all others are run', async () => {
    const { programs, runs } = programsThat(
      { '7': 'Error: seven.' },
      { '3': 'RTNETLINK answers: three', '11': 'eleven' },
    );
    const lines = Array.from({ length: 16 }, (_, index) => String(index));
    const { changed, refused } = await runChanges(
      programs,
      lines.map((line) => change(line)),
    );
    assert.equal(changed, 13);
    assert.deepEqual(
      refused.map(({ what, message }) => `${what}: ${message}`),
      ['3: three', '7: seven', '11: eleven'],
    );
    assert.ok(runs.length <= 17, `${runs.length} runs; two lines at fault among 16 need at most 2 x 2 x 4 + 1`);
    for (const line of lines) assert.ok(runs.some((run) => run.includes(line)));
  });

  test('what is already so is no refusal', async () => {
    const { programs } = programsThat(
      {
        'rule add pref 94 fwmark 0x1 lookup 2601': 'RTNETLINK answers: File exists',
        'route del default table 2601': 'RTNETLINK answers: No such process',
        'addr del 10.6.0.1/32 dev egw-eip': 'Error: ipv4: Address not found.',
        'link del dev egw-eip': 'Cannot find device "egw-eip"',
        'link add name egw-eip type bridge': 'RTNETLINK answers: File exists',
      },
      { 'neigh del 172.31.0.1 dev egress.vxlan': 'RTNETLINK answers: No such file or directory' },
    );
    const { refused } = await runChanges(programs, [
      change('rule add pref 94 fwmark 0x1 lookup 2601'),
      change('route del default table 2601'),
      change('addr del 10.6.0.1/32 dev egw-eip'),
      change('link del dev egw-eip'),
      change('neigh del 172.31.0.1 dev egress.vxlan'),
      change('link add name egw-eip type bridge'),
    ]);
    assert.deepEqual(
      refused.map(({ what }) => what),
      ['link add name egw-eip type bridge'],
    );
  });

  test('without the right to change the network, the reason says so', async () => {
    const { programs } = programsThat({ a: 'RTNETLINK answers: Operation not permitted' }, {});
    const { refused } = await runChanges(programs, [change('a')]);
    assert.equal(refused[0]?.reason, 'CapabilityMissing');
  });

  test('a name that the program would read as something else is refused before it gets there', async () => {
    const { programs, runs } = programsThat({}, {});
    const names = ['a"b', "a'b", 'a#b', 'a\\b', 'a;b', 'a\nlink del eth0'];
    const { changed, refused } = await runChanges(programs, [
      change('link set dev fine up'),
      ...names.map((name) => change(`link set dev ${name} up`)),
    ]);
    assert.equal(changed, 1);
    assert.equal(refused.length, names.length);
    assert.deepEqual(runs, [['ip -force -batch -', 'link set dev fine up']]);
  });

  test('a program that is missing or hangs is tried once, and every line is refused', async () => {
    for (const [code, stderr, message] of [
      [127, 'spawn ip ENOENT', 'spawn ip ENOENT'],
      [128, '', 'ip took too long'],
    ] as const) {
      let runs = 0;
      const programs: Programs = {
        run: async () => {
          runs += 1;
          return { code, stdout: '', stderr };
        },
        follow: () => assert.fail('nothing is followed'),
      };
      const { changed, refused } = await runChanges(programs, [change('a'), change('b'), change('c')]);
      assert.equal(changed, 0);
      assert.deepEqual(
        refused.map((refusal) => refusal.message),
        [message, message, message],
      );
      assert.equal(runs, 1);
    }
  });
});
