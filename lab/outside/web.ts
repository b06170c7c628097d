import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { clientOf } from './server.ts';
import type { OutsideTls } from './tls.ts';

/** Ports of the servers that a proxy leads to. */
export interface WebPorts {
  readonly web: number;
  readonly tls: number;
  readonly database: number;
}

/**
 * The servers for tests of the egress proxy: web sites under any name, plain and with TLS, that tell which name they were
 * asked for, and a server that behaves like a database: it speaks first, and answers each chunk.
 */
export function serveWeb(ports: WebPorts, tls: OutsideTls): void {
  createHttpServer(answer).listen(ports.web, '::');
  createHttpsServer(
    {
      SNICallback: (name, give) =>
        void tls.contextFor(name).then(
          (context) => give(null, context),
          (error: Error) => give(error),
        ),
    },
    answer,
  ).listen(ports.tls, '::');
  createTcpServer((socket) => {
    const line = `${JSON.stringify(clientOf(socket))}\n`;
    socket.write(line);
    socket.on('data', () => socket.write(line));
    socket.on('error', () => socket.destroy());
  }).listen(ports.database, '::');
}

function answer({ socket, headers, url }: IncomingMessage, response: ServerResponse): void {
  // A TLS socket knows the name of its handshake; a plain one does not have the field.
  const { servername } = socket as Partial<TLSSocket>;
  const sni = typeof servername === 'string' ? { sni: servername } : {};
  response.setHeader('content-type', 'application/json');
  response.end(`${JSON.stringify({ ...clientOf(socket), host: headers.host, path: url, ...sni })}\n`);
}
