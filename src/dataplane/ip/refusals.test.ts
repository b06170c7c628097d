/** What is told when a kernel lacks something, refuses something, or cannot be read. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Programs } from '../program.ts';
import { createNetwork } from './network.ts';
import { everything, networkDesired } from './testing/desired.ts';
import { createFakeNetwork, runningClock, usualNames } from './testing/fake-network.ts';

describe('refusals', () => {
  test('without dummy devices, EIPs are on a bridge without ports', async () => {
    const network = createFakeNetwork({ lacks: ['dummy'] });
    assert.deepEqual((await network.grow(everything)).refused, []);
    assert.deepEqual(
      (await network.read()).links.map(({ kind }) => kind),
      ['vxlan', 'bridge'],
    );
    assert.deepEqual(await network.grow(everything), { changed: 0, refused: [] });
  });

  test('with dummy devices, they are on one', async () => {
    const network = createFakeNetwork();
    await network.grow(everything);
    assert.deepEqual(
      (await network.read()).links.map(({ kind }) => kind),
      ['vxlan', 'dummy'],
    );
  });

  test('without both, that is the one thing told, and the tunnel works', async () => {
    const network = createFakeNetwork({ lacks: ['dummy', 'bridge'] });
    const { refused } = await network.grow(everything);
    assert.deepEqual(refused, [
      { what: 'EIP device egw-eip', message: 'Unknown device type', reason: 'EipDeviceFailed' },
    ]);
    assert.equal((await network.read()).routes.length, everything.routes.length);
  });

  test('without VXLAN, that is the one thing told, and EIPs are held', async () => {
    const network = createFakeNetwork({ lacks: ['vxlan'] });
    const { refused } = await network.grow(everything);
    assert.deepEqual(
      refused.map(({ what, reason }) => ({ what, reason })),
      [{ what: 'tunnel device egress.vxlan', reason: 'VxlanMissing' }],
    );
    assert.equal((await network.read()).addresses.length, 4);
  });

  test('a kernel that passes over the group policy is told, and nothing is sent through its device', async () => {
    const network = createFakeNetwork({ lacks: ['gbp'] });
    assert.deepEqual((await network.grow(everything)).refused, [
      { what: 'tunnel device egress.vxlan', message: 'the kernel made it without gbp', reason: 'GbpMissing' },
    ]);
    assert.deepEqual((await network.read()).routes, []);
  });

  test('a program that does not know the group policy is told', async () => {
    const network = createFakeNetwork();
    network.kernel.refuse(/link add .* vxlan/, 'vxlan: unknown command "gbp"?');
    assert.deepEqual(
      (await network.grow(everything)).refused.map(({ reason }) => reason),
      ['GbpMissing'],
    );
  });

  test('without the right to change anything, what hangs on a device is not told again', async () => {
    const network = createFakeNetwork();
    network.kernel.refuse(/./, 'RTNETLINK answers: Operation not permitted');
    const { changed, refused } = await network.grow(networkDesired({ gateways: [], eips: [100] }));
    assert.equal(changed, 0);
    assert.deepEqual(
      refused.map(({ what, reason }) => `${what}: ${reason}`),
      [
        'tunnel device egress.vxlan: CapabilityMissing',
        'EIP device egw-eip: CapabilityMissing',
        'proxy entry for fd06::100 on eth0: CapabilityMissing',
      ],
    );
  });

  test('a bridge that got a port carries traffic of others and is left alone', async () => {
    const network = createFakeNetwork({ lacks: ['dummy'] });
    await network.grow(everything);
    network.kernel.say('ip link add port type veth peer name plug');
    network.kernel.say('ip link set port master egw-eip');
    assert.deepEqual(
      (await network.grow(everything)).refused.map(({ what, reason }) => ({ what, reason })),
      [{ what: 'device egw-eip', reason: 'DeviceNameTaken' }],
    );
    await network.remove();
    network.kernel.say('ip link del egw-eip');
  });

  test('what is refused is tried again, and then nothing is left to do', async () => {
    const network = createFakeNetwork();
    network.kernel.refuse(/^route replace .* table 2612$/, 'Error: Nexthop has invalid gateway.');
    const { refused } = await network.grow(everything);
    assert.deepEqual(
      refused.map(({ what, reason, ip }) => ({ what, reason, ip })),
      [
        { what: 'route via 172.31.0.12 in table 2612', reason: 'RouteRefused', ip: '172.31.0.12' },
        { what: 'route via fd11::12 in table 2612', reason: 'RouteRefused', ip: 'fd11::12' },
      ],
    );
    network.kernel.refuse(/^route replace .* table 2612$/, undefined);
    assert.deepEqual(await network.grow(everything), { changed: 2, refused: [] });
    assert.deepEqual(await network.grow(everything), { changed: 0, refused: [] });
  });
});

describe('a kernel that cannot be read', () => {
  const unreadable = (ended: { code: number; stdout: string; stderr: string }) => {
    const programs: Programs = { run: async () => ended, follow: () => assert.fail('nothing is followed') };
    return createNetwork({ programs, names: usualNames, clock: runningClock });
  };

  test('is an error with a code, and nothing is changed', async () => {
    const missing = unreadable({ code: 127, stdout: '', stderr: 'spawn ip ENOENT' });
    await assert.rejects(missing.grow(everything), {
      code: 'NETWORK_UNREADABLE',
      message: 'cannot read the network of the node with "ip -j -d": spawn ip ENOENT',
    });
    for (const stdout of ['', 'Usage: ip', '{}\n', '[]\n', '[\n']) {
      await assert.rejects(unreadable({ code: 0, stdout, stderr: '' }).read(), { code: 'NETWORK_UNREADABLE' }, stdout);
    }
  });

  test('a kernel without IPv6 has no IPv6 rules, and that is all', async () => {
    const { kernel } = createFakeNetwork();
    const programs: Programs = {
      ...kernel.programs,
      run: async (argv, options) =>
        argv.includes('-6')
          ? { code: 1, stdout: '', stderr: 'RTNETLINK answers: Address family not supported by protocol\n' }
          : kernel.programs.run(argv, options),
    };
    const network = createNetwork({ programs, names: usualNames, clock: runningClock });
    const only4 = networkDesired({ gateways: [12] });
    const desired = { ...only4, rules: only4.rules.filter(({ family }) => family === 4) };
    assert.deepEqual((await network.grow(desired)).refused, []);
    assert.deepEqual(await network.grow(desired), { changed: 0, refused: [] });
  });
});
