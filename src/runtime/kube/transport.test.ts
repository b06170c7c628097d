import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createAuthority, issue } from '../certs/authority.ts';
import { Transport } from './transport.ts';

/** A server that would rather speak HTTP/2, as an API server does, and tells which version it was asked in. */
const startServer = async () => {
  const now = new Date();
  const authority = await createAuthority({ commonName: 'test', lifetimeDays: 1, now });
  const leaf = { commonName: 'server', organizations: [], dnsNames: [], ipAddresses: ['127.0.0.1'] };
  const { keyPem, certificatePem } = await issue(authority, { ...leaf, usages: ['server'], lifetimeDays: 1, now });
  const server = createSecureServer({ allowHTTP1: true, key: keyPem, cert: certificatePem }, (request, response) => {
    request.resume();
    if (request.url === '/slow') return;
    response.end(request.httpVersion);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // It listens on an address and a port.
  const tls = { ca: authority.certificatePem, isInsecure: false };
  const access = {
    server: `https://127.0.0.1:${port}`,
    namespace: 'default',
    credentials: async () => ({ tls }),
    forget: () => {},
  };
  return { server, transport: new Transport(access, 'test') };
};

test('a process that gives up requests with bodies goes on: HTTP/2, where it would hang for ever, is not spoken', async () => {
  const { server, transport } = await startServer();
  const put = (path: string, signal: AbortSignal) =>
    transport.send({ what: 'put', method: 'PUT', path, headers: {}, body: 'x'.repeat(100_000), signal });
  try {
    const given = await Promise.allSettled(
      Array.from({ length: 50 }, async (_, index) => {
        const giveUp = new AbortController();
        setTimeout(() => giveUp.abort(), index % 10);
        await put('/slow', giveUp.signal);
      }),
    );
    assert.ok(given.every(({ status }) => status === 'rejected'));
    const answer = await put('/', AbortSignal.timeout(60_000));
    assert.equal(await answer.text(), '1.1');
  } finally {
    await transport.close();
    server.close();
  }
});
