import assert from 'node:assert/strict';
import { Agent, request as httpsRequest } from 'node:https';
import { afterEach, test } from 'node:test';
import { createAuthority, issue, type KeyPair } from '../certs/authority.ts';
import { ManualClock, systemClock } from '../process/clock.ts';
import { createLog } from '../process/log.ts';
import { eventually } from '../testing/eventually.ts';
import { type AdmissionDeps, AdmissionServer, defaultAdmissionLimits } from './admission.ts';

const now = new Date();
const authority = await createAuthority({ commonName: 'test-ca', lifetimeDays: 10, now });
const host = '127.0.0.1';
const path = '/validate/egresspolicies';

function certificate(commonName: string): Promise<KeyPair> {
  return issue(authority, { commonName, ipAddresses: [host], usages: ['server'], lifetimeDays: 1, now });
}

const first = await certificate('first');
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function start(deps: Partial<AdmissionDeps> = {}) {
  const lines: { level: string; msg: string }[] = [];
  const outcomes: string[] = [];
  const server = new AdmissionServer(
    {
      handlers: { [path]: () => ({ kind: 'allow' }) },
      clock: systemClock,
      log: createLog({
        process: 'test',
        level: 'debug',
        destination: { write: (line) => void lines.push(JSON.parse(line)) },
      }),
      hooks: { answered: (at, outcome) => void outcomes.push(`${at} ${outcome}`) },
      ...deps,
    },
    first,
  );
  open.push(server);
  return { server, lines, outcomes, port: await server.listen({ host, port: 0 }) };
}

interface Sent {
  readonly status: number;
  readonly body: string;
  readonly peer: string;
}

/** Sends one request and returns the answer and the common name the server showed. */
function send(
  port: number,
  body: string,
  options: { readonly path?: string; readonly method?: string; readonly type?: string; readonly agent?: Agent } = {},
): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      {
        host,
        port,
        ca: authority.certificatePem,
        path: options.path ?? path,
        method: options.method ?? 'POST',
        headers: { 'content-type': options.type ?? 'application/json' },
        agent: options.agent ?? new Agent({ keepAlive: false }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        // The socket of an HTTPS response is a TLS socket; the type is of plain HTTP.
        const peer = 'getPeerCertificate' in response.socket ? tlsName(response.socket) : '';
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), peer }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

function tlsName(socket: unknown): string {
  const { getPeerCertificate } = socket as { getPeerCertificate(): { subject: { CN: string } } };
  return getPeerCertificate.call(socket).subject.CN;
}

function review(request: object = {}): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u-1',
      kind: { group: 'egressgateway.spidernet.io', version: 'v1beta1', kind: 'EgressPolicy' },
      resource: { group: 'egressgateway.spidernet.io', version: 'v1beta1', resource: 'egresspolicies' },
      operation: 'CREATE',
      userInfo: { username: 'alice' },
      object: { spec: { priority: 5 } },
      oldObject: null,
      ...request,
    },
  });
}

test('a verdict of each kind becomes the answer that the API server expects', async () => {
  const operations = [{ op: 'add', path: '/spec/priority', value: 1000 }] as const;
  const { port, outcomes } = await start({
    handlers: {
      '/allow': ({ oldObject }) => ({ kind: 'allow', warnings: [`old object: ${oldObject}`] }),
      '/deny': ({ userInfo }) => ({ kind: 'deny', reason: 'PoolOverlap', message: `no, ${userInfo.username}` }),
      '/patch': async () => ({ kind: 'patch', operations }),
      '/empty': () => ({ kind: 'patch', operations: [] }),
    },
  });
  const answer = async (at: string) => JSON.parse((await send(port, review(), { path: at })).body).response;
  assert.deepEqual(await answer('/allow'), { uid: 'u-1', allowed: true, warnings: ['old object: undefined'] });
  assert.deepEqual(await answer('/deny'), {
    uid: 'u-1',
    allowed: false,
    status: { code: 403, reason: 'PoolOverlap', message: 'no, alice' },
  });
  const patched = await answer('/patch');
  assert.equal(patched.patchType, 'JSONPatch');
  assert.deepEqual(JSON.parse(Buffer.from(patched.patch, 'base64').toString()), operations);
  assert.deepEqual(await answer('/empty'), { uid: 'u-1', allowed: true });
  assert.deepEqual(outcomes, ['/allow allowed', '/deny denied', '/patch allowed', '/empty allowed']);
});

test('what is not a review is refused with one sentence, and the server goes on', async () => {
  const { port, outcomes } = await start();
  const cases = [
    [await send(port, 'not json'), 400, /^the body is not JSON\n$/],
    [await send(port, '{}'), 400, /not an AdmissionReview of admission\.k8s\.io\/v1: apiVersion/],
    [await send(port, review({ operation: 'EAT' })), 400, /request\.operation/],
    [await send(port, review({ uid: '' })), 400, /request\.uid/],
    [await send(port, '', { method: 'GET' }), 405, /only POST/],
    [await send(port, review(), { type: 'text/yaml' }), 415, /application\/json/],
    [await send(port, review(), { path: '/nowhere' }), 404, /no admission handler at \/nowhere/],
    [await send(port, review(), { path: '/constructor' }), 404, /no admission handler/],
  ] as const;
  for (const [{ status, body }, expected, text] of cases) {
    assert.equal(status, expected, body);
    assert.match(body, text);
  }
  assert.equal((await send(port, review())).status, 200);
  assert.equal(outcomes.filter((outcome) => outcome === 'unknown bad').length, 2);
});

test('a body above the limit is refused with 413', async () => {
  const { port } = await start({ limits: { ...defaultAdmissionLimits, bodyBytes: 1_000 } });
  const { status, body } = await send(port, review({ object: { pad: 'x'.repeat(200_000) } }));
  assert.equal(status, 413);
  assert.match(body, /larger than 1000 bytes/);
});

test('a body that does not come is refused with 408', async () => {
  const clock = new ManualClock();
  const { port } = await start({ clock });
  const headers = { 'content-type': 'application/json', 'content-length': 100 };
  const options = { host, port, ca: authority.certificatePem, path, method: 'POST', headers, agent: false } as const;
  let status: number | undefined;
  const request = httpsRequest(options, (response) => {
    status = response.statusCode;
    response.destroy();
  });
  request.on('error', () => {}).write('{');
  await eventually('the answer', async () => {
    await clock.advance(defaultAdmissionLimits.receiveMs);
    return status !== undefined;
  });
  assert.equal(status, 408);
});

test('a handler with a bug is answered with 500 and logged, and the server goes on', async () => {
  let isBroken = true;
  const { port, lines, outcomes } = await start({
    handlers: {
      [path]: () => {
        if (isBroken) throw new TypeError('x is undefined');
        return { kind: 'allow' };
      },
    },
  });
  const failed = await send(port, review());
  assert.equal(failed.status, 500);
  assert.ok(!failed.body.includes('x is undefined'), 'inner errors stay inside');
  assert.ok(lines.some(({ level, msg }) => level === 'error' && msg === 'handler failed: x is undefined'));
  isBroken = false;
  assert.equal((await send(port, review())).status, 200);
  assert.deepEqual(outcomes, [`${path} error`, `${path} allowed`]);
});

test('a handler that takes too long is answered with 500', async () => {
  const clock = new ManualClock();
  const called = Promise.withResolvers<void>();
  const { server, port, lines } = await start({
    clock,
    handlers: {
      [path]: () => {
        called.resolve();
        return new Promise(() => undefined);
      },
    },
  });
  const sent = send(port, review());
  await called.promise;
  await clock.advance(defaultAdmissionLimits.handlerMs);
  assert.equal((await sent).status, 500);
  assert.ok(lines.some(({ msg }) => msg === 'handler failed: no verdict within 5000 ms'));
  await server.close();
});

test('a new certificate is shown to new connections while an open one goes on', async () => {
  const { server, port } = await start();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  assert.equal((await send(port, review(), { agent })).peer, 'first');
  server.setCertificate(await certificate('second'));
  const kept = await send(port, review(), { agent });
  assert.equal(kept.peer, 'first');
  assert.equal(kept.status, 200);
  assert.equal((await send(port, review())).peer, 'second');
  agent.destroy();
});

test('closing waits for a running call', async () => {
  const called = Promise.withResolvers<void>();
  const verdict = Promise.withResolvers<{ kind: 'allow' }>();
  const { server, port } = await start({
    handlers: {
      [path]: () => {
        called.resolve();
        return verdict.promise;
      },
    },
  });
  const sent = send(port, review());
  await called.promise;
  const closed = server.close();
  verdict.resolve({ kind: 'allow' });
  assert.equal((await sent).status, 200);
  await closed;
  await assert.rejects(send(port, review()), { code: 'ECONNREFUSED' });
});
