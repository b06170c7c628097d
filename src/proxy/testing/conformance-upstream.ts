/**
 * Scenarios of connections to servers outside: who may use one. A server may authenticate a connection instead of a request
 * (NTLM, Negotiate), and a bad one may answer a request that nobody has sent yet, so a connection that was made for one
 * client never carries the request of another.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type Bed, clients, outside } from './bed.ts';
import { keptClient, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { openHttpServer } from './outside.ts';
import { httpRule, ruleSet } from './rules.ts';

const host = 'api.outside.test';
const request = (path: string, ...headers: readonly string[]): string =>
  [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n');
const [owner = '', ...strangers] = clients;

/** A server that is asked in heads of requests without bodies, and answers each as it likes. */
const openServer = async (
  answer: (head: string, socket: Socket) => void,
): Promise<AsyncDisposable & { readonly sockets: ReadonlySet<Socket> }> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let came = '';
    socket.setEncoding('latin1');
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      came += String(chunk);
      for (let end = came.indexOf('\r\n\r\n'); end !== -1; end = came.indexOf('\r\n\r\n')) {
        const head = came.slice(0, end);
        came = came.slice(end + 4);
        answer(head, socket);
      }
    });
  });
  server.listen(80, outside.one);
  await once(server, 'listening');
  return {
    sockets,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};

const answerOf = (status: string, body: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, `Content-Length: ${body.length}`, ...headers, '', body].join('\r\n');

/** A server that shows its page on connections on which somebody has logged in, as IIS and SharePoint do. */
const openLoginServer = () => {
  const known = new WeakSet<Socket>();
  return openServer((head, socket) => {
    if (/^authorization: ntlm /im.test(head)) known.add(socket);
    socket.write(
      known.has(socket)
        ? answerOf('200 OK', 'the page')
        : answerOf('401 Unauthorized', 'who are you?', 'WWW-Authenticate: NTLM'),
    );
  });
};

const serveHost = async (bed: Bed): Promise<void> => {
  bed.dns.set(host, { addresses: [outside.one], ttlSeconds: 60 });
  await bed.serve(ruleSet(httpRule(host), httpRule('*.wild.test')));
  bed.dns.set('a.wild.test', { addresses: [outside.one], ttlSeconds: 60 });
};

export const upstreamScenarios: readonly Scenario[] = [
  {
    name: 'upstream-login',
    title: 'lends nobody a connection on which somebody else has logged in (NTLM, Negotiate)',
    async run(bed) {
      await using _server = await openLoginServer();
      await serveHost(bed);
      for (let round = 0; round < 4; round += 1) {
        using client = keptClient(proxyPorts.http, owner);
        await client.ask(request('/login', 'Authorization: NTLM c2VjcmV0'));
        for (const stranger of strangers) {
          const answer = await sendRaw(proxyPorts.http, request('/page'), stranger);
          assert.equal(answer?.status, 401, `${stranger} got: ${answer?.body}`);
        }
        // Nor to another connection of the same pod: there may be several users behind it.
        assert.equal((await sendRaw(proxyPorts.http, request('/page'), owner))?.status, 401);
      }
    },
  },
  {
    name: 'upstream-login-kept',
    title: 'keeps the connection of a client that has logged in for its own next requests',
    async run(bed) {
      await using _server = await openLoginServer();
      await serveHost(bed);
      using client = keptClient(proxyPorts.http, owner);
      await client.ask(request('/login', 'Authorization: NTLM c2VjcmV0'));
      for (let index = 0; index < 10; index += 1) {
        assert.equal((await client.ask(request('/page')))?.body, 'the page');
      }
    },
  },
  {
    name: 'upstream-kept',
    title: 'uses a connection to a host again for the next request of the same client, also under a wildcard',
    async run(bed) {
      await using web = await openHttpServer(outside.one, 80);
      await serveHost(bed);
      using client = keptClient(proxyPorts.http, owner);
      for (let index = 0; index < 20; index += 1) {
        assert.equal((await client.ask(request('/')))?.status, 200);
        const wild = request('/').replaceAll(host, 'a.wild.test');
        assert.equal((await client.ask(wild))?.status, 200);
      }
      assert.equal(web.connections, 2);
    },
  },
  ...[0, 20].map(
    (delayMs): Scenario => ({
      name: `upstream-twice-${delayMs}`,
      title: `gives nobody the second answer of a server that answers twice, ${delayMs === 0 ? 'at once' : 'later'}, and ends the connection`,
      async run(bed) {
        let bad: Socket | undefined;
        await using server = await openServer((head, socket) => {
          const poison = answerOf('200 OK', 'poison');
          if (!head.startsWith('GET /twice ')) {
            socket.write(answerOf('200 OK', 'good'));
            return;
          }
          bad = socket;
          if (delayMs === 0) socket.write(`${answerOf('200 OK', 'bad')}${poison}`);
          else {
            socket.write(answerOf('200 OK', 'bad'));
            setTimeout(() => socket.write(poison), delayMs);
          }
        });
        await serveHost(bed);
        for (const stranger of strangers.slice(0, 5)) {
          using attacker = keptClient(proxyPorts.http, owner);
          await attacker.ask(request('/twice'));
          const answers = await Promise.all([
            sendRaw(proxyPorts.http, request('/good'), stranger),
            sendRaw(proxyPorts.http, request('/good'), stranger),
          ]);
          for (const answer of answers) assert.equal(answer?.body, 'good');
          // While its client is still there: what was said too much is on no connection that lives.
          await eventually('the connection has ended', () => bad !== undefined && !server.sockets.has(bad));
        }
      },
    }),
  ),
];
