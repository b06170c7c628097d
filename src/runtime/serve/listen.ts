/** Opening and closing of our HTTP servers, the same way for all of them. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EgressError } from '../../api/error.ts';
import { type Clock, wait } from '../process/clock.ts';

/** Where to listen. An absent host means all addresses, IPv6 included; port 0 lets the kernel choose. */
export interface ListenOptions {
  readonly host?: string;
  readonly port: number;
}

/** Resolves with the port when the server listens; throws PORT_IN_USE with one sentence when it cannot. */
export async function listen(server: Server, name: string, { host, port }: ListenOptions): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (cause) {
    throw new EgressError('PORT_IN_USE', sentence(name, host, port, cause), { data: { host, port }, cause });
  }
  // A TCP server's address is never the path string that the general type allows.
  return (server.address() as AddressInfo).port;
}

/** Accepts no more connections and waits for running requests; after the limit the rest is cut. May be called twice. */
export async function close(server: Server, clock: Clock, limitMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  server.closeIdleConnections();
  const limit = new AbortController();
  await Promise.race([closed.promise, wait(clock, limitMs, limit.signal)]);
  limit.abort();
  server.closeAllConnections();
}

function sentence(name: string, host: string | undefined, port: number, cause: unknown): string {
  const where = host === undefined ? `port ${port}` : `${host} port ${port}`;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `${name} cannot listen on ${where}: another process uses it`;
    case 'EADDRNOTAVAIL':
      return `${name} cannot listen on ${where}: this machine does not have the address`;
    case 'EACCES':
      return `${name} cannot listen on ${where}: ports below 1024 need the capability NET_BIND_SERVICE`;
    default:
      return `${name} cannot listen on ${where}: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
}
