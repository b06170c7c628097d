/** Scenarios of an engine that will be stopped: it goes on serving, and sends its clients away. */
import assert from 'node:assert/strict';
import { proxyPorts } from '../../core/proxy/served.ts';
import { outside } from './bed.ts';
import { converse, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { openHttpServer, openTcpServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const host = 'api.outside.test';

export const endScenarios: readonly Scenario[] = [
  {
    name: 'end-retire',
    title: 'serves on when it is to retire, and every answer ends its connection',
    async run(bed) {
      await using web = await openHttpServer(outside.one, 80);
      await using _database = await openTcpServer(outside.one, 5432);
      bed.dns.set(host, { addresses: [outside.one], ttlSeconds: 1 });
      await bed.serve(ruleSet(httpRule(host), tcpRule(7001, [outside.one], 5432)));
      const ask = () => sendRaw(proxyPorts.http, `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      assert.notEqual((await ask())?.headers.get('connection'), 'close');
      using before = await converse(7001);
      await bed.engine.retire();
      const answer = await ask();
      assert.deepEqual([answer?.status, answer?.headers.get('connection')], [200, 'close']);
      assert.equal(web.seen.length, 2);
      using after = await converse(7001);
      await Promise.all([before.echo('still'), after.echo('there')]);
    },
  },
];
