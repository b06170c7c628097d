import { createSocket } from 'node:dgram';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { outsideAddresses } from '../cluster/shape.ts';
import { readCounts, resetCounts } from './counts.ts';

/**
 * The server outside the cluster: it tells every client, over HTTP, TCP and UDP, from which address and port it came.
 * Runs in the namespace of the outside world, started by `lab up` with the three ports as arguments.
 */
export interface OutsidePorts {
  readonly http: number;
  readonly tcp: number;
  readonly udp: number;
}

/** Starts all servers on all addresses of both families. */
export function serve(ports: OutsidePorts): void {
  createHttpServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(`${error instanceof Error ? error.message : String(error)}\n`);
    });
  }).listen(ports.http, '::');

  createTcpServer((socket) => {
    const line = `${JSON.stringify(clientOf(socket))}\n`;
    // One answer per chunk: a test can hold a connection and see that it stays the same one.
    socket.on('data', () => socket.write(line));
    socket.on('error', () => socket.destroy());
  }).listen(ports.tcp, '::');

  // One socket per address: an answer must leave with the very address that was asked, or it does not pass a NAT.
  for (const address of outsideAddresses.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6])) {
    const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' });
    socket.on('message', (_message, from) => {
      const text = JSON.stringify({ address: from.address, port: from.port } satisfies Client);
      socket.send(text, from.port, from.address);
    });
    socket.bind(ports.udp, address);
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? '/';
  response.setHeader('content-type', 'application/json');
  if (path === '/counts') response.end(`${JSON.stringify(await readCounts())}\n`);
  else if (path === '/reset' && request.method === 'POST') {
    await resetCounts();
    response.end('{}\n');
  } else response.end(`${JSON.stringify(clientOf(request.socket))}\n`);
}

/** Who a client is, as it is told: `{"address": "10.77.0.11", "port": 40000}`. */
export interface Client {
  readonly address: string;
  readonly port: number | undefined;
}

/** The client of a socket; an IPv4 client of a dual-stack socket is shown as IPv4. */
export function clientOf({ remoteAddress = '', remotePort }: Socket): Client {
  return { address: remoteAddress.replace(/^::ffff:/, ''), port: remotePort };
}
