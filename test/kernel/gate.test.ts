/** The gate of a real kernel: a peer on the same segment asks for EIPs that lie ready on the node, and gets an answer or none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ip } from '../../src/core/ip/index.ts';
import { createGateTables, joinGate, openGateSets } from '../../src/dataplane/gate/gate.ts';
import { describeGate, gateIps } from '../../src/dataplane/gate/testing/conformance.ts';
import { loadLibc } from '../../src/dataplane/libc.ts';
import { renderTable } from '../../src/dataplane/nft/render.ts';
import { settings } from '../../src/dataplane/nft/testing/tables.ts';
import { inNamespace } from './enter.ts';
import { openNamespace } from './namespace.ts';

const libc = await loadLibc();
const [ipv4, ipv6] = gateIps;
let opened = 0;

const openWorld = async ({ tunnel = 'egw0' } = {}) => {
  opened += 1;
  const node = await openNamespace(`gate${opened}`);
  const peer = await openNamespace(`peer${opened}`);
  await node.must('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', peer.name);
  for (const [namespace, last] of [[node, '11'] as const, [peer, '1'] as const]) {
    await namespace.must('ip', 'addr', 'add', `10.6.0.${last}/24`, 'dev', 'eth0');
    await namespace.must('ip', 'addr', 'add', `fd06::${last}/64`, 'dev', 'eth0', 'nodad');
    await namespace.must('ip', 'link', 'set', 'eth0', 'up');
  }
  // A bridge without ports, as where the kernel has no dummy device.
  await node.must('ip', 'link', 'add', 'egw-eip', 'type', 'bridge');
  await node.must('ip', 'link', 'set', 'egw-eip', 'up');
  await node.must('ip', 'addr', 'add', `${ipv4}/32`, 'dev', 'egw-eip');
  await node.must('ip', 'addr', 'add', `${ipv6}/128`, 'dev', 'egw-eip', 'nodad');
  await node.must('sysctl', '-q', 'net.ipv6.conf.all.forwarding=1', 'net.ipv6.conf.eth0.proxy_ndp=1');
  await node.must('sysctl', '-q', 'net.ipv6.neigh.eth0.proxy_delay=0');
  await node.must('ip', 'neigh', 'add', 'proxy', ipv6, 'dev', 'eth0');
  await node.programs.run(['nft', '-f', '-'], { input: renderTable({ ...settings, isGated: true }) });
  let signature = 1;
  const gateSets = inNamespace(node.name, () => openGateSets(libc, () => signature++));
  return {
    gate: joinGate(createGateTables(node.programs, tunnel), gateSets),
    isAnswered: async (ip: Ip) => {
      await peer.must('ip', 'neigh', 'flush', 'dev', 'eth0');
      return (await peer.programs.run(['ping', '-c', '1', '-W', '1', ip])).code === 0;
    },
    tamper: async () => {
      for (const family of ['arp', 'ip6']) await node.must('nft', 'delete', 'table', family, 'sallyport');
    },
    [Symbol.asyncDispose]: async () => {
      gateSets.close();
      await node.close();
      await peer.close();
    },
    node,
    peer,
  };
};

describeGate('the kernel', () => openWorld());

test('a node asks for its next hop in the name of an EIP only while it holds it', async () => {
  await using world = await openWorld();
  const { node, peer, gate } = world;
  const counting = 'type filter hook input priority filter; policy accept;';
  await peer.must('nft', `add table arp heard; add chain arp heard input { ${counting} }`);
  await peer.must('nft', `add rule arp heard input arp saddr ip ${ipv4} counter`);
  const asked = async (): Promise<boolean> => {
    await node.must('ip', 'neigh', 'flush', 'dev', 'eth0');
    await node.programs.run(['ping', '-c', '1', '-W', '1', '-I', ipv4, '10.6.0.1']);
    return !(await peer.must('nft', 'list', 'table', 'arp', 'heard')).includes('packets 0 ');
  };
  await gate.prepare();
  gate.cover([ipv4]);
  assert.equal(await asked(), false);
  gate.hold([{ ip: ipv4, epoch: 1, isAnswered: true }], 60_000);
  assert.equal(await asked(), true);
});

test('a kernel that has let go of its EIPs by itself does not answer a knock, so that others take them over at once', async () => {
  await using world = await openWorld({ tunnel: 'eth0' });
  const { peer, gate } = world;
  const answers = async (): Promise<boolean> => {
    const { stderr } = await peer.programs.run(['timeout', '3', 'bash', '-c', 'exec 3<>/dev/tcp/10.6.0.11/9']);
    return stderr.includes('refused');
  };
  const [held] = [[{ ip: ipv4, epoch: 1, isAnswered: true }]];
  await gate.prepare();
  gate.cover([ipv4]);
  assert.equal(await answers(), true, 'it holds nothing');
  gate.hold(held, 60_000);
  assert.equal(await answers(), true, 'it holds');
  gate.hold([], 60_000);
  // On top of nothing: the kernel is told what comes only.
  gate.hold(held, 1);
  while (await world.isAnswered(ipv4)) assert.equal(gate.cover([ipv4]), undefined);
  assert.equal(await answers(), false, 'it has let go');
  // An agent that starts mends the tables: that changes nothing.
  await gate.prepare();
  assert.equal(await answers(), false);
  gate.hold([], 60_000);
  assert.equal(await answers(), true, 'it is told to hold nothing');
});
