/**
 * The DNS server that engines ask: UDP and TCP on the loopback interface, in front of a GuardedResolver. It answers
 * questions for addresses; other types of allowed names have no records, and everything else is refused.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { EgressError } from '../../api/error.ts';
import { messageOf } from '../../runtime/process/bug.ts';
import { decodeQuery, ednsBytes, encodeMalformed, encodeReply, plainBytes, type Query, types } from './message.ts';
import { framed } from './outside.ts';
import type { GuardedResolver } from './resolver.ts';

/** Where the server listens; port 0 lets the kernel choose. */
export interface DnsAddress {
  readonly host: string;
  readonly port: number;
}

/** A server that listens. */
export interface DnsServer {
  readonly port: number;
  /** Ends it with everything that is open. May be called twice. */
  close(): Promise<void>;
}

/** Engines hold few connections, so more are a fault of somebody. */
const MAX_CONNECTIONS = 64;
const IDLE_MS = 10_000;
/** Room for questions that come at once, as far as the kernel gives it: one that is lost is asked again after seconds. */
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** Longer than every question; a length above it is garbage, and waiting for its bytes would hold memory. */
const MAX_QUESTION_BYTES = 1024;

/** Opens the server on both protocols; throws PORT_IN_USE when it cannot listen. */
export async function serveDns(resolver: GuardedResolver, { host, port }: DnsAddress): Promise<DnsServer> {
  const connections = new Set<Socket>();
  const tcp = createServer((socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    serveConnection(resolver, socket);
  });
  tcp.maxConnections = MAX_CONNECTIONS;
  const udp = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BYTES });
  udp.on('message', (bytes, client) => {
    answer(resolver, bytes, (query) => Math.min(Math.max(query.payloadBytes ?? 0, plainBytes), ednsBytes)).then(
      // The client may be gone; it asks again if it is not.
      (reply) => reply === undefined || udp.send(reply, client.port, client.address, () => {}),
    );
  });
  try {
    const chosen = await listenTcp(tcp, host, port);
    await listenUdp(udp, host, chosen);
    return { port: chosen, close: () => closeAll(tcp, udp, connections) };
  } catch (cause) {
    await closeAll(tcp, udp, connections);
    const sentence = `the guarding resolver cannot listen on ${host} port ${port}: ${messageOf(cause)}`;
    throw new EgressError('PORT_IN_USE', sentence, { data: { host, port }, cause });
  }
}

/** One message in, one message out; undefined for bytes that deserve no answer. */
async function answer(
  resolver: GuardedResolver,
  bytes: Buffer,
  limitBytes: (query: Query) => number,
): Promise<Buffer | undefined> {
  const query = decodeQuery(bytes);
  if (!query.ok) {
    resolver.countMalformed();
    return encodeMalformed(bytes);
  }
  const { name, type, isInternet } = query.value;
  const family = type === types.AAAA ? 'AAAA' : 'A';
  const reply = isInternet
    ? await resolver.reply(name, family)
    : ({ rcode: 'refused', ips: [], ttlSeconds: 0 } as const);
  const isAddress = type === types.A || type === types.AAAA;
  return encodeReply(query.value, isAddress ? reply : { ...reply, ips: [] }, limitBytes(query.value));
}

function serveConnection(resolver: GuardedResolver, socket: Socket): void {
  let received: Buffer = Buffer.alloc(0);
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  // A broken connection is closed by the same event; nothing is left to do.
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2) {
      const length = received.readUInt16BE(0);
      if (length > MAX_QUESTION_BYTES) {
        resolver.countMalformed();
        socket.destroy();
        return;
      }
      if (received.length < 2 + length) return;
      const message = received.subarray(2, 2 + length);
      received = received.subarray(2 + length);
      answer(resolver, message, () => 0xffff).then((reply) => {
        if (reply === undefined) socket.destroy();
        else if (socket.writable) socket.write(framed(reply));
      });
    }
  });
}

const listenTcp = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });

const listenUdp = (socket: UdpSocket, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address: host, port }, () => {
      socket.off('error', reject);
      // A datagram that could not be delivered is no reason to end; the client asks again.
      socket.on('error', () => {});
      resolve();
    });
  });

async function closeAll(tcp: Server, udp: UdpSocket, connections: ReadonlySet<Socket>): Promise<void> {
  for (const connection of connections) connection.destroy();
  if (tcp.listening) await new Promise<void>((resolve) => tcp.close(() => resolve()));
  await new Promise<void>((resolve) => {
    try {
      udp.close(() => resolve());
    } catch {
      // It was closed before.
      resolve();
    }
  });
}
