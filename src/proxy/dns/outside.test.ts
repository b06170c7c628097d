import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { ip } from '../../core/testing/address.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import { freePort } from '../../runtime/testing/free-port.ts';
import { openDnsAuthority } from '../testing/dns-authority.ts';
import { decodeQuery, encodeReply, type Query, type Reply } from './message.ts';
import { framed, type Nameserver, outsideResolvers } from './outside.ts';

const host = '127.0.0.1';
const signal = new AbortController().signal;
const resolvers = (nameservers: readonly Nameserver[], tryMs = 60_000) =>
  outsideResolvers({ nameservers, clock: systemClock, randomInt: (limit) => randomInt(limit), tryMs });

const good: Reply = { rcode: 'ok', ips: [ip('203.0.113.1')], ttlSeconds: 5 };
const forged: Reply = { rcode: 'nxdomain', ips: [], ttlSeconds: 5 };

/** A UDP server that answers each question with what `answers` makes of it, in order. */
const openUdp = async (answers: (query: Query) => readonly Buffer[], port = 0) => {
  const queries: Query[] = [];
  const ports: number[] = [];
  const socket = createSocket('udp4', (bytes, client) => {
    const query = decodeQuery(bytes);
    assert.ok(query.ok);
    queries.push(query.value);
    ports.push(client.port);
    for (const answer of answers(query.value)) socket.send(answer, client.port, client.address);
  });
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    queries,
    ports,
    port: socket.address().port,
    [Symbol.dispose]: () => {
      socket.close();
    },
  };
};

const addresses = (asked: Awaited<ReturnType<ReturnType<typeof resolvers>['ask']>>): unknown =>
  asked.kind === 'answer'
    ? asked.response.records.map((record) => record.kind === 'address' && record.ip)
    : asked.sentence;

describe('outside resolvers', () => {
  it('asks a real server', async () => {
    const port = await freePort();
    await using dns = await openDnsAuthority(host, port);
    dns.set('db.test', { addresses: ['203.0.113.1'], alias: 'cdn.test' });
    const asked = await resolvers([{ host, port }]).ask('db.test', 'A', signal);
    assert.deepEqual(addresses(asked), [false, '203.0.113.1']);
  });

  it('believes no answer to another question or with another id', async () => {
    using server = await openUdp((query) => [
      encodeReply({ ...query, id: query.id ^ 1 }, forged, 512),
      encodeReply({ ...query, name: 'other.test' }, forged, 512),
      Buffer.from('garbage'),
      encodeReply(query, good, 512),
    ]);
    const asked = await resolvers([{ host, port: server.port }]).ask('db.test', 'A', signal);
    assert.deepEqual(addresses(asked), ['203.0.113.1']);
  });

  it('uses another id and another port for every question', async () => {
    using server = await openUdp((query) => [encodeReply(query, good, 512)]);
    const outside = resolvers([{ host, port: server.port }]);
    await Promise.all(Array.from({ length: 20 }, () => outside.ask('db.test', 'A', signal)));
    assert.equal(new Set(server.ports).size, 20);
    assert.ok(new Set(server.queries.map(({ id }) => id)).size > 15);
  });

  it('asks over TCP for what is too long for UDP', async () => {
    const tcp = createServer((socket) => {
      socket.on('data', (bytes: Buffer) => {
        const query = decodeQuery(bytes.subarray(2));
        assert.ok(query.ok);
        const reply = framed(encodeReply(query.value, good, 65_535));
        // In two pieces, as networks do.
        socket.write(reply.subarray(0, 5), () => socket.end(reply.subarray(5)));
      });
    }).listen(0, host);
    await once(tcp, 'listening');
    const address = tcp.address();
    assert.ok(typeof address === 'object' && address !== null);
    using server = await openUdp((query) => [encodeReply(query, good, 20)], address.port);
    assert.deepEqual(addresses(await resolvers([{ host, port: server.port }]).ask('db.test', 'A', signal)), [
      '203.0.113.1',
    ]);
    tcp.close();
  });

  it('goes on to the next server, and starts with the one that answered', async () => {
    using refusing = await openUdp((query) => [encodeReply(query, { ...good, rcode: 'refused' }, 512)]);
    using working = await openUdp((query) => [encodeReply(query, good, 512)]);
    const closed = await freePort();
    const outside = resolvers([
      { host, port: closed },
      { host, port: refusing.port },
      { host, port: working.port },
    ]);
    assert.deepEqual(addresses(await outside.ask('db.test', 'A', signal)), ['203.0.113.1']);
    assert.deepEqual(addresses(await outside.ask('db.test', 'A', signal)), ['203.0.113.1']);
    assert.deepEqual([refusing.queries.length, working.queries.length], [1, 2]);
  });

  it('tells what every server did when none answers', async () => {
    using silent = await openUdp(() => []);
    using refusing = await openUdp((query) => [encodeReply(query, { ...good, rcode: 'refused' }, 512)]);
    const outside = resolvers(
      [
        { host, port: silent.port },
        { host, port: refusing.port },
      ],
      20,
    );
    const asked = await outside.ask('db.test', 'A', signal);
    assert.deepEqual(addresses(asked), '127.0.0.1: no answer within 20 ms; 127.0.0.1 answers with code 5');
    assert.equal(addresses(await resolvers([]).ask('db.test', 'A', signal)), 'no resolver is configured');
  });
});
