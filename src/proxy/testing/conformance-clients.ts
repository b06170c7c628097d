/** Scenarios of ordinary clients and servers: what curl, Python, Java, ssh, browsers and old programs really send. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type Bed, outside } from './bed.ts';
import { askOverTls, openTunnel, proxyAddress, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { openHttpServer, openHttpsServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const host = 'api.outside.test';
const LIMIT_MS = 10_000;

const lines = (...parts: readonly string[]): string => `${parts.join('\r\n')}\r\n\r\n`;

/** Serves plain rules for `host`, which leads to a server of ours. */
const servePlain = async (bed: Bed): Promise<void> => {
  bed.dns.set(host, { addresses: [outside.one], ttlSeconds: 1 });
  await bed.serve(ruleSet(httpRule(host)));
};

const listening = async (
  server: Server | ReturnType<typeof createTcpServer>,
  port: number,
): Promise<AsyncDisposable> => {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.listen(port, outside.one);
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};

/** A plain server with an answer of its own. */
const openAnswering = (answer: RequestListener): Promise<AsyncDisposable> =>
  listening(createHttpServer({ maxHeaderSize: 256 * 1024 }, answer), 80);

/** Writes bytes to a port of the proxy and resolves with all that comes until the other side ends, or until `isEnough`. */
const converse = async (
  port: number,
  bytes: string,
  { isHalfClosed = false, isEnough = (_: string): boolean => false } = {},
): Promise<string> => {
  const socket = connect({ host: proxyAddress, port, allowHalfOpen: true });
  const limit = AbortSignal.timeout(LIMIT_MS);
  let came = '';
  try {
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    if (isHalfClosed) socket.end(bytes);
    else socket.write(bytes);
    await new Promise<void>((resolve, reject) => {
      limit.addEventListener('abort', () => reject(new Error(`nothing more came after: ${came.slice(0, 500)}`)));
      socket.on('data', (chunk) => {
        came += String(chunk);
        if (isEnough(came)) resolve();
      });
      for (const event of ['end', 'close']) socket.on(event, () => resolve());
    });
    return came;
  } finally {
    socket.destroy();
  }
};

export const clientScenarios: readonly Scenario[] = [
  {
    name: 'client-http10-get',
    title: 'answers a plain request of HTTP/1.0, with and without Host',
    async run(bed) {
      await using web = await openHttpServer(outside.one, 80);
      await servePlain(bed);
      for (const headers of [[`Host: ${host}`], []]) {
        const answer = await sendRaw(proxyPorts.http, lines(`GET http://${host}/old HTTP/1.0`, ...headers));
        assert.equal(answer?.status, 200, `${headers.length} headers: ${answer?.body}`);
        assert.equal(web.seen.at(-1)?.url, '/old');
      }
    },
  },
  {
    name: 'client-http10-connect',
    title: 'opens a tunnel for CONNECT of HTTP/1.0, as Python, pip, ssh with nc, and openssl ask for it',
    async run(bed) {
      await using _web = await openHttpsServer(outside.one, 443, await bed.certificateFor(host));
      bed.dns.set(host, { addresses: [outside.one], ttlSeconds: 1 });
      await bed.serve(ruleSet(httpRule(host, { isTls: true })));
      for (const headers of [[`Host: ${host}:443`], []]) {
        const request = [`CONNECT ${host}:443 HTTP/1.0`, ...headers];
        const { answer, socket } = await openTunnel(proxyPorts.http, request);
        assert.equal(answer?.status, 200, `${headers.length} headers: ${answer?.body}`);
        assert.equal((await askOverTls(socket, host, bed.ca))?.status, 200);
      }
    },
  },
  {
    name: 'client-trailing-dot',
    title: 'takes a host with a dot at its end for the same host',
    async run(bed) {
      await using web = await openHttpServer(outside.one, 80);
      await servePlain(bed);
      const request = lines(`GET http://${host}./dot HTTP/1.1`, `Host: ${host}.`, 'Connection: close');
      assert.equal((await sendRaw(proxyPorts.http, request))?.status, 200);
      assert.equal(web.seen.at(-1)?.url, '/dot');
    },
  },
  {
    name: 'client-method',
    title: 'passes on a method that it does not know',
    async run(bed) {
      // Node's server knows no other methods, so this one reads the line itself.
      await using _server = await listening(
        createTcpServer((socket) => {
          socket.once('data', (data) => {
            const [method = ''] = data.toString('latin1').split(' ');
            socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${method.length}\r\nConnection: close\r\n\r\n${method}`);
          });
        }),
        80,
      );
      await servePlain(bed);
      const request = lines(`REBASE http://${host}/ HTTP/1.1`, `Host: ${host}`, 'Connection: close');
      const answer = await sendRaw(proxyPorts.http, request);
      assert.deepEqual([answer?.status, answer?.body], [200, 'REBASE']);
    },
  },
  {
    name: 'client-query',
    title: 'passes a query without a path on as one with a slash before it',
    async run(bed) {
      await using web = await openHttpServer(outside.one, 80);
      await servePlain(bed);
      const request = lines(`GET http://${host}?a=b HTTP/1.1`, `Host: ${host}`, 'Connection: close');
      assert.equal((await sendRaw(proxyPorts.http, request))?.status, 200);
      assert.equal(web.seen.at(-1)?.url, '/?a=b');
    },
  },
  {
    name: 'client-trailers',
    title: 'passes on trailers of a request and of its answer',
    async run(bed) {
      await using _web = await openAnswering((request, response) => {
        request.resume();
        request.on('end', () => {
          response.writeHead(200, { Trailer: 'x-sum' });
          response.write(`trailers ${JSON.stringify(request.trailers)}`);
          response.addTrailers({ 'x-sum': 'answered' });
          response.end();
        });
      });
      await servePlain(bed);
      const head = lines(
        `POST http://${host}/ HTTP/1.1`,
        `Host: ${host}`,
        'Transfer-Encoding: chunked',
        'TE: trailers',
        'Trailer: x-sum',
        'Connection: close, TE',
      );
      const came = await converse(proxyPorts.http, `${head}2\r\nhi\r\n0\r\nx-sum: asked\r\n\r\n`);
      assert.match(came, /trailers \{"x-sum":"asked"\}/);
      assert.match(came, /x-sum: answered/i);
    },
  },
  {
    name: 'client-expect',
    title: 'says 100 Continue when the server does, and not before a refusal of the server',
    async run(bed) {
      const server = createHttpServer();
      server.on('checkContinue', (request, response) => {
        if (request.url === '/refused') {
          response.writeHead(401, { 'content-length': 0, connection: 'close' }).end();
          return;
        }
        response.writeContinue();
        request.resume();
        request.on('end', () => response.writeHead(200, { 'content-length': 0, connection: 'close' }).end());
      });
      await using _web = await listening(server, 80);
      await servePlain(bed);
      const head = (path: string): string =>
        lines(
          `POST http://${host}${path} HTTP/1.1`,
          `Host: ${host}`,
          'Content-Length: 2',
          'Expect: 100-continue',
          'Connection: close',
        );
      const isAnswered = (text: string): boolean => /HTTP\/1\.1 [2-5]\d\d/.test(text);
      const refused = await converse(proxyPorts.http, head('/refused'), { isEnough: isAnswered });
      assert.match(refused, /^HTTP\/1\.1 401/);
      const taken = await converse(proxyPorts.http, `${head('/taken')}hi`, { isEnough: isAnswered });
      assert.match(taken, /^HTTP\/1\.1 100[\s\S]*HTTP\/1\.1 200/);
    },
  },
  {
    name: 'client-many-headers',
    title: 'passes on 150 headers of an answer, 40 KiB of them, 40 KiB of headers of a request, and a URL of 15 KiB',
    async run(bed) {
      await using _web = await openAnswering((request, response) => {
        const { url = '' } = request;
        if (url === '/many') for (let index = 0; index < 150; index += 1) response.setHeader(`x-${index}`, 'a');
        if (url === '/large') for (let index = 0; index < 10; index += 1) response.setHeader(`x-${index}`, large);
        response.setHeader('connection', 'close');
        response.end(`${url.length} ${request.headers['x-4']?.length ?? 0}`);
      });
      const large = 'a'.repeat(4 * 1024);
      await servePlain(bed);
      const ask = (path: string, ...headers: readonly string[]): Promise<string> =>
        converse(
          proxyPorts.http,
          lines(`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, ...headers, 'Connection: close'),
        );
      assert.match(await ask('/many'), /^HTTP\/1\.1 200[\s\S]*x-149: a/i);
      assert.match(await ask('/large'), /^HTTP\/1\.1 200[\s\S]*x-9: aaaa/i);
      const path = `/${'p'.repeat(15 * 1024)}`;
      assert.match(await ask(path), new RegExp(`^HTTP/1\\.1 200[\\s\\S]*${path.length} 0`));
      const headers = Array.from({ length: 10 }, (_, index) => `x-${index}: ${large}`);
      assert.match(await ask('/', ...headers), /^HTTP\/1\.1 200[\s\S]*1 4096/);
    },
  },
  {
    name: 'client-early-hints',
    title: 'passes on early hints (103)',
    async run(bed) {
      await using _web = await openAnswering((_, response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => {
          response.writeHead(200, { 'content-length': 0, connection: 'close' }).end();
        });
      });
      await servePlain(bed);
      const request = lines(`GET http://${host}/ HTTP/1.1`, `Host: ${host}`, 'Connection: close');
      const came = await converse(proxyPorts.http, request, { isEnough: (text) => text.includes('HTTP/1.1 200') });
      assert.match(came, /^HTTP\/1\.1 103[\s\S]*HTTP\/1\.1 200/);
    },
  },
  {
    name: 'client-websocket',
    title: 'makes a WebSocket of a request in absolute form',
    async run(bed) {
      const server = createHttpServer();
      server.on('upgrade', (_, socket: Socket) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello');
        socket.pipe(socket);
      });
      await using _web = await listening(server, 80);
      await servePlain(bed);
      const request = lines(
        `GET http://${host}/socket HTTP/1.1`,
        `Host: ${host}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version: 13',
      );
      const came = await converse(proxyPorts.http, request, { isEnough: (text) => text.includes('hello') });
      assert.match(came, /^HTTP\/1\.1 101[\s\S]*hello/);
    },
  },
  {
    name: 'client-half-close',
    title: 'a TCP rule: who has ended its own side still hears the other',
    async run(bed) {
      await using _answering = await openLast(8001);
      await using _leaving = await openLeaving(8002);
      await bed.serve(ruleSet(tcpRule(7001, [outside.one], 8001), tcpRule(7002, [outside.one], 8002)));
      assert.equal(await converse(7001, 'question', { isHalfClosed: true }), 'heard question');
      assert.equal(await leaveAndTell(connect({ host: proxyAddress, port: 7002, allowHalfOpen: true })), 'bye');
    },
  },
  {
    name: 'client-half-close-connect',
    title: 'a tunnel: who has ended its own side still hears the other',
    async run(bed) {
      await using _answering = await openLast(443);
      bed.dns.set(host, { addresses: [outside.one], ttlSeconds: 1 });
      await bed.serve(ruleSet(httpRule(host, { isTls: true })));
      const { answer, socket } = await openTunnel(proxyPorts.http, `${host}:443`, [], true);
      assert.equal(answer?.status, 200);
      let came = '';
      socket.on('data', (chunk) => {
        came += String(chunk);
      });
      const ended = once(socket, 'end', { signal: AbortSignal.timeout(LIMIT_MS) });
      socket.end('question');
      await ended;
      socket.destroy();
      assert.equal(came, 'heard question');
    },
  },
];

/** Answers when its client has ended its own side. */
const openLast = (port: number): Promise<AsyncDisposable> =>
  listening(
    createTcpServer({ allowHalfOpen: true }, (socket) => {
      let heard = '';
      socket.on('data', (chunk) => {
        heard += String(chunk);
      });
      socket.on('end', () => socket.end(`heard ${heard}`));
    }),
    port,
  );

/** Ends its own side at once, and goes on hearing; what it heard is told to the next client. */
const openLeaving = (port: number): Promise<AsyncDisposable> =>
  listening(
    createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.end('bye');
      socket.on('data', (chunk) => leavers.push(String(chunk)));
    }),
    port,
  );

const leavers: string[] = [];

/** Hears the other side end, and says something after that; resolves with what it heard when the other one has heard it too. */
const leaveAndTell = async (socket: Socket): Promise<string> => {
  let came = '';
  socket.setEncoding('latin1');
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    came += String(chunk);
  });
  const before = leavers.length;
  await once(socket, 'end', { signal: AbortSignal.timeout(LIMIT_MS) });
  socket.end('after all');
  await eventually(
    'the server hears what was said after its end',
    () => leavers.slice(before).join('') === 'after all',
  );
  return came;
};
