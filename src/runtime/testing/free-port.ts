import { createServer } from 'node:net';

/** A loopback port that nobody uses at the moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const free = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(free));
    });
  });
}
