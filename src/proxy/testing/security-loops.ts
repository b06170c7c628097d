/**
 * Rules that lead back to the proxy where nobody can tell by the source: an address outside that somebody translates to it. Here
 * it is an address of the same machine, so what arrives comes from no pod of a proxy.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { HOP, MOST_HOPS, MOST_OPEN } from '../engine/loops.ts';
import { type Bed, outside } from './bed.ts';
import { converse, proxyAddress, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { absolute } from './conformance-http.ts';
import { openHttpServer, openTcpServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const host = 'loop.test';
/** An address of the proxy that nobody knows to be one. */
const back = outside.three;
const LOOP = 4300;
const DATABASE = 4301;
const LIMIT_MS = 60_000;

const refusedOf = async (bed: Bed, word: 'loop' | 'too-many'): Promise<number> =>
  (await bed.engine.read()).refused.get(word) ?? 0;

/** Both connections of all turns are sockets of this machine; the one that closes may wait there for a minute. */
const turnsOf = (bed: Bed, rule: string) => bed.engine.read().then(({ rules }) => rules.get(rule)?.actives ?? 0);

export const loopScenarios: readonly Scenario[] = [
  {
    name: 'security-loop-http',
    title: `breaks a plain request that comes back again and again off after ${MOST_HOPS} turns`,
    async run(bed) {
      bed.dns.set(host, { addresses: [back] });
      const rules = [
        httpRule(host, { destPort: proxyPorts.http }),
        httpRule('*.loop.test', { destPort: proxyPorts.http }),
      ];
      bed.dns.set('any.loop.test', { addresses: [back] });
      await bed.serve(ruleSet(...rules));
      for (const name of [host, 'any.loop.test']) {
        bed.forgetLines();
        const answer = await sendRaw(proxyPorts.http, absolute(`${name}:${proxyPorts.http}`));
        assert.equal(answer?.status, 508, answer?.body ?? '');
        assert.match(answer.body, /comes back/);
        await bed.line('the refusal', ({ refused, host: asked }) => refused === 'loop' && asked.startsWith(name));
        await eventually('every turn is a line', () => bed.lines.length >= MOST_HOPS);
        assert.equal(bed.lines.length, MOST_HOPS + 1);
      }
      assert.ok((await refusedOf(bed, 'loop')) >= 2);
    },
  },
  {
    name: 'security-loop-marks',
    title:
      'counts turns in CDN-Loop, keeps what others have written there, and lets a request through that came back less often',
    async run(bed) {
      bed.dns.set(host, { addresses: [outside.one] });
      await using web = await openHttpServer(outside.one, 80);
      await bed.serve(ruleSet(httpRule(host)));
      const seenFor = async (...values: readonly string[]) => {
        const headers = values.map((value) => `CDN-Loop: ${value}`);
        const request = [`GET http://${host}/ HTTP/1.1`, `Host: ${host}`, ...headers, 'Connection: close', '', ''];
        const before = web.seen.length;
        const answer = await sendRaw(proxyPorts.http, request.join('\r\n'));
        const seen = web.seen.length === before ? undefined : web.seen.at(-1)?.headers['cdn-loop'];
        return [answer?.status, typeof seen === 'string' ? seen.replaceAll(/,\s*/g, ', ') : seen];
      };
      const turns = (count: number): string => Array.from({ length: count }, () => HOP).join(', ');
      assert.deepEqual(await seenFor(), [200, HOP]);
      assert.deepEqual(await seenFor('cdn.example; v=1'), [200, `cdn.example; v=1, ${HOP}`]);
      assert.deepEqual(await seenFor(turns(MOST_HOPS - 1)), [200, turns(MOST_HOPS)]);
      assert.deepEqual(await seenFor(turns(MOST_HOPS)), [508, undefined]);
      assert.deepEqual(await seenFor(`a, ${turns(MOST_HOPS)}, b`), [508, undefined]);
    },
  },
  {
    name: 'security-loop-tcp',
    title: `ends a TCP connection that comes back again and again at ${MOST_OPEN} turns; others are served all the while`,
    async run(bed) {
      await using _database = await openTcpServer(outside.one, 5432);
      const loop = tcpRule(LOOP, [back], LOOP);
      await bed.serve(ruleSet(loop, tcpRule(DATABASE, [outside.one], 5432)));
      const socket = connect({ host: proxyAddress, port: LOOP });
      socket.on('error', () => {});
      socket.resume();
      using kept = await converse(DATABASE);
      await kept.echo('beside a loop');
      await eventually('it ends', () => socket.closed, LIMIT_MS);
      await kept.echo('after a loop');
      await eventually('the refusal is counted', async () => (await refusedOf(bed, 'too-many')) > 0, 8_000);
      await eventually('all turns have ended', async () => (await turnsOf(bed, loop.id)) === 0, LIMIT_MS);
      using again = await converse(DATABASE);
      await again.echo('and another one');
    },
  },
  {
    name: 'security-loop-sni',
    title: 'the same by server name',
    async run(bed) {
      bed.dns.set(host, { addresses: [back] });
      const loop = httpRule(host, { isTls: true, destPort: proxyPorts.tls });
      await bed.serve(ruleSet(loop));
      const socket = connectTls({
        host: proxyAddress,
        port: proxyPorts.tls,
        servername: host,
        rejectUnauthorized: false,
      });
      socket.on('error', () => {});
      socket.resume();
      await eventually('it ends', () => socket.closed, LIMIT_MS);
      await eventually('all turns have ended', async () => (await turnsOf(bed, loop.id)) === 0, LIMIT_MS);
    },
  },
];
