import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import type { ProgramResult, Programs } from '../program.ts';
import { runChanges } from './batch.ts';
import type { NetworkChange } from './change.ts';
import { textOf } from './text.ts';

/** A change of which a test needs to know only which one it is. */
const change = (name: string): NetworkChange => ({ kind: 'drop-link', name });
const lineOf = (name: string): string => textOf(change(name));
/** The same for programs: what is said about which device. */
const about = (words: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(words).map(([name, message]) => [lineOf(name), message]));

/** A program that fails for some lines, and for others ends without a word about the rest; counts how often each line ran. */
const programsThat = (fails: Readonly<Record<string, string>>, ends: Readonly<Record<string, string>>) => {
  const runs: string[][] = [];
  const programs: Programs = {
    run: async (argv, options): Promise<ProgramResult> => {
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
    const forwarding = { device: 'egw0', mac: '66:00:00:00:00:0c', to: ip('10.6.0.12') };
    const rule = { family: 6, priority: 94, mark: 1, mask: 255, action: { kind: 'lookup', table: 2601 } } as const;
    const changes: readonly NetworkChange[] = [
      change('a'),
      change('b'),
      { kind: 'forwarding', verb: 'put', forwarding },
      { kind: 'rule', verb: 'put', rule },
      change('e'),
    ];
    assert.deepEqual(await runChanges({ programs }, changes), { changed: 5, refused: [] });
    assert.deepEqual(runs, [
      ['ip -force -batch -', 'link del dev a', 'link del dev b'],
      ['bridge -force -batch -', 'fdb replace 66:00:00:00:00:0c dev egw0 dst 10.6.0.12'],
      ['ip -6 -force -batch -', 'rule add pref 94 fwmark 0x1/0xff lookup 2601'],
      ['ip -force -batch -', 'link del dev e'],
    ]);
  });

  test('no changes start no program', async () => {
    const { programs, runs } = programsThat({}, {});
    assert.deepEqual(await runChanges({ programs }, []), { changed: 0, refused: [] });
    assert.deepEqual(runs, []);
  });

  test('each failure goes to its line, with all that was said about it', async () => {
    const { programs } = programsThat(
      about({ b: 'Error: first part.\nsecond part', d: 'RTNETLINK answers: Invalid argument' }),
      {},
    );
    const { changed, refused } = await runChanges({ programs }, ['a', 'b', 'c', 'd'].map(change));
    assert.equal(changed, 2);
    assert.deepEqual(refused, [
      { what: 'device b', message: 'first part; second part', reason: 'RouteRefused' },
      { what: 'device d', message: 'Invalid argument', reason: 'RouteRefused' },
    ]);
  });

  test('lines that end the program are found, and all others are run', async () => {
    const { programs, runs } = programsThat(
      about({ '7': 'Error: seven.' }),
      about({ '3': 'RTNETLINK answers: three', '11': 'eleven' }),
    );
    const names = Array.from({ length: 16 }, (_, index) => String(index));
    const { changed, refused } = await runChanges({ programs }, names.map(change));
    assert.equal(changed, 13);
    assert.deepEqual(
      refused.map(({ what, message }) => `${what}: ${message}`),
      ['device 3: three', 'device 7: seven', 'device 11: eleven'],
    );
    assert.ok(runs.length <= 17, `${runs.length} runs; two lines at fault among 16 need at most 2 x 2 x 4 + 1`);
    for (const name of names) assert.ok(runs.some((run) => run.includes(lineOf(name))));
  });

  test('what is already so is no refusal', async () => {
    const { programs } = programsThat(
      {
        'rule add pref 94 fwmark 0x1/0xff lookup 2601': 'RTNETLINK answers: File exists',
        'route del default dev egw0 table 2601': 'RTNETLINK answers: No such process',
        'addr del 10.6.0.1/32 dev egw-eip': 'Error: ipv4: Address not found.',
        'link del dev egw-eip': 'Cannot find device "egw-eip"',
        'link add name egw-eip type bridge': 'RTNETLINK answers: File exists',
      },
      { 'neigh del 172.31.0.1 dev egress.vxlan': 'RTNETLINK answers: No such file or directory' },
    );
    const { refused } = await runChanges({ programs }, [
      {
        kind: 'rule',
        verb: 'put',
        rule: { family: 4, priority: 94, mark: 1, mask: 255, action: { kind: 'lookup', table: 2601 } },
      },
      {
        kind: 'route',
        verb: 'drop',
        route: {
          family: 4,
          table: 2601,
          type: 'unicast',
          destination: 'default',
          via: undefined,
          device: 'egw0',
          metric: 0,
          source: undefined,
          isComplex: false,
        },
      },
      {
        kind: 'address',
        verb: 'drop',
        address: { ip: ip('10.6.0.1'), prefixLength: 32, device: 'egw-eip' },
        isEip: true,
      },
      change('egw-eip'),
      {
        kind: 'neighbour',
        verb: 'drop',
        neighbour: { ip: ip('172.31.0.1'), device: 'egress.vxlan', mac: '66:00:00:00:00:0c' },
      },
      { kind: 'make-holder', name: 'egw-eip', type: 'bridge' },
    ]);
    assert.deepEqual(
      refused.map(({ what }) => what),
      ['EIP device egw-eip'],
    );
  });

  test('without the right to change the network, the reason says so', async () => {
    const { programs } = programsThat(about({ a: 'RTNETLINK answers: Operation not permitted' }), {});
    const { refused } = await runChanges({ programs }, [change('a')]);
    assert.equal(refused[0]?.reason, 'CapabilityMissing');
  });

  test('a name that the program would read as something else is refused before it gets there', async () => {
    const { programs, runs } = programsThat({}, {});
    const names = ['a"b', "a'b", 'a#b', 'a\\b', 'a;b', 'a\nlink del eth0'];
    const { changed, refused } = await runChanges({ programs }, ['fine', ...names].map(change));
    assert.equal(changed, 1);
    assert.equal(refused.length, names.length);
    assert.deepEqual(runs, [['ip -force -batch -', 'link del dev fine']]);
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
      const { changed, refused } = await runChanges({ programs }, ['a', 'b', 'c'].map(change));
      assert.equal(changed, 0);
      assert.deepEqual(
        refused.map((refusal) => refusal.message),
        [message, message, message],
      );
      assert.equal(runs, 1);
    }
  });
});
