/** Scenarios of sources: a rule is for the pods of its namespaces and for nobody else, however they ask; a proxy is no client. */
import assert from 'node:assert/strict';
import { proxyPorts } from '../../core/proxy/served.ts';
import { ip } from '../../core/testing/address.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import type { AccessLine } from '../engine/access-line.ts';
import { type Sources, sourcesOf } from '../engine/sources.ts';
import { type Bed, clients, outside } from './bed.ts';
import { converse, converseOverTls, keptClient, openTunnel, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { openHttpServer, openTcpServer, openTlsServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const [own = '', foreign = '', unknown = '', proxy = ''] = clients;
const host = 'api.outside.test';
const LISTEN = 4100;
const from = ['shop', 'team'];

/** Which pods there are: namespace -> addresses. */
const pods = (namespaces: Readonly<Record<string, readonly string[]>>): Sources =>
  sourcesOf([
    ...Object.entries(namespaces).map(([namespace, ips]) => ({ namespace, ips: ips.map(ip), isProxy: false })),
    { namespace: 'bcs-system', ips: [ip(proxy)], isProxy: true },
  ]);

const usual = pods({ team: [own], other: [foreign] });

const asked = (...headers: readonly string[]): string =>
  [`GET http://${host}/ HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n');

/** Ways through the proxy: whether a client gets to the server. */
const ways = {
  tcp: (client: string) => reaches(() => converse(LISTEN, client)),
  tcpByName: (client: string) => reaches(() => converse(LISTEN + 1, client)),
  http: async (client: string) => (await sendRaw(proxyPorts.http, asked('Connection: close'), client))?.status === 200,
  wildcard: async (client: string) => {
    const request = asked('Connection: close').replaceAll(host, 'a.wild.test');
    return (await sendRaw(proxyPorts.http, request, client))?.status === 200;
  },
} as const;

const reaches = (open: () => Promise<Disposable>): Promise<boolean> =>
  open().then(
    (conversation) => {
      conversation[Symbol.dispose]();
      return true;
    },
    () => false,
  );

const openServers = async (bed: Bed): Promise<AsyncDisposableStack> => {
  const stack = new AsyncDisposableStack();
  stack.use(await openTcpServer(outside.one, 5000));
  stack.use(await openHttpServer(outside.one, 80));
  for (const name of [host, 'db.outside.test', 'a.wild.test']) bed.dns.set(name, { addresses: [outside.one] });
  return stack;
};

const rulesFrom = (namespaces: readonly string[] | undefined) => {
  const extra = namespaces === undefined ? {} : { from: namespaces };
  return ruleSet(
    tcpRule(LISTEN, [outside.one], 5000, extra),
    tcpRule(LISTEN + 1, 'db.outside.test', 5000, extra),
    httpRule(host, extra),
    httpRule('*.wild.test', extra),
  );
};

export const sourceScenarios: readonly Scenario[] = [
  {
    name: 'sources',
    title: 'lets pods of the namespaces of a rule through, and no other client',
    async run(bed) {
      await using _servers = await openServers(bed);
      await bed.admit(usual);
      const { problems } = await bed.serve(rulesFrom(from));
      assert.deepEqual([...problems], []);
      for (const [way, reached] of Object.entries(ways)) {
        assert.equal(await reached(own), true, `${way}: a pod of the namespace`);
        for (const client of [foreign, unknown, proxy]) assert.equal(await reached(client), false, `${way}: ${client}`);
      }
      for (const kind of ['http', 'tcp']) {
        const isRefusal = (line: AccessLine) => line.kind === kind && line.refused !== '';
        await bed.line(`a refusal of ${kind}`, (line) => isRefusal(line) && line.client.startsWith(`${foreign}:`));
      }
    },
  },
  {
    name: 'sources-marks',
    title: 'believes no client that says itself who it is',
    async run(bed) {
      await using _servers = await openServers(bed);
      await bed.admit(usual);
      await bed.serve(rulesFrom(from));
      using client = keptClient(proxyPorts.http, own);
      assert.equal((await client.ask(asked()))?.status, 200);
      for (const header of ['x-sallyport-from', 'x-envoy-ip-tags', 'x-forwarded-for', 'x-real-ip']) {
        for (const value of ['from-00000000,nobody', own]) {
          const answer = await sendRaw(proxyPorts.http, asked(`${header}: ${value}`, 'Connection: close'), foreign);
          assert.notEqual(answer?.status, 200, `${header}: ${value}`);
        }
      }
    },
  },
  {
    name: 'sources-sni',
    title: 'the same by server name',
    async run(bed) {
      bed.dns.set(host, { addresses: [outside.one] });
      bed.dns.set('a.wild.test', { addresses: [outside.one] });
      const certificate = await bed.certificateFor(host, 'a.wild.test');
      await using _server = await openTlsServer(outside.one, 443, certificate);
      await bed.admit(usual);
      await bed.serve(ruleSet(httpRule(host, { isTls: true, from }), httpRule('*.wild.test', { isTls: true, from })));
      const reached = (name: string, client: string) =>
        reaches(() => converseOverTls(proxyPorts.tls, name, bed.ca, client));
      for (const name of [host, 'a.wild.test']) {
        assert.equal(await reached(name, own), true, name);
        for (const client of [foreign, unknown, proxy]) assert.equal(await reached(name, client), false, client);
      }
      await bed.line(
        'a refusal',
        (line) => line.kind === 'sni' && line.refused !== '' && line.client.startsWith(foreign),
      );
    },
  },
  {
    name: 'sources-connect',
    title: 'the same for tunnels',
    async run(bed) {
      bed.dns.set(host, { addresses: [outside.one] });
      await using _server = await openTcpServer(outside.one, 443);
      await bed.admit(usual);
      await bed.serve(ruleSet(httpRule(host, { isTls: true, from })));
      const statusFor = async (client: string): Promise<number | undefined> => {
        const { answer, socket } = await openTunnel(proxyPorts.http, `${host}:443`, [], false, client);
        socket.destroy();
        return answer?.status;
      };
      assert.equal(await statusFor(own), 200);
      for (const client of [foreign, unknown]) assert.equal(await statusFor(client), 403, client);
      assert.notEqual(await statusFor(proxy), 200);
    },
  },
  {
    name: 'sources-change',
    title: 'follows pods within seconds, and breaks no connection: an address that another namespace has is refused',
    async run(bed) {
      await using _servers = await openServers(bed);
      await bed.admit(usual);
      await bed.serve(rulesFrom(from));
      using kept = await converse(LISTEN, own);
      for (let round = 0; round < 3; round += 1) {
        await bed.admit(pods({ team: [own, foreign] }));
        for (const [way, reached] of Object.entries(ways))
          await eventually(`${way}: new`, () => reached(foreign), 8_000);
        await bed.admit(pods({ team: [own], other: [foreign] }));
        for (const [way, reached] of Object.entries(ways)) {
          await eventually(`${way}: gone`, async () => !(await reached(foreign)), 8_000);
        }
      }
      // Two pods say that they have it: it is nobody's.
      await bed.admit(pods({ team: [own, foreign], other: [foreign] }));
      for (const reached of Object.values(ways))
        await eventually('it is nobody', async () => !(await reached(foreign)));
      await kept.echo('still here');
    },
  },
  {
    name: 'sources-many',
    title: 'tells 5,000 pods from others',
    async run(bed) {
      await using _servers = await openServers(bed);
      await bed.serve(rulesFrom(from));
      const many = Array.from({ length: 5000 }, (_, index) => `10.200.${index >> 8}.${index & 255}`);
      await bed.admit(pods({ team: [...many, own, 'fd00:244::7'], other: [foreign] }));
      for (const [way, reached] of Object.entries(ways)) {
        await eventually(`${way}: own`, () => reached(own), 8_000);
        assert.equal(await reached(foreign), false, way);
      }
    },
  },
  {
    name: 'sources-anyone',
    title: 'lets anybody through a rule that is for all, but no proxy: that would be a loop',
    async run(bed) {
      await using _servers = await openServers(bed);
      await bed.admit(usual);
      await bed.serve(rulesFrom(undefined));
      for (const [way, reached] of Object.entries(ways)) {
        for (const client of [own, foreign, unknown]) assert.equal(await reached(client), true, `${way}: ${client}`);
        assert.equal(await reached(proxy), false, way);
      }
    },
  },
];
