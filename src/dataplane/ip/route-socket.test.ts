import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RuleDesired } from '../../core/node/desired.ts';
import { ip } from '../../core/testing/address.ts';
import { createRefusingPrograms } from '../testing/refusing-programs.ts';
import type { RouteSocket } from './access.ts';
import { runChanges } from './batch.ts';
import type { NetworkChange, Verb } from './change.ts';
import { type RouteListed, readProxies } from './listing.ts';
import { messageOf, type RequestMessage } from './messages.ts';
import { createNetwork } from './network.ts';
import { networkDesired } from './testing/desired.ts';
import { createFakeNetwork, usualNames } from './testing/fake-network.ts';
import { textOf } from './text.ts';

const device = 'egress.vxlan';
const mac = '66:00:00:00:00:0b';
const [four, six] = [ip('172.31.0.12'), ip('fd11::12')];
const address = { device: 'egw-eip', ip: ip('10.6.0.100'), prefixLength: 32 };
const address6 = { device: 'egw-eip', ip: ip('fd06::100'), prefixLength: 128 };
const found = { type: 'unicast', destination: 'default', device, isComplex: false, source: undefined };
const verbs: readonly Verb[] = ['put', 'drop'];
const eipComes: NetworkChange = { kind: 'address', verb: 'put', address, isEip: true };
const eip6Comes: NetworkChange = { kind: 'address', verb: 'put', address: address6, isEip: true };
const dropRoute = (route: RouteListed): NetworkChange => ({ kind: 'route', verb: 'drop', route });
const dropDevice: NetworkChange = { kind: 'drop-link', name: device };
const rules = [4, 6].flatMap((family): RuleDesired[] => [
  // The families come from the list above.
  {
    family: family as 4 | 6,
    priority: 94,
    mark: 0x26010000,
    mask: 0xffff0000,
    action: { kind: 'lookup', table: 2601 },
  },
  { family: family as 4 | 6, priority: 93, mark: 0, mask: 0xff000000, action: { kind: 'goto', priority: 95 } },
]);

const known: readonly NetworkChange[] = [
  eipComes,
  eip6Comes,
  ...verbs.flatMap((verb): NetworkChange[] => [
    ...[address, address6].map((each) => ({ kind: 'address', verb, address: each, isEip: false }) as const),
    ...[four, six].flatMap((each): NetworkChange[] => [
      { kind: 'neighbour', verb, neighbour: { device, ip: each, mac } },
      { kind: 'forwarding', verb, forwarding: { device, mac, to: each } },
    ]),
    { kind: 'proxy', verb, proxy: address6 },
    ...rules.map((rule) => ({ kind: 'rule', verb, rule }) as const),
  ]),
  ...[four, six].map((via) => ({ kind: 'route', verb: 'put', route: { table: 2601, via, device } }) as const),
  dropRoute({ ...found, family: 4, table: 2601, via: four, metric: 0 }),
  dropRoute({ ...found, family: 6, table: 2601, via: six, metric: 1024 }),
];

describe('messages of changes', () => {
  it('are there for all that comes and goes with EIPs and peers', () => {
    for (const change of known) {
      const message = messageOf(change, () => 7);
      assert.ok(message !== undefined, textOf(change));
      assert.equal(message.readUInt32LE(0), message.length, textOf(change));
    }
  });

  it('are those of ip: an EIP that comes, byte by byte', () => {
    // strace of `ip addr replace 10.6.0.100/32 dev egw-eip`, without its sequence number.
    const header = '28000000 1400 0505 00000000 00000000';
    const body = '02 20 00 00 07000000 0800 0200 0a060064 0800 0100 0a060064';
    assert.equal(messageOf(eipComes, () => 7)?.toString('hex'), `${header} ${body}`.replaceAll(' ', ''));
  });

  it('are not there for devices, for what others made, and for a device that is not there', () => {
    const foreign = dropRoute({ ...found, family: 4, table: 2601, via: undefined, metric: 5, type: 'blackhole' });
    for (const change of [dropDevice, foreign])
      assert.equal(
        messageOf(change, () => 7),
        undefined,
      );
    assert.equal(
      messageOf(eipComes, () => undefined),
      undefined,
    );
  });
});

/** A socket and programs that keep what they were given. */
const machine = (isTaken: boolean) => {
  const bySocket: (number | string)[] = [];
  const socket: RouteSocket = {
    indexOf: () => 7,
    send: (messages: readonly RequestMessage[]) => {
      bySocket.push(messages.length);
      return isTaken;
    },
    proxies: () => {
      bySocket.push('proxies');
      return isTaken ? [{ device: 'eth0', ip: ip('fd06::100'), protocol: 38 }] : undefined;
    },
    setGro: (name, isOn) => {
      bySocket.push(`${name} ${isOn}`);
      return isTaken;
    },
    close: () => {},
  };
  const programs = createRefusingPrograms();
  return { bySocket, byProgram: programs.left, access: { programs, socket } };
};

const input = `${textOf(eipComes)}\n${textOf(eip6Comes)}\n`;
const pair = [eipComes, eip6Comes];

describe('changes with a socket', () => {
  it('start no program', async () => {
    const { bySocket, byProgram, access } = machine(true);
    assert.deepEqual(await runChanges(access, pair), { changed: 2, refused: [] });
    assert.deepEqual([bySocket, byProgram], [[2], []]);
  });

  it('start none for the one setting of a device that ip has no words for', async () => {
    const desired = networkDesired({ gateways: [] });
    const clock = { after: () => () => {} };
    for (const isTaken of [true, false]) {
      const { bySocket, byProgram, access } = machine(isTaken);
      const { kernel } = createFakeNetwork();
      const run: typeof access.programs.run = (argv, options) =>
        (argv[0] === 'ethtool' ? access.programs : kernel.programs).run(argv, options);
      const network = createNetwork({
        programs: { ...kernel.programs, run },
        socket: { ...access.socket, indexOf: () => undefined },
        names: usualNames,
        clock,
      });
      await network.grow(desired);
      assert.ok(bySocket.includes(`${device} false`));
      assert.deepEqual(byProgram, isTaken ? [] : [`ethtool -K ${device} gro off < `]);
    }
  });

  it('start none to list proxy entries, unless the kernel does not tell', async () => {
    const [telling, refusing] = [machine(true), machine(false)];
    assert.deepEqual(await readProxies(telling.access), [{ device: 'eth0', ip: 'fd06::100', protocol: 38 }]);
    await assert.rejects(readProxies(refusing.access));
    assert.deepEqual([telling.bySocket, telling.byProgram], [['proxies'], []]);
    assert.deepEqual(refusing.byProgram, ['ip -6 -j -d -batch - < neigh show proxy\n']);
  });

  it('are for the program when the kernel refuses any of them', async () => {
    const { bySocket, byProgram, access } = machine(false);
    const { refused } = await runChanges(access, [eipComes]);
    assert.equal(refused[0]?.message, 'the program says why');
    assert.deepEqual([bySocket, byProgram], [[1], [`ip -force -batch - < ${textOf(eipComes)}\n`]]);
  });

  it('are for the program, whole and in their order, when one has no message', async () => {
    const { bySocket, byProgram, access } = machine(true);
    await runChanges(access, [...pair, dropDevice]);
    assert.deepEqual(bySocket, []);
    assert.equal(byProgram[0], `ip -force -batch - < ${input}${textOf(dropDevice)}\n`);
  });
});
