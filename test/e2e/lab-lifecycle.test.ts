import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, test } from 'node:test';
import { run } from '../../lab/host/command.ts';
import { instanceOf, readRecord } from '../../lab/host/instance.ts';
import { until } from '../../lab/host/wait.ts';
import { openLab } from '../../lab/lab.ts';
import { changes, takePicture } from './machine.ts';

const bin = new URL('../../bin/lab', import.meta.url).pathname;
const lab = (...args: string[]) => run([bin, ...args], { timeoutMs: 400_000 });

/** The lab as its user sees it: the command line, and a machine that is as before afterwards. */
describe('life of a lab', () => {
  afterEach(async () => {
    // A test that failed half-way must not spoil the next one.
    for (const name of ['e2e-one', 'e2e-two', 'e2e-killed']) await lab('down', '--name', name);
  });

  test('two labs live side by side, with the same addresses; down leaves nothing of either behind', async () => {
    const before = await takePicture();
    const small = ['--gateways', '1', '--workers', '0'];
    const started = performance.now();
    const [one, two] = await Promise.all([
      lab('up', '--name', 'e2e-one', ...small),
      lab('up', '--name', 'e2e-two', ...small),
    ]);
    assert.equal(one.code, 0, one.stderr);
    assert.equal(two.code, 0, two.stderr);
    console.log(`two labs of one node up in ${((performance.now() - started) / 1000).toFixed(1)} s`);

    const first = await openLab('e2e-one');
    const second = await openLab('e2e-two');
    await first.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'only-here' } });
    assert.equal((await second.tryKubectl(['get', 'namespace', 'only-here'])).code, 1);
    assert.deepEqual(first.status, second.status);

    const again = await lab('up', '--name', 'e2e-one', ...small);
    assert.equal(again.code, 2);
    assert.match(again.stderr, /^lab: lab "e2e-one" is up already; .*\n$/);
    assert.equal(
      (await first.tryKubectl(['get', 'namespace', 'only-here'])).code,
      0,
      'the running lab was not touched',
    );

    const status = await lab('status', '--name', 'e2e-one', '--json');
    const parsed = JSON.parse(status.stdout) as typeof first.status;
    assert.deepEqual(parsed.nodes, [{ name: 'gateway-1', ipv4: '10.77.0.11', ipv6: 'fd77::11', gateway: true }]);
    assert.ok(parsed.eips.ipv4.length >= 32 && parsed.eips.ipv6.length >= 32);
    const { stdout: path } = await lab('kubeconfig', '--name', 'e2e-one');
    const plain = await run([first.programs.kubectl, 'get', 'nodes', '-o', 'name'], {
      env: { KUBECONFIG: path.trim() },
    });
    assert.equal(plain.stdout, 'node/gateway-1\n');
    const inside = await lab(
      'exec',
      '--name',
      'e2e-one',
      'gateway-1',
      '--',
      'sh',
      '-c',
      'ip -br address show eth0; exit 5',
    );
    assert.equal(inside.code, 5);
    assert.match(inside.stdout, /10\.77\.0\.11\/24 .*fd77::11\/64/);

    for (const name of ['e2e-one', 'e2e-two', 'e2e-one']) assert.equal((await lab('down', '--name', name)).code, 0);
    assert.deepEqual(changes(before, await takePicture()), []);
  });

  test('a driver killed in the middle of up, and a killed owner, leave a lab that the next command removes', async () => {
    const before = await takePicture();
    const driver = spawn(bin, ['up', '--name', 'e2e-killed'], { stdio: 'ignore' });
    await until({ what: 'a kubelet of the lab', limitMs: 120_000 }, () =>
      Object.keys(readRecord(instanceOf('e2e-killed'))?.processes ?? {}).some((name) => name.endsWith('/kubelet')),
    );
    await kill(driver);

    const owner = spawn('sleep', ['600'], { stdio: 'ignore' });
    owner.unref();
    const up = await lab('up', '--name', 'e2e-one', '--gateways', '0', '--workers', '0', '--owner', String(owner.pid));
    assert.equal(up.code, 0, up.stderr);
    assert.match(up.stderr, /removed what was left of lab "e2e-killed"/);
    await kill(owner);

    const next = await lab('up', '--name', 'e2e-two', '--gateways', '0', '--workers', '0');
    assert.match(next.stderr, /removed what was left of lab "e2e-one"/);
    assert.equal((await lab('down', '--name', 'e2e-two')).code, 0);
    assert.deepEqual(changes(before, await takePicture()), []);
  });

  test('Ctrl-C in the middle of up takes everything down', async () => {
    const before = await takePicture();
    const driver = spawn(bin, ['up', '--name', 'e2e-killed'], { stdio: 'ignore' });
    await until(
      { what: 'an API server of the lab', limitMs: 120_000 },
      () => readRecord(instanceOf('e2e-killed'))?.processes['kube-apiserver'] !== undefined,
    );
    driver.kill('SIGINT');
    assert.deepEqual(await once(driver, 'close'), [130, null]);
    assert.deepEqual(changes(before, await takePicture()), []);
  });

  test('bad input is one sentence, exit code 2, and changes nothing', async () => {
    const before = await takePicture();
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['up', '--bogus'], /unknown option '--bogus'/],
      [['up', '--workers', 'many'], /'many' is invalid. Use a whole number/],
      [['up', '--workers', '500'], /at most 88 nodes/],
      [['up', '--name', 'Big'], /"Big" is not allowed/],
      [['up', '--proxy-mode', 'worker-1=ipvs'], /Use NODE=nftables or NODE=iptables/],
      [['up', '--proxy-mode', 'worker-7=iptables'], /"worker-7", which is not in the lab/],
      [['up', '--owner', '999999999'], /no such process/],
      [['up', 'now'], /too many arguments/],
      [['status', '--name', 'nowhere'], /"nowhere" is not up/],
      [['kubeconfig', '--name', 'nowhere'], /"nowhere" is not up/],
      [['exec', '--name', 'nowhere', 'worker-1', '--', 'true'], /"nowhere" is not up/],
      [['node', 'off'], /missing required argument 'node'/],
      [['node', 'off', '--name', 'nowhere', 'worker-1'], /"nowhere" is not up/],
      [['node', 'explode', 'worker-1'], /unknown command 'explode'/],
      [['restart', 'kernel', '--name', 'nowhere'], /there is no part "kernel"/],
      [['frobnicate'], /unknown command 'frobnicate'/],
    ];
    for (const [args, sentence] of cases) {
      const refused = await lab(...args);
      assert.equal(refused.code, 2, `${args.join(' ')}: ${refused.stderr}`);
      assert.match(refused.stderr, sentence);
      assert.match(refused.stderr, /^lab: [^\n]+\n$/, `one sentence for ${args.join(' ')}`);
      assert.equal(refused.stdout, '');
    }
    const unprivileged = await run(['setpriv', '--reuid=65534', '--clear-groups', bin, 'up', '--name', 'e2e-one']);
    assert.equal(unprivileged.code, 2);
    assert.match(unprivileged.stderr, /^lab: the lab needs root[^\n]+\n$/);
    assert.deepEqual(changes(before, await takePicture()), []);
  });
});

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'close');
  child.kill('SIGKILL');
  await gone;
}
