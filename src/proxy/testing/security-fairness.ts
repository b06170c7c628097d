/** What one namespace does to its names takes nothing from the others. */
import assert from 'node:assert/strict';
import { eventually } from '../../runtime/testing/eventually.ts';
import { outside } from './bed.ts';
import { converse, keptClient, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { absolute } from './conformance-http.ts';
import { DATABASE, ports } from './minefield.ts';
import { openHttpServer, openTcpServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const FLOOD = 3000;

export const fairnessScenarios: readonly Scenario[] = [
  {
    name: 'security-names-starve',
    title: `answers everybody at once while ${FLOOD} names of somebody else never answer`,
    async run(bed) {
      await using _web = await openHttpServer(outside.one, 80);
      await using _database = await openTcpServer(outside.one, 5432);
      bed.dns.silence('.evil.test');
      for (const name of ['api.good.test', 'db.good.test']) {
        bed.dns.set(name, { addresses: [outside.one], ttlSeconds: 1 });
      }
      await bed.serve(
        ruleSet(
          { ...httpRule('*.evil.test'), id: 'evil/egress/wild' },
          { ...httpRule('api.good.test'), id: 'good/egress/api' },
          { ...httpRule('*.good.test'), id: 'good/egress/wild' },
          { ...tcpRule(DATABASE, 'db.good.test', 5432), id: 'good/egress/db' },
        ),
      );
      using flood = new DisposableStack();
      for (let index = 0; index < FLOOD; index += 1) {
        const client = flood.use(keptClient(ports.http));
        client.ask(absolute(`n${index}.evil.test`)).catch(() => {});
        // In one process with the resolver: it must come to take questions.
        if (index % 50 === 0) await bed.engine.read();
      }
      await eventually('the flood has begun', () => (bed.guard.refused.get('resolver-busy') ?? 0) > 0);
      for (let index = 0; index < 20; index += 1) {
        const fresh = `n${index}.good.test`;
        bed.dns.set(fresh, { addresses: [outside.one], ttlSeconds: 1 });
        for (const host of ['api.good.test', fresh]) {
          const answer = await sendRaw(ports.http, absolute(host));
          assert.equal(answer?.status, 200, `${host}: ${answer?.status} ${answer?.body}`);
        }
        using conversation = await converse(DATABASE);
        await conversation.echo('still here');
      }
    },
  },
];
