import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A relay on loopback in front of the server that can stop to pass bytes, so that a client misses changes. */
export async function startRelay(serverPort: number) {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const server = createServer((incoming) => {
    const outgoing = connect(serverPort, '127.0.0.1');
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      // A side that breaks takes the other along, unless the relay pretends that nothing happens.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        if (!isFrozen) other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const cut = () => {
    isFrozen = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    cut,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    stop: () => {
      cut();
      server.close();
    },
  };
}
