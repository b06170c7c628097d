/** Scenarios of HTTP rules: plain requests, tunnels, TLS by its server name, and what no rule allows. */
import assert from 'node:assert/strict';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type Bed, outside } from './bed.ts';
import { askOverTls, type HttpAnswer, openTunnel, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { type OutsideHttpServer, openHttpServer, openHttpsServer, type SeenRequest } from './outside.ts';
import { httpRule, ruleSet } from './rules.ts';

/** The usual request of a client that has HTTP_PROXY set. */
export const absolute = (host: string, path = '/'): string =>
  [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', '', ''].join('\r\n');

const ask = (bytes: string): Promise<HttpAnswer | undefined> => sendRaw(proxyPorts.http, bytes);

/** Asserts that the answer came from a server, and returns the request as the server saw it. */
const reached = (answer: HttpAnswer | undefined, server: OutsideHttpServer): SeenRequest => {
  assert.equal(answer?.status, 200, answer?.body ?? '');
  const seen = server.seen.at(-1);
  assert.ok(seen !== undefined);
  assert.ok(answer.body.includes(`"${server.at}"`), answer.body);
  return seen;
};

const names = ['api.outside.test', 'a.shop.test', 'b.c.shop.test', 'shop.test', 'other.test', 'forbidden.test'];

/** Plain and TLS servers for all names at one address. */
const openWeb = async (bed: Bed): Promise<AsyncDisposable & { plain: OutsideHttpServer; tls: OutsideHttpServer }> => {
  const plain = await openHttpServer(outside.one, 80);
  const tls = await openHttpsServer(outside.one, 443, await bed.certificateFor(...names));
  for (const name of names) bed.dns.set(name, { addresses: [outside.one], ttlSeconds: 1 });
  return {
    plain,
    tls,
    async [Symbol.asyncDispose]() {
      await plain.stop();
      await tls.stop();
    },
  };
};

const assertRefused = (answer: HttpAnswer | undefined): void => {
  assert.equal(answer?.status, 403, answer?.body ?? '');
  assert.match(answer.body, /bcs-system\/test-proxy/);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
};

export const httpScenarios: readonly Scenario[] = [
  {
    name: 'http-absolute',
    title: 'forwards a plain request by its URL; the server sees its own host and nothing of the proxy',
    async run(bed) {
      await using web = await openWeb(bed);
      await bed.serve(ruleSet(httpRule('api.outside.test')));
      const seen = reached(await ask(absolute('api.outside.test', '/a//b/../c?d=%2F')), web.plain);
      assert.equal(seen.url, '/a//b/../c?d=%2F');
      assert.equal(seen.headers.host, 'api.outside.test');
      const added = Object.keys(seen.headers).filter((header) => /^(x-|proxy-|via|forwarded)/.test(header));
      assert.deepEqual(added, []);
      reached(await ask(absolute('api.outside.test:80')), web.plain);
      reached(await ask(absolute('API.Outside.TEST')), web.plain);
    },
  },
  {
    name: 'http-origin-form',
    title: 'forwards a plain request of a client that was led here by DNS, by its Host',
    async run(bed) {
      await using web = await openWeb(bed);
      await bed.serve(ruleSet(httpRule('api.outside.test')));
      reached(await ask('GET / HTTP/1.1\r\nHost: api.outside.test\r\nConnection: close\r\n\r\n'), web.plain);
      assertRefused(await ask('GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'));
    },
  },
  {
    name: 'http-port',
    title: 'lets a host through on the port of its rule only',
    async run(bed) {
      await using web = await openWeb(bed);
      await using odd = await openHttpServer(outside.one, 8088);
      await bed.serve(ruleSet(httpRule('api.outside.test', { destPort: 8088 })));
      reached(await ask(absolute('api.outside.test:8088')), odd);
      assertRefused(await ask(absolute('api.outside.test')));
      assertRefused(await ask(absolute('api.outside.test:81')));
      assert.equal(web.plain.connections, 0);
    },
  },
  {
    name: 'http-wildcard',
    title: 'lets every name under a suffix through, and not the suffix itself or what only ends like it',
    async run(bed) {
      await using web = await openWeb(bed);
      bed.dns.set('evilshop.test', { addresses: [outside.one] });
      await bed.serve(ruleSet(httpRule('*.shop.test')));
      reached(await ask(absolute('a.shop.test')), web.plain);
      reached(await ask(absolute('b.c.shop.test')), web.plain);
      for (const host of ['shop.test', 'evilshop.test', 'a.shop.test.other.test'])
        assertRefused(await ask(absolute(host)));
    },
  },
  {
    name: 'http-address',
    title: 'lets an address through that a rule names, and no other',
    async run(bed) {
      await using web = await openWeb(bed);
      await using six = await openHttpServer(outside.six, 80);
      await bed.serve(ruleSet(httpRule(outside.one), httpRule(outside.six)));
      reached(await ask(absolute(outside.one)), web.plain);
      reached(await ask(absolute(`[${outside.six}]`)), six);
      assertRefused(await ask(absolute(outside.two)));
    },
  },
  {
    name: 'http-moved',
    title: 'follows a host to a new address within its TTL',
    async run(bed) {
      await using web = await openWeb(bed);
      await using two = await openHttpServer(outside.two, 80);
      await bed.serve(ruleSet(httpRule('api.outside.test')));
      for (let index = 0; index < 5; index += 1) reached(await ask(absolute('api.outside.test')), web.plain);
      bed.dns.set('api.outside.test', { addresses: [outside.two], ttlSeconds: 1 });
      // Workers of an engine hear of it one after the other, so one answer is not enough.
      const allAt = async (server: OutsideHttpServer): Promise<boolean> => {
        const answers = await Promise.all(Array.from({ length: 12 }, () => ask(absolute('api.outside.test'))));
        return answers.every((answer) => answer?.body.includes(`"${server.at}"`) === true);
      };
      await eventually('the new address is used', () => allAt(two), 8_000);
      // And back: a name that moves is followed however often it does.
      bed.dns.set('api.outside.test', { addresses: [outside.one], ttlSeconds: 1 });
      await eventually('the old address is used again', () => allAt(web.plain), 8_000);
    },
  },
  {
    name: 'http-dead-address',
    title: 'tries the next address of a name when one is dead',
    async run(bed) {
      await using web = await openWeb(bed);
      bed.dns.set('api.outside.test', { addresses: [outside.two, outside.one, outside.six] });
      await bed.serve(ruleSet(httpRule('api.outside.test')));
      for (let index = 0; index < 12; index += 1) reached(await ask(absolute('api.outside.test')), web.plain);
    },
  },
  {
    name: 'http-refusal',
    title: 'refuses what no rule allows with 403, names the rule set, counts and logs it',
    async run(bed) {
      await using web = await openWeb(bed);
      await bed.serve(ruleSet(httpRule('api.outside.test')));
      const before = (await bed.engine.read()).refused.get('not-allowed') ?? 0;
      assertRefused(await ask(absolute('forbidden.test')));
      await eventually(
        'it is counted',
        async () => ((await bed.engine.read()).refused.get('not-allowed') ?? 0) === before + 1,
      );
      const line = await bed.line('the refusal', ({ host, refused }) => host === 'forbidden.test' && refused !== '');
      assert.deepEqual([line.refused, line.status, line.rule, line.upstream], ['not-allowed', 403, '', '']);
      assert.equal(web.plain.connections, 0);
    },
  },
  {
    name: 'http-counts',
    title: 'counts and logs plain requests by rule',
    async run(bed) {
      await using web = await openWeb(bed);
      const rule = httpRule('api.outside.test');
      await bed.serve(ruleSet(rule));
      reached(await ask(absolute('api.outside.test', '/counted')), web.plain);
      const line = await bed.line('the request', (found) => found.rule === rule.id);
      assert.deepEqual(
        [line.kind, line.host, line.method, line.status, line.upstream, line.refused],
        ['http', 'api.outside.test', 'GET', 200, web.plain.at, ''],
      );
      assert.ok(!JSON.stringify(line).includes('counted'), 'paths are not logged');
      await eventually('it is counted', async () => {
        const reading = (await bed.engine.read()).rules.get(rule.id);
        return reading !== undefined && reading.actives === 0 && reading.bytesSent > 0 && reading.bytesReceived > 0;
      });
    },
  },
  {
    name: 'http-not-by-connect',
    title: 'opens no tunnel to a host that is allowed for plain requests only, nor the reverse',
    async run(bed) {
      await using web = await openWeb(bed);
      await bed.serve(ruleSet(httpRule('api.outside.test'), httpRule('other.test', { isTls: true })));
      for (const authority of ['api.outside.test:80', 'api.outside.test:443']) {
        const { answer, socket } = await openTunnel(proxyPorts.http, authority);
        socket.destroy();
        assert.notEqual(answer?.status, 200);
      }
      for (const host of ['other.test', 'other.test:443']) assertRefused(await ask(absolute(host)));
      assert.equal(web.plain.connections + web.tls.connections, 0);
    },
  },
  {
    name: 'connect',
    title: 'opens a tunnel to a TLS host, exact and wildcard, counts and logs it; refuses other hosts and ports',
    async run(bed) {
      await using web = await openWeb(bed);
      const rule = httpRule('api.outside.test', { isTls: true });
      await bed.serve(ruleSet(rule, httpRule('*.shop.test', { isTls: true })));
      for (const host of ['api.outside.test', 'a.shop.test']) {
        const { answer, socket } = await openTunnel(proxyPorts.http, `${host}:443`);
        assert.equal(answer?.status, 200, answer?.body ?? '');
        if (host === 'api.outside.test') {
          await eventually('it is open', async () => (await bed.engine.read()).rules.get(rule.id)?.actives === 1);
        }
        reached(await askOverTls(socket, host, bed.ca), web.tls);
      }
      const line = await bed.line('the tunnel', (found) => found.rule === rule.id && found.kind === 'connect');
      assert.deepEqual([line.host, line.upstream, line.refused], ['api.outside.test:443', web.tls.at, '']);
      for (const authority of ['forbidden.test:443', 'api.outside.test:22', 'shop.test:443', `${outside.one}:443`]) {
        const { answer, socket } = await openTunnel(proxyPorts.http, authority);
        socket.destroy();
        assertRefused(answer);
      }
    },
  },
  {
    name: 'sni',
    title: 'forwards TLS by its server name, exact and wildcard, counts and logs it; refuses other names and none',
    async run(bed) {
      await using web = await openWeb(bed);
      const rule = httpRule('api.outside.test', { isTls: true });
      await bed.serve(ruleSet(rule, httpRule('*.shop.test', { isTls: true })));
      for (const host of ['api.outside.test', 'a.shop.test', 'b.c.shop.test']) {
        reached(await askOverTls(proxyPorts.tls, host, bed.ca), web.tls);
      }
      const line = await bed.line('the connection', (found) => found.rule === rule.id && found.kind === 'sni');
      assert.deepEqual([line.host, line.upstream, line.refused], ['api.outside.test', web.tls.at, '']);
      const before = (await bed.engine.read()).refused.get('not-allowed') ?? 0;
      const connections = web.tls.connections;
      for (const host of ['forbidden.test', 'shop.test', '']) {
        assert.equal(await askOverTls(proxyPorts.tls, host, bed.ca), undefined);
      }
      assert.equal(await sendRaw(proxyPorts.tls, absolute('api.outside.test')), undefined);
      assert.equal(web.tls.connections, connections);
      await bed.line(
        'the refusal',
        ({ kind, host, refused }) => kind === 'sni' && host === 'forbidden.test' && refused !== '',
      );
      await eventually(
        'they are counted',
        async () => ((await bed.engine.read()).refused.get('not-allowed') ?? 0) >= before + 3,
      );
    },
  },
  {
    name: 'http-resolved',
    title: 'tells when it has the addresses of a name, unless it looks names up for each connection',
    async run(bed) {
      const [known, unknown] = [httpRule('api.outside.test'), httpRule('nowhere.outside.test')];
      bed.dns.set('api.outside.test', { addresses: [outside.one], ttlSeconds: 1 });
      await bed.serve(ruleSet(known, unknown));
      await eventually('the addresses are known', async () => {
        const { resolved } = await bed.engine.read();
        return resolved?.has(known.id) ?? true;
      });
      assert.ok(!(await bed.engine.read()).resolved?.has(unknown.id));
    },
  },
];
