/**
 * Servers outside for real clients: a site with a git repository, a Python index, an npm registry and a Debian repository,
 * plain and over TLS (HTTP/1.1 and HTTP/2), with WebSocket and gRPC, and just enough of PostgreSQL and Redis for psql and redis-cli. Run as a program
 * in the network namespace of the outside: FOLDER with `site/`, `key.pem` and `cert.pem`.
 */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { createServer } from 'node:net';
import { join, normalize } from 'node:path';
import type { Duplex } from 'node:stream';

/** Ports of the servers. */
export const sitePorts = { plain: 8081, tls: 8443, postgres: 5433, redis: 6379 } as const;

interface Asked {
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** A file of the site; the page of an npm package names the site as its client does. */
const fileOf = async (folder: string, scheme: string, { url = '/', headers }: Asked): Promise<Buffer | undefined> => {
  const path = normalize(new URL(url, 'http://site').pathname);
  const file = join(folder, 'site', path.endsWith('/') ? `${path}index.html` : path);
  const found = await readFile(file).catch(() => undefined);
  const host = String(headers[':authority'] ?? headers.host ?? '');
  return path === '/npm/sallyport-demo' && found !== undefined
    ? Buffer.from(found.toString().replaceAll('SITE', `${scheme}://${host}`))
    : found;
};

/** pip reads only what says that it is HTML. */
const typeOf = ({ url = '/' }: Asked) => ({
  'content-type': url.endsWith('/') ? 'text/html' : 'application/octet-stream',
});

/** Answers each chunk. */
const serveChunks = (port: number, answer: (chunk: Buffer) => Buffer | string): void => {
  createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => socket.write(answer(chunk)));
  }).listen(port, '::');
};

/** A message of PostgreSQL: its type, its length, its text. */
const message = (type: string, ...parts: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
};
const int = (bytes: 2 | 4, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
};
const sslRequest = 80_877_103;
const ready = message('Z', 'I');
const welcome = Buffer.concat([
  message('R', int(4, 0)),
  message('S', 'server_version\0', '15.0\0'),
  message('S', 'client_encoding\0', 'UTF8\0'),
  ready,
]);
/** One row with one column. */
const row = (value: string): Buffer =>
  Buffer.concat([
    message('T', int(2, 1), 'answer\0', int(4, 0), int(2, 0), int(4, 25), int(2, -1), int(4, -1), int(2, 0)),
    message('D', int(2, 1), int(4, value.length), value),
    message('C', 'SELECT 1\0'),
    ready,
  ]);

/** A WebSocket: says one thing as soon as it is open. */
const greet = ({ headers }: IncomingMessage, socket: Duplex): void => {
  const key = `${String(headers['sec-websocket-key'])}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const text = Buffer.from('websocket-works');
  socket.on('error', () => socket.destroy());
  socket.on('data', () => socket.end());
  socket.write(
    ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'].join('\r\n') +
      `\r\nSec-WebSocket-Accept: ${hash('sha1', key, 'base64')}\r\n\r\n`,
  );
  socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
};

/** gRPC: sends back the message that it gets, a frame of length and bytes. */
const echo = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/grpc' });
  response.addTrailers({ 'grpc-status': '0' });
  request.pipe(response);
};

const serve = (folder: string): void => {
  const plain = createHttpServer(async (request, response) => {
    const file = await fileOf(folder, 'http', request);
    response.writeHead(file === undefined ? 404 : 200, typeOf(request));
    response.end(file ?? 'nothing is here\n');
  });
  plain.on('upgrade', greet).listen(sitePorts.plain, '::');
  const pair = { key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem')) };
  const secure = createSecureServer(
    { ...pair, allowHTTP1: true },
    async (request: Http2ServerRequest, response: Http2ServerResponse) => {
      if (request.headers['content-type'] === 'application/grpc') return echo(request, response);
      const file = await fileOf(folder, 'https', request);
      response.writeHead(file === undefined ? 404 : 200, typeOf(request));
      response.end(file ?? 'nothing is here\n');
    },
  );
  secure.on('upgrade', greet).listen(sitePorts.tls, '::');
  serveChunks(sitePorts.postgres, (chunk) => {
    if (chunk[0] !== 0) return chunk.toString('latin1', 0, 1) === 'Q' ? row('psql-works') : '';
    return chunk.readInt32BE(4) === sslRequest ? 'N' : welcome;
  });
  serveChunks(sitePorts.redis, (chunk) => (/ping/i.test(chunk.toString()) ? '+PONG\r\n' : '*0\r\n'));
};

if (import.meta.main) serve(process.argv[2] ?? '');
