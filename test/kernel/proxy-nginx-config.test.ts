/** What the real nginx makes of rendered configurations and of a world that changes under it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { proxyPorts } from '../../src/core/proxy/served.ts';
import type { RuleProblem } from '../../src/proxy/engine/engine.ts';
import { createNginx } from '../../src/proxy/nginx/engine.ts';
import { type Bed, type MakeEngine, openBed, outside } from '../../src/proxy/testing/bed.ts';
import { converse, sendRaw } from '../../src/proxy/testing/client.ts';
import { absolute } from '../../src/proxy/testing/conformance-http.ts';
import { openTcpServer } from '../../src/proxy/testing/outside.ts';
import { httpRule, ruleSet, tcpRule } from '../../src/proxy/testing/rules.ts';
import { eventually } from '../../src/runtime/testing/eventually.ts';
import { enterOwnNamespace } from './own-namespace.ts';

enterOwnNamespace();

const PORT = 5000;

describe('nginx and its configurations', () => {
  let bed: Bed;
  let folder = '';
  before(async () => {
    const make: MakeEngine = (parts) => {
      folder = parts.folder;
      return createNginx({ ...parts, draining: { most: 3, waitMs: 500 } });
    };
    bed = await openBed(make, '/usr/sbin/nginx');
  });
  after(() => bed[Symbol.asyncDispose]());

  it('accepts every configuration that is rendered', async () => {
    const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
    const name = fc
      .array(label, { minLength: 1, maxLength: 3 })
      .map((labels) => [...labels, 'test'].join('.'))
      .filter((text) => text.length <= 253);
    const ports = fc.integer({ min: 1, max: 60_000 });
    const algorithm = fc.constantFrom('roundrobin' as const, 'least_conn' as const, 'hash' as const);
    const addresses = fc.uniqueArray(fc.constantFrom(...Object.values(outside)), { minLength: 1 });
    const tcp = fc.oneof(
      fc
        .tuple(ports, addresses, ports, algorithm, fc.integer({ min: 1, max: 86_400 }))
        .map(([port, ips, dest, spread, idleSeconds]) => tcpRule(port, ips, dest, { algorithm: spread, idleSeconds })),
      fc.tuple(ports, name, ports).map(([port, domain, dest]) => tcpRule(port, domain, dest)),
    );
    const host = fc.oneof(
      name,
      name.map((text) => `*.${text}`),
      fc.constantFrom(outside.one, outside.six),
    );
    const http = fc
      .tuple(host, fc.boolean(), ports)
      .map(([text, isTls, destPort]) => httpRule(text, { isTls, destPort }));
    const rules = fc.tuple(
      fc.uniqueArray(tcp, { selector: ({ listenPort }) => listenPort, maxLength: 12 }),
      fc.uniqueArray(http, { selector: ({ id }) => id, maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(rules, async ([tcpRules, httpRules]) => {
        // The DNS outside listens on port 53 of the same namespace, which is a port that somebody else holds.
        const { problems } = await bed.serve(ruleSet(...tcpRules, ...httpRules));
        const unexpected = [...problems.values()].filter(
          ({ reason }) => !['EngineCannot', 'ListenPortTaken'].includes(reason),
        );
        assert.deepEqual(unexpected, []);
      }),
      { numRuns: 15 },
    );
  });

  it('refuses only the rule whose names do not fit into its file', async () => {
    await using _one = await openTcpServer(outside.one, PORT);
    const odd = { ...httpRule('a.test'), host: { kind: 'exact', name: 'a;return 200;.test' } } as const;
    const { problems } = await bed.serve(ruleSet(odd, tcpRule(4100, [outside.one], PORT)));
    assert.deepEqual(
      [...problems].map(([id, { reason }]) => [id, reason]),
      [[odd.id, 'RuleRefused']],
    );
    (await converse(4100))[Symbol.dispose]();
  });

  it('serves a thousand rules and takes one more', async () => {
    await using _one = await openTcpServer(outside.one, PORT);
    const thousand = Array.from({ length: 500 }, (_, index) => [
      tcpRule(10_000 + index, [outside.one, outside.two], PORT),
      httpRule(`n${index}.test`, { isTls: index % 2 === 0 }),
    ]).flat();
    assert.deepEqual([...(await bed.serve(ruleSet(...thousand))).problems], []);
    const startMs = performance.now();
    assert.deepEqual([...(await bed.serve(ruleSet(...thousand, tcpRule(4100, [outside.one], PORT)))).problems], []);
    (await converse(4100))[Symbol.dispose]();
    console.log(`one rule more than a thousand: ${Math.round(performance.now() - startMs)} ms to its first connection`);
    (await converse(10_499))[Symbol.dispose]();
  });

  it('takes the ports again after a crash, and tells the one that somebody else has taken meanwhile', async () => {
    await using _one = await openTcpServer(outside.one, PORT);
    await bed.serve(ruleSet(tcpRule(4100, [outside.one], PORT)));
    for (const pid of bed.enginePids()) process.kill(pid, 'SIGKILL');
    const holder = createServer().listen(4101, '::');
    await once(holder, 'listening');
    const rules = ruleSet(tcpRule(4100, [outside.one], PORT), tcpRule(4101, [outside.one], PORT));
    let reasons: readonly string[] = [];
    try {
      // A change that meets the crash may fail as a whole; it is tried again, as the process does.
      await eventually('the rules are live', async () => {
        const { problems } = await bed.serve(rules).catch(() => ({ problems: new Map<string, RuleProblem>() }));
        reasons = [...problems.values()].map(({ reason }) => reason);
        return reasons.length > 0;
      });
    } finally {
      holder.close();
      await once(holder, 'close');
    }
    assert.deepEqual(reasons, ['ListenPortTaken']);
    assert.deepEqual([...(await bed.serve(rules)).problems], []);
    for (const port of [4100, 4101]) (await converse(port))[Symbol.dispose]();
    // The log is followed on after the crash.
    const bytes = async (): Promise<number> =>
      (await bed.engine.read()).rules.get('team/egress/tcp-4101')?.bytesReceived ?? 0;
    await eventually('what ended after the crash is counted', async () => (await bytes()) > 0);
  });

  it('bounds how many older generations finish their connections, and cuts no younger ones', async () => {
    await using _one = await openTcpServer(outside.one, PORT);
    const conversations = [];
    const base = tcpRule(4100, [outside.one], PORT);
    await bed.serve(ruleSet(base));
    for (let index = 0; index < 5; index += 1) {
      conversations.push(await converse(4100));
      await bed.serve(ruleSet(base, tcpRule(4200 + index, [outside.one], PORT)));
    }
    const broken = conversations.map(({ isBroken }) => isBroken);
    assert.deepEqual(broken, [true, true, false, false, false]);
    for (const conversation of conversations.slice(2)) await conversation.echo('still here');
    for (const conversation of conversations) conversation[Symbol.dispose]();
  });

  it('passes on none of the headers that are for proxies, and is not steered by those of servers', async () => {
    const seen: string[][] = [];
    const server = createHttpServer((request, response) => {
      seen.push(Object.keys(request.headers));
      response.setHeader('X-Accel-Redirect', '/elsewhere');
      response.setHeader('X-Accel-Limit-Rate', '1');
      response.end('from the server');
    }).listen(80, outside.one);
    await once(server, 'listening');
    try {
      await bed.serve(ruleSet(httpRule(outside.one)));
      const asked = [
        'GET / HTTP/1.1',
        `Host: ${outside.one}`,
        'Proxy-Authorization: Basic c2VjcmV0',
        'Proxy-Connection: keep-alive',
        'Connection: close',
        '',
        '',
      ];
      const answer = await sendRaw(proxyPorts.http, asked.join('\r\n'));
      assert.deepEqual([answer?.status, answer?.body.includes('from the server')], [200, true]);
      // The proxy's own: it ends the connection to the server after one request, and counts this turn of it.
      assert.deepEqual(seen, [['host', 'connection', 'cdn-loop']]);
    } finally {
      server.close();
    }
  });

  it('answers and logs alike whether a host has a server of its own in the configuration or not', async () => {
    const servers = [80, 8080].map((port) =>
      createHttpServer((_, response) => response.end(`port ${port}`)).listen(port, outside.one),
    );
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const hosts = ['own.test', 'two.test', 'under.wild.test'];
    for (const host of hosts) bed.dns.set(host, { addresses: [outside.one] });
    try {
      const wide = [httpRule('two.test', { destPort: 8080 }), httpRule('*.wild.test', { destPort: 8080 })];
      await bed.serve(ruleSet(...hosts.map((host) => httpRule(host)), ...wide, httpRule(outside.three)));
      const text = await readFile(join(folder, 'current', 'nginx.conf'), 'utf8');
      const own = [...text.matchAll(/server_name "([^"]+)"/g)].map(([, name]) => name);
      assert.deepEqual(own.toSorted(), [outside.three, 'own.test']);
      for (const host of hosts) {
        // Lines come up to 100 ms late: those of requests before this are of no interest.
        const since = new Date().toISOString();
        const linesSince = () => bed.lines.filter(({ time }) => time >= since);
        const ask = async (url: string, told: string): Promise<number | undefined> =>
          (await sendRaw(proxyPorts.http, `GET ${url} HTTP/1.1\r\nHost: ${told}\r\nConnection: close\r\n\r\n`))?.status;
        const allowed = [
          ['/', host],
          ['/', `${host}:80`],
          ['/', `${host}.`],
          [`http://${host}.:80/`, `${host}.`],
          ['/', host.toUpperCase()],
          [`http://${host}/`, host],
          [`HTTP://${host}:80?x`, host],
          [`http://${host.toUpperCase()}/`, `${host}:80`],
        ] as const;
        const refused = [
          ['/', `${host}..`],
          ['/', `${host}:8081`],
          [`http://${host}:8081/`, host],
          [`http://${host}/`, `${host}:8081`],
          [`http://${host}/`, 'other.test'],
          ['http://other.test/', host],
          ['http://-/', host],
          [`http://${host}@other.test/`, host],
          [`https://${host}/`, host],
        ] as const;
        for (const [url, told] of allowed) assert.equal(await ask(url, told), 200, `${url} with Host ${told}`);
        for (const [url, told] of refused) assert.notEqual(await ask(url, told), 200, `${url} with Host ${told}`);
        const count = allowed.length + refused.length;
        await eventually('every request has its line', () => linesSince().length === count);
        const lines = linesSince();
        const rule = httpRule(host).id;
        // Two workers write them, so their order says nothing.
        const told = lines.map((line) => [line.rule, line.status === 200, line.refused === '', line.upstream].join());
        assert.deepEqual(
          told.toSorted(),
          [...refused.map(() => ',false,false,'), ...allowed.map(() => [rule, true, true, `${outside.one}:80`].join())],
          host,
        );
        for (const line of lines) assert.match(line.client, /^10\.244\.0\.10:\d+$/);
        const ageMs = lines.map(({ time }) => Date.now() - Date.parse(time));
        assert.ok(Math.max(...ageMs) < 60_000 && Math.min(...ageMs) >= 0, `lines of ${ageMs} ms ago`);
      }
      const away = await sendRaw(proxyPorts.http, absolute(outside.three));
      assert.deepEqual([away?.status, away?.body.includes('nobody answers there')], [502, true]);
      const line = await bed.line('of the host that is away', ({ status }) => status === 502);
      assert.deepEqual([line.rule, line.refused], [httpRule(outside.three).id, 'unreachable']);
    } finally {
      for (const server of servers) server.close();
    }
  });

  it('keeps one generation on disk', async () => {
    await bed.serve(ruleSet(httpRule('a.test')));
    await bed.serve(ruleSet(httpRule('b.test')));
    assert.equal((await sendRaw(proxyPorts.http, absolute('a.test')))?.status, 403);
    const entries = await readdir(folder);
    assert.equal(entries.filter((entry) => entry.startsWith('generation-')).length, 1);
  });
});
