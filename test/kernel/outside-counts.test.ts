import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { must, run } from '../../lab/host/command.ts';
import { packetsBySource, readCounts, resetCounts } from '../../lab/outside/counts.ts';

const outside = `sallyport-kt-${process.pid}-outside`;
const sender = `sallyport-kt-${process.pid}-sender`;
const inside = (namespace: string, ...argv: string[]) => ['ip', 'netns', 'exec', namespace, ...argv];
const onSender = (...argv: string[]) => run(inside(sender, ...argv));
const prefix = inside(outside);

/** Sends one datagram, from a source address of the sender, to a port that nobody listens on. */
const datagram = (source: string, to: string, port: number, sizeBytes = 1) => {
  const type = source.includes(':') ? 'udp6' : 'udp4';
  const script = `
    const socket = require('node:dgram').createSocket('${type}');
    socket.bind(0, '${source}', () => socket.send(Buffer.alloc(${sizeBytes}), ${port}, '${to}', () => socket.close()));`;
  return must('send a datagram', inside(sender, process.execPath, '-e', script));
};

describe('packet counts of the outside world', () => {
  before(async () => {
    for (const namespace of [outside, sender]) await must('add a namespace', ['ip', 'netns', 'add', namespace]);
    const link = `link add eth0 netns ${outside} type veth peer name eth0 netns ${sender}`;
    await must('lay a cable', ['ip', ...link.split(' ')]);
    const wire = async (namespace: string, addresses: readonly string[]) => {
      for (const address of addresses) {
        await must('add an address', inside(namespace, 'ip', 'addr', 'add', address, 'dev', 'eth0', 'nodad'));
      }
      await must('bring the link up', inside(namespace, 'ip', 'link', 'set', 'eth0', 'up'));
    };
    await wire(outside, ['192.0.2.1/24', '2001:db8::1/64']);
    await wire(sender, ['192.0.2.7/24', '192.0.2.8/24', '2001:db8::7/64', '2001:db8::8/64']);
  });
  after(async () => {
    for (const namespace of [outside, sender]) await run(['ip', 'netns', 'del', namespace]);
  });

  it('has TCP, UDP and ICMP of both families, answered or not', async () => {
    await resetCounts(prefix);
    for (const [source, to] of [
      ['192.0.2.7', '192.0.2.1'],
      ['2001:db8::7', '2001:db8::1'],
    ] as const) {
      const host = to.includes(':') ? `[${to}]` : to;
      const curl = await onSender('curl', '-sS', '--interface', source, '--max-time', '5', `http://${host}:81/`);
      assert.equal(curl.code, 7, 'the connection is refused');
      await datagram(source, to, 82);
      await datagram(source, to, 82);
      await must('ping', inside(sender, 'ping', '-q', '-c', '3', '-i', '0.01', '-I', source, to));
    }
    const counts = (await readCounts(prefix)).map(
      ({ source, protocol, port, packets }) => `${source} ${protocol} ${port ?? '-'} ${packets}`,
    );
    assert.deepEqual(counts.sort(), [
      '192.0.2.7 icmp - 3',
      '192.0.2.7 tcp 81 1',
      '192.0.2.7 udp 82 2',
      '2001:db8::7 ipv6-icmp - 3',
      '2001:db8::7 tcp 81 1',
      '2001:db8::7 udp 82 2',
    ]);
  });

  it('has every fragment', async () => {
    await resetCounts(prefix);
    await datagram('192.0.2.8', '192.0.2.1', 83, 4000);
    await datagram('2001:db8::8', '2001:db8::1', 83, 4000);
    assert.deepEqual(packetsBySource(await readCounts(prefix)), { '192.0.2.8': 3, '2001:db8::8': 3 });
  });

  it('starts at zero after a reset', async () => {
    await datagram('192.0.2.8', '192.0.2.1', 84);
    await resetCounts(prefix);
    assert.deepEqual(await readCounts(prefix), []);
  });
});
