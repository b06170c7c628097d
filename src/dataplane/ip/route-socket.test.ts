import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RuleDesired } from '../../core/node/desired.ts';
import { ip } from '../../core/testing/address.ts';
import { createRefusingPrograms } from '../testing/refusing-programs.ts';
import type { Change } from './change.ts';
import {
  dropAddress,
  dropForwarding,
  dropLink,
  dropNeighbour,
  dropProxy,
  dropRoute,
  dropRule,
  putAddress,
  putForwarding,
  putNeighbour,
  putProxy,
  putRoute,
  putRule,
} from './lines.ts';
import { readProxies } from './listing.ts';
import { type Message, messageOf } from './messages.ts';
import { type RouteSocket, withRouteSocket } from './netlink.ts';

const device = 'egress.vxlan';
const mac = '66:00:00:00:00:0b';
const [four, six] = [ip('172.31.0.12'), ip('fd11::12')];
const address = { device: 'egw-eip', ip: ip('10.6.0.100'), prefixLength: 32 };
const address6 = { device: 'egw-eip', ip: ip('fd06::100'), prefixLength: 128 };
const found = { type: 'unicast', destination: 'default', device, isComplex: false, source: undefined };
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

const known: readonly Change[] = [
  ...[address, address6].flatMap((each) => [putAddress(each, true), putAddress(each, false), dropAddress(each)]),
  ...[four, six].flatMap((each) => [
    putNeighbour({ device, ip: each, mac }),
    dropNeighbour({ device, ip: each, mac }),
    putForwarding({ device, mac, to: each }),
    dropForwarding({ device, mac, to: each }),
    putRoute({ table: 2601, via: each, device }),
  ]),
  putProxy(address6),
  dropProxy(address6),
  dropRoute({ ...found, family: 4, table: 2601, via: four, metric: 0 }),
  dropRoute({ ...found, family: 6, table: 2601, via: six, metric: 1024 }),
  ...rules.flatMap((rule) => [putRule(rule), dropRule(rule)]),
];

describe('messages of lines', () => {
  it('are there for all that comes and goes with EIPs and peers', () => {
    for (const { tool, line } of known) {
      const message = messageOf(tool, line, () => 7);
      assert.ok(message !== undefined, line);
      assert.equal(message.readUInt32LE(0), message.length, line);
    }
  });

  it('are those of ip: an EIP that comes, byte by byte', () => {
    // strace of `ip addr replace 10.6.0.100/32 dev egw-eip`, without its sequence number.
    const header = '28000000 1400 0505 00000000 00000000';
    const body = '02 20 00 00 07000000 0800 0200 0a060064 0800 0100 0a060064';
    const { tool, line } = putAddress(address, true);
    assert.equal(messageOf(tool, line, () => 7)?.toString('hex'), `${header} ${body}`.replaceAll(' ', ''));
  });

  it('are not there for devices, for what others made, and for a device that is not there', () => {
    const foreign = dropRoute({ ...found, family: 4, table: 2601, via: undefined, metric: 5, type: 'blackhole' });
    for (const { tool, line } of [dropLink(device), foreign])
      assert.equal(
        messageOf(tool, line, () => 7),
        undefined,
      );
    const { tool, line } = putAddress(address, true);
    assert.equal(
      messageOf(tool, line, () => undefined),
      undefined,
    );
  });
});

/** A socket and programs that keep what they were given. */
const machine = (isTaken: boolean) => {
  const bySocket: (number | string)[] = [];
  const socket: RouteSocket = {
    indexOf: () => 7,
    send: (messages: readonly Message[]) => {
      bySocket.push(messages.length);
      return isTaken;
    },
    proxies: () => {
      bySocket.push('proxies');
      return isTaken ? [{ dst: 'fd06::100', dev: 'eth0', protocol: '38' }] : undefined;
    },
    setGro: (name, isOn) => {
      bySocket.push(`${name} ${isOn}`);
      return isTaken;
    },
    close: () => {},
  };
  const programs = createRefusingPrograms();
  return { bySocket, byProgram: programs.left, programs: withRouteSocket(programs, socket) };
};

const batch = ['ip', '-force', '-batch', '-'];
const input = `${putAddress(address, true).line}\n${putAddress(address6, true).line}\n`;

describe('a batch on a socket', () => {
  it('starts no program', async () => {
    const { bySocket, byProgram, programs } = machine(true);
    assert.equal((await programs.run(batch, { input })).code, 0);
    assert.deepEqual([bySocket, byProgram], [[2], []]);
  });

  it('starts none for the one setting of a device that ip has no words for', async () => {
    const [taking, refusing] = [machine(true), machine(false)];
    const argv = ['ethtool', '-K', device, 'gro', 'off'];
    assert.equal((await taking.programs.run(argv)).code, 0);
    await refusing.programs.run(argv);
    assert.deepEqual([taking.bySocket, taking.byProgram], [[`${device} false`], []]);
    assert.deepEqual(refusing.byProgram, [`ethtool -K ${device} gro off < `]);
  });

  it('starts none to list proxy entries, unless the kernel does not tell', async () => {
    const [telling, refusing] = [machine(true), machine(false)];
    assert.deepEqual(await readProxies(telling.programs), [{ device: 'eth0', ip: 'fd06::100', protocol: 38 }]);
    await assert.rejects(readProxies(refusing.programs));
    assert.deepEqual([telling.bySocket, telling.byProgram], [['proxies'], []]);
    assert.deepEqual(refusing.byProgram, ['ip -6 -j -d -batch - < neigh show proxy\n']);
  });

  it('is for the program when the kernel refuses any of it', async () => {
    const { bySocket, byProgram, programs } = machine(false);
    assert.equal((await programs.run(batch, { input })).stderr, 'the program says why');
    assert.deepEqual([bySocket, byProgram], [[2], [`ip -force -batch - < ${input}`]]);
  });

  it('is for the program, whole and in its order, when one line has no message', async () => {
    const { bySocket, byProgram, programs } = machine(true);
    const whole = `${input}${dropLink(device).line}\n`;
    await programs.run(batch, { input: whole });
    await programs.run(['ip', '-j', '-d', '-batch', '-'], { input: 'addr show\n' });
    assert.deepEqual(bySocket, []);
    assert.deepEqual(byProgram, [`ip -force -batch - < ${whole}`, 'ip -j -d -batch - < addr show\n']);
  });
});
