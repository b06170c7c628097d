import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Ip, isIpv4 } from '../../src/core/ip/index.ts';
import { ip } from '../../src/core/testing/address.ts';
import { createAnnouncer } from '../../src/dataplane/announce/announcer.ts';
import { createConflictListener } from '../../src/dataplane/announce/conflict-listener.ts';
import { announcements } from '../../src/dataplane/announce/frames.ts';
import { createNeighbours } from '../../src/dataplane/announce/neighbours.ts';
import { isRefusal, loadPacketSockets, type OpenPacketSocket } from '../../src/dataplane/announce/packet-socket.ts';
import { type ConflictWorld, conflictConformance } from '../../src/dataplane/announce/testing/conflict-conformance.ts';
import { announcerConformance } from '../../src/dataplane/announce/testing/conformance.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { inNamespace } from './enter.ts';
import { type Namespace, openNamespace } from './namespace.ts';

const NODE_MAC = '66:00:00:00:00:01';
const PEER_MAC = '66:00:00:00:00:02';
const openSocket = await loadPacketSockets();

/** Two machines on one cable: a namespace each, with a veth pair between them. */
interface Segment extends ConflictWorld {
  readonly node: Namespace;
  readonly peerMachine: Namespace;
}

const openSegment = async (): Promise<Segment> => {
  const stack = new AsyncDisposableStack();
  const node = stack.use(await openNamespace('node'));
  const peerMachine = stack.use(await openNamespace('peer'));
  // Otherwise link-local addresses are checked for a second before the machine says anything.
  for (const { must } of [node, peerMachine]) await must('sysctl', '-qw', 'net.ipv6.conf.default.accept_dad=0');
  const ends = ['eth0', 'address', NODE_MAC, 'type', 'veth', 'peer', 'eth0', 'address', PEER_MAC];
  await node.must('ip', 'link', 'add', ...ends, 'netns', peerMachine.name);
  await connect(node, '1');
  await connect(peerMachine, '2');

  const open: OpenPacketSocket = (...place) => inNamespace(node.name, () => openSocket(...place));
  const openAtPeer: OpenPacketSocket = (...place) => inNamespace(peerMachine.name, () => openSocket(...place));
  const family = (ip: Ip): string => (isIpv4(ip) ? '-4' : '-6');
  return {
    node,
    peerMachine,
    open,
    interfaceName: 'eth0',
    mac: NODE_MAC,
    peer: {
      mac: PEER_MAC,
      believe: async (ip, mac) => {
        await peerMachine.must('ip', 'neigh', 'replace', ip, 'lladdr', mac, 'dev', 'eth0', 'nud', 'reachable');
      },
      whereIs: async (ip) => {
        const text = await peerMachine.must('ip', family(ip), 'neigh', 'show', 'to', ip, 'dev', 'eth0');
        return /lladdr (\S+)/.exec(text)?.[1];
      },
      have: async (ip) => {
        await peerMachine.must('ip', 'address', 'add', ip, 'dev', 'eth0', ...(isIpv4(ip) ? [] : ['nodad']));
      },
      announce: (ip) => {
        const socket = openAtPeer('eth0', isIpv4(ip) ? 4 : 6);
        assert.ok(!isRefusal(socket));
        for (const frame of announcements(ip, socket.mac)) assert.equal(socket.send(frame), undefined);
        socket.close();
      },
    },
    announcer: (deps) => stack.adopt(createAnnouncer({ open, ...deps }), (announcer) => announcer.close()),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
};

const connect = async ({ must }: Namespace, last: string): Promise<void> => {
  await must('ip', 'address', 'add', `10.6.0.${last}/24`, 'dev', 'eth0');
  await must('ip', 'address', 'add', `fd06::${last}/64`, 'dev', 'eth0', 'nodad');
  await must('ip', 'link', 'set', 'eth0', 'up');
  // The kernel makes this route itself, but only when it has noticed the carrier, up to a second later.
  await must('ip', '-6', 'route', 'replace', 'multicast', 'ff00::/8', 'dev', 'eth0', 'table', 'local');
};

announcerConformance('kernel', openSegment);
conflictConformance('kernel', openSegment);

test('kernel: a machine that speaks in the name of an EIP is heard, though it announces nothing', async () => {
  await using segment = await openSegment();
  const listener = createConflictListener(segment.open);
  const eips = [ip('10.6.0.100'), ip('fd06::100')];
  listener.listen(eips.map((one) => ({ ip: one, interfaces: ['eth0'] })));
  for (const eip of eips) {
    await segment.peer.have(eip);
    // Nobody answers; the question is what counts.
    const [ping, nobody] = isIpv4(eip) ? ['-4', '10.6.0.77'] : ['-6', 'fd06::77'];
    await segment.peerMachine.programs.run(['ping', ping, '-I', eip, '-c', '1', '-W', '1', nobody]);
    await eventually(`${eip} is heard`, () =>
      listener.heard().some((one) => one.ip === eip && one.mac === segment.peer.mac),
    );
  }
  listener.close();
});

test('kernel: of 10,000 claims of other addresses none gets into the sockets of a listener', async () => {
  await using segment = await openSegment();
  const socket = segment.open('eth0', 4);
  assert.ok(!isRefusal(socket));
  socket.heed([ip('10.6.0.100')]);
  const crowd = inNamespace(segment.peerMachine.name, () => openSocket('eth0', 4));
  assert.ok(!isRefusal(crowd));
  for (let last = 0; last < 10_000; last += 1) {
    for (const frame of announcements(ip(`10.9.${last >> 8}.${last & 255}`), PEER_MAC)) crowd.send(frame);
  }
  crowd.close();
  segment.peer.announce(ip('10.6.0.100'));
  const frames: Buffer[] = [];
  await eventually('the claim of the EIP is there', () => {
    frames.push(...socket.receive());
    return frames.length > 0;
  });
  assert.equal(frames.length, announcements(ip('10.6.0.100'), PEER_MAC).length);
  socket.close();
});

test('kernel: an interface that is deleted under a socket is a refusal, not a fault', async () => {
  await using segment = await openSegment();
  const socket = segment.open('eth0', 4);
  assert.ok(!isRefusal(socket));
  assert.equal(socket.mac, NODE_MAC);
  assert.equal(socket.send(Buffer.alloc(60)), undefined);
  await segment.node.must('ip', 'link', 'delete', 'eth0');
  assert.equal(socket.send(Buffer.alloc(60))?.kind, 'unusable');
  assert.deepEqual(socket.receive(), []);
  socket.close();
  socket.close();
  assert.deepEqual(segment.open('eth0', 4), { why: 'no such device', kind: 'unusable' });
});

test('kernel: neighbours that are asked again and again answer, and do not when they are gone', async () => {
  await using segment = await openSegment();
  const neighbours = createNeighbours(segment.open);
  const ips = [ip('10.6.0.2'), ip('fd06::2')];
  const heard = new Set<Ip>();
  const look = () => {
    for (const one of neighbours.heard()) heard.add(one);
    return neighbours.ask('eth0', ips);
  };
  await eventually('both families are heard', () => look().size === 2 && heard.isSupersetOf(new Set(ips)));
  await segment.peerMachine.must('ip', 'address', 'flush', 'dev', 'eth0');
  // What was asked before may still be answered; what is asked from now on is not.
  look();
  await segment.peerMachine.must('ip', 'address', 'show');
  look();
  heard.clear();
  for (let times = 0; times < 3; times += 1) {
    look();
    await segment.peerMachine.must('ip', 'address', 'show');
  }
  look();
  assert.deepEqual([...heard], []);
  neighbours.close();
});

test('kernel: what is no Ethernet device is refused', async () => {
  await using segment = await openSegment();
  assert.deepEqual(segment.open('lo', 4), { why: 'not an Ethernet device', kind: 'unusable' });
  for (const name of ['', 'missing0', 'a-name-too-long-']) {
    assert.deepEqual(segment.open(name, 6), { why: 'no such device', kind: 'unusable' }, name);
  }
});

test('kernel: an IPv6 socket hears neighbour discovery and no other traffic', async () => {
  await using segment = await openSegment();
  const socket = segment.open('eth0', 6);
  assert.ok(!isRefusal(socket));
  await segment.peerMachine.must('ping', '-6', '-c', '2', '-i', '0.01', '-W', '5', 'fd06::1');
  const types = socket.receive().map((frame) => frame[54]);
  assert.ok(types.length > 0, 'the ping was preceded by a solicitation');
  assert.deepEqual(
    types.filter((type) => type !== 135 && type !== 136),
    [],
  );
  socket.close();
});
