/** Servers of the outside world. Each tells who it is and remembers who came, so that a test knows what was reached. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { KeyPair } from '../../runtime/certs/authority.ts';

/** A running server. */
export interface OutsideServer extends AsyncDisposable {
  /** `address:port`. */
  readonly at: string;
  /** Connections since the start. */
  readonly connections: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Ends all connections and stops listening: the address is a dead one from now on. */
  stop(): Promise<void>;
}

/** What an HTTP server tells about the request that reached it, as JSON. */
export interface SeenRequest {
  readonly server: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface OutsideHttpServer extends OutsideServer {
  readonly seen: readonly SeenRequest[];
}

/** A server like a database: it speaks first, in one line with its own address, and then sends back what it gets. */
export const openTcpServer = (address: string, port: number): Promise<OutsideServer> => {
  const server = createServer((socket) => {
    socket.write(`${address}:${port}\n`);
    socket.pipe(socket);
  });
  return watched(server, address, port);
};

/** The same over TLS. */
export const openTlsServer = (address: string, port: number, pair: KeyPair): Promise<OutsideServer> => {
  const server = createTlsServer({ cert: pair.certificatePem, key: pair.keyPem }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.write(`${address}:${port}\n`);
    socket.pipe(socket);
  });
  return watched(server, address, port);
};

/** A plain HTTP server. */
export const openHttpServer = async (address: string, port: number): Promise<OutsideHttpServer> => {
  const seen: SeenRequest[] = [];
  const server = createHttpServer(answerWith(seen, `${address}:${port}`));
  return withSeen(await watched(server, address, port), seen);
};

/** An HTTPS server with a certificate for its names. */
export const openHttpsServer = async (address: string, port: number, pair: KeyPair): Promise<OutsideHttpServer> => {
  const seen: SeenRequest[] = [];
  const server = createHttpsServer(
    { cert: pair.certificatePem, key: pair.keyPem },
    answerWith(seen, `${address}:${port}`),
  );
  return withSeen(await watched(server, address, port), seen);
};

type Listener = Parameters<typeof createHttpServer>[1];

const answerWith =
  (seen: SeenRequest[], server: string): NonNullable<Listener> =>
  (request, response) => {
    const told = { server, method: request.method ?? '', url: request.url ?? '', headers: request.headers };
    seen.push(told);
    request.resume();
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(told));
    });
  };

const watched = async (server: Server, address: string, port: number): Promise<OutsideServer> => {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  // A client that ends in the middle of a handshake is no failure of the server.
  server.on('tlsClientError', () => {});
  server.on('clientError', (_, socket: Socket) => socket.destroy());
  server.listen(port, address);
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    at: `${address}:${port}`,
    get connections() {
      return connections;
    },
    get open() {
      return sockets.size;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
};

const withSeen = (server: OutsideServer, seen: readonly SeenRequest[]): OutsideHttpServer => ({
  at: server.at,
  seen,
  get connections() {
    return server.connections;
  },
  get open() {
    return server.open;
  },
  stop: server.stop,
  [Symbol.asyncDispose]: server.stop,
});
