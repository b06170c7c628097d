import { createSocket } from 'node:dgram';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { addresses } from '../cluster/shape.ts';
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
    const line = `${clientText(socket.remoteAddress, socket.remotePort)}\n`;
    // One answer per chunk: a test can hold a connection and see that it stays the same one.
    socket.on('data', () => socket.write(line));
    socket.on('error', () => socket.destroy());
  }).listen(ports.tcp, '::');

  // One socket per address: an answer must leave with the very address that was asked, or it does not pass a NAT.
  for (const [type, address] of [
    ['udp4', addresses.outside.ipv4],
    ['udp6', addresses.outside.ipv6],
    ['udp4', addresses.elsewhere.ipv4],
    ['udp6', addresses.elsewhere.ipv6],
  ] as const) {
    const socket = createSocket({ type });
    socket.on('message', (_message, from) => socket.send(clientText(from.address, from.port), from.port, from.address));
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
  } else response.end(`${clientText(request.socket.remoteAddress, request.socket.remotePort)}\n`);
}

/** `{"address": "10.77.0.11", "port": 40000}`; an IPv4 client of a dual-stack socket is shown as IPv4. */
function clientText(address: string | undefined, port: number | undefined): string {
  return JSON.stringify({ address: (address ?? '').replace(/^::ffff:/, ''), port });
}
