/** The network module against Linux. This kernel has no dummy device, so EIPs are on a bridge here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groOfInterface } from '../../src/dataplane/interface.ts';
import type { Access } from '../../src/dataplane/ip/access.ts';
import { readProxies } from '../../src/dataplane/ip/listing.ts';
import { createNetwork } from '../../src/dataplane/ip/network.ts';
import { loadRouteSocket } from '../../src/dataplane/ip/route-socket.ts';
import { networkConformance } from '../../src/dataplane/ip/testing/conformance.ts';
import { networkDesired } from '../../src/dataplane/ip/testing/desired.ts';
import { hostLines, runningClock, usualNames } from '../../src/dataplane/ip/testing/fake-network.ts';
import { applied, type World } from '../../src/dataplane/ip/testing/node.ts';
import { watchConformance } from '../../src/dataplane/ip/testing/watch-conformance.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { createRefusingPrograms } from '../../src/dataplane/testing/refusing-programs.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

const openRouteSocket = await loadRouteSocket();
let worlds = 0;

const open = (): Promise<World> => {
  worlds += 1;
  return openNamespace(`ip${worlds}`);
};

/** The same without programs for what comes and goes, as the agent has it. */
const openWithSocket = async (): Promise<World> => {
  worlds += 1;
  const namespace = await openNamespace(`ip${worlds}`);
  const socket = inNamespace(namespace.name, openRouteSocket);
  return {
    programs: namespace.programs,
    socket,
    [Symbol.asyncDispose]: async () => {
      socket?.close();
      await namespace.close();
    },
  };
};

test('the tunnel device does not join packets, again after somebody made it, unless it is desired', async () => {
  worlds += 1;
  const namespace = await openNamespace(`ip${worlds}`);
  const libc = await loadLibc();
  const [socket, asking] = inNamespace(namespace.name, () => [openRouteSocket(), libc.socket(2, 2, 0)] as const);
  try {
    for (const line of hostLines) await namespace.must('ip', ...line.split(' '));
    const { programs } = namespace;
    const network = createNetwork({ programs, socket, names: usualNames, clock: runningClock });
    const isOn = () => groOfInterface(libc, asking, usualNames.tunnel);
    const desired = networkDesired({ gateways: [] });
    await applied(network, desired);
    assert.equal(isOn(), false);
    assert.equal(socket?.setGro(usualNames.tunnel, true), true, 'somebody turns it on');
    assert.equal(isOn(), true);
    network.distrust();
    await applied(network, desired);
    assert.equal(isOn(), false);
    const links = desired.links.map((link) => (link.kind === 'vxlan' ? { ...link, hasGro: true } : link));
    await applied(network, { ...desired, links });
    assert.equal(isOn(), true);
    assert.equal(socket?.setGro('nowhere0', true), false);
  } finally {
    libc.close(asking);
    socket?.close();
    await namespace.close();
  }
});

test('proxy entries read from the kernel are those that ip lists', async () => {
  const namespace = await openNamespace('ipproxies');
  const socket = inNamespace(namespace.name, openRouteSocket);
  try {
    for (const line of hostLines) await namespace.must('ip', ...line.split(' '));
    const sorted = async (access: Access) => (await readProxies(access)).toSorted((a, b) => (a.ip < b.ip ? -1 : 1));
    assert.deepEqual(await sorted({ programs: namespace.programs, socket }), []);
    const entry = (number: number): string =>
      `neigh add proxy fd06::${number.toString(16)} dev ${number % 2 === 0 ? 'lo' : 'eth0'} proto ${38 + (number % 3)}`;
    const input = Array.from({ length: 1_000 }, (_, number) => `${entry(number + 1)}\n`).join('');
    const made = await namespace.programs.run(['ip', '-6', '-batch', '-'], { input });
    assert.equal(made.code, 0, made.stderr);
    const expected = await sorted({ programs: namespace.programs });
    assert.equal(expected.length, 1_000);
    assert.deepEqual(await sorted({ programs: createRefusingPrograms(), socket }), expected);
  } finally {
    socket?.close();
    await namespace.close();
  }
});

networkConformance('Linux', open);
networkConformance('Linux, by netlink', openWithSocket);
watchConformance('Linux', open);
