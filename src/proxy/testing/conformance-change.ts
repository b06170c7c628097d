/** Scenarios of change and failure: what rules come, go and break, and what must not notice. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServedRule } from '../../core/proxy/served.ts';
import { proxyPorts } from '../../core/proxy/served.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { type Bed, outside } from './bed.ts';
import { type Conversation, converse, converseOverTls, converseThrough, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { absolute } from './conformance-http.ts';
import { openHttpServer, openTcpServer, openTlsServer } from './outside.ts';
import { httpRule, ruleSet, tcpRule } from './rules.ts';

const PORT = 5000;
const LISTEN = 4100;
const STREAMS = 200;
const DRAINED_MS = 5_000;

/** Connections that send and receive all the time, until they are ended. */
const openStreams = async (count: number, open: () => Promise<Conversation>) => {
  const conversations = await Promise.all(Array.from({ length: count }, open));
  let isOver = false;
  let failures = 0;
  let rounds = 0;
  const stream = async (conversation: Conversation): Promise<void> => {
    while (!isOver) {
      try {
        await conversation.echo('tick');
      } catch {
        failures += 1;
        return;
      }
      rounds += 1;
      await delay(20);
    }
  };
  const streaming = conversations.map(stream);
  return {
    get rounds() {
      return rounds;
    },
    /** Ends them and tells how many broke before. */
    async end(): Promise<number> {
      isOver = true;
      await Promise.all(streaming);
      for (const conversation of conversations) conversation[Symbol.dispose]();
      return failures;
    },
  };
};

/** Rules come, change and go beside those that are kept; none of the connections of the kept ones may notice. */
const changeAround = async (
  bed: Bed,
  kept: readonly ServedRule[],
  open: () => Promise<Conversation>,
): Promise<void> => {
  await bed.serve(ruleSet(...kept));
  const streams = await openStreams(STREAMS, open);
  const steps: readonly (readonly ServedRule[])[] = [
    [...kept, tcpRule(LISTEN + 1, [outside.one], PORT)],
    [...kept, tcpRule(LISTEN + 1, [outside.two], PORT), httpRule('new.test')],
    [...kept, tcpRule(LISTEN + 2, [outside.two], PORT), httpRule('*.new.test', { isTls: true })],
    [...kept, httpRule('*.new.test', { isTls: true, destPort: 8443 }), httpRule('new.test', { isTls: true })],
    kept,
  ];
  for (const rules of steps) {
    assert.deepEqual([...(await bed.serve(ruleSet(...rules))).problems], []);
    const before = streams.rounds;
    await eventually('every stream goes on', () => streams.rounds > before + STREAMS);
  }
  // What was removed is ended some seconds later: only time shows that nobody is ended by mistake then.
  const [before, beganAtMs] = [streams.rounds, performance.now()];
  await eventually(
    'every stream goes on for long',
    () => streams.rounds > before + STREAMS * 20 && performance.now() > beganAtMs + DRAINED_MS,
    50_000,
  );
  assert.equal(await streams.end(), 0);
};

export const changeScenarios: readonly Scenario[] = [
  {
    name: 'change-untouched',
    title: `breaks none of ${STREAMS} connections of a TCP rule while other rules are added, changed and removed`,
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      await changeAround(bed, [tcpRule(LISTEN, [outside.one], PORT), httpRule('kept.test')], () => converse(LISTEN));
    },
  },
  {
    name: 'change-untouched-connect',
    title: `breaks none of ${STREAMS} tunnels meanwhile`,
    async run(bed) {
      await using _one = await openTcpServer(outside.one, 443);
      bed.dns.set('kept.test', { addresses: [outside.one], ttlSeconds: 60 });
      const kept = [httpRule('kept.test', { isTls: true })];
      await changeAround(bed, kept, () => converseThrough(proxyPorts.http, 'kept.test:443'));
    },
  },
  {
    name: 'change-untouched-sni',
    title: `breaks none of ${STREAMS} connections that are forwarded by server name meanwhile, exact and wildcard`,
    async run(bed) {
      await using _one = await openTlsServer(outside.one, 443, await bed.certificateFor('kept.test', 'a.wild.test'));
      for (const name of ['kept.test', 'a.wild.test']) bed.dns.set(name, { addresses: [outside.one], ttlSeconds: 60 });
      const kept = [httpRule('kept.test', { isTls: true }), httpRule('*.wild.test', { isTls: true })];
      let count = 0;
      await changeAround(bed, kept, () => {
        count += 1;
        return converseOverTls(proxyPorts.tls, count % 2 === 0 ? 'kept.test' : 'a.wild.test', bed.ca);
      });
    },
  },
  {
    name: 'change-live',
    title: 'serves a rule when apply resolves, and the new destination of a changed one',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      await using two = await openTcpServer(outside.two, PORT);
      for (const server of [one, two, one]) {
        await bed.serve(ruleSet(tcpRule(LISTEN, [server.at.split(':')[0] ?? ''], PORT)));
        using conversation = await converse(LISTEN);
        assert.equal(conversation.server, server.at);
      }
    },
  },
  {
    name: 'change-removed',
    title: 'takes no new connections for a rule that is gone, and ends those that it had in a moment',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one], PORT)));
      using conversation = await converse(LISTEN);
      await bed.serve(ruleSet());
      await assert.rejects(converse(LISTEN));
      await eventually('the connection is ended', () => conversation.isBroken, 20_000);
    },
  },
  {
    name: 'change-same',
    title: 'may be given the same rules again and again',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      const rules = ruleSet(tcpRule(LISTEN, [outside.one], PORT));
      await bed.serve(rules);
      using conversation = await converse(LISTEN);
      for (let index = 0; index < 3; index += 1) assert.deepEqual([...(await bed.serve(rules)).problems], []);
      await conversation.echo('still here');
    },
  },
  {
    name: 'port-taken',
    title: 'fails only the rule whose port someone else holds, and heals it when the port is free',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      const holder = createServer().listen(LISTEN + 1, '::');
      await once(holder, 'listening');
      const taken = tcpRule(LISTEN + 1, [outside.one], PORT);
      const rules = ruleSet(tcpRule(LISTEN, [outside.one], PORT), taken, tcpRule(LISTEN + 2, [outside.one], PORT));
      try {
        const { problems } = await bed.serve(rules);
        assert.deepEqual(
          [...problems].map(([id, { reason }]) => [id, reason]),
          [[taken.id, 'ListenPortTaken']],
        );
        assert.match(problems.get(taken.id)?.sentence ?? '', new RegExp(`${LISTEN + 1}`));
        for (const port of [LISTEN, LISTEN + 2]) (await converse(port))[Symbol.dispose]();
      } finally {
        holder.close();
        await once(holder, 'close');
      }
      assert.deepEqual([...(await bed.serve(rules)).problems], []);
      (await converse(LISTEN + 1))[Symbol.dispose]();
    },
  },
  {
    name: 'engine-killed',
    title: 'comes back with its rules when the program is killed',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      await using _web = await openHttpServer(outside.one, 80);
      bed.dns.set('api.outside.test', { addresses: [outside.one] });
      await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one], PORT), httpRule('api.outside.test')));
      (await converse(LISTEN))[Symbol.dispose]();
      const pids = bed.enginePids();
      assert.ok(pids.length > 0);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await eventually('it serves TCP again', () =>
        converse(LISTEN).then(
          (conversation) => {
            conversation[Symbol.dispose]();
            return bed.enginePids().every((pid) => !pids.includes(pid));
          },
          () => false,
        ),
      );
      await eventually(
        'it serves HTTP again',
        async () => (await sendRaw(proxyPorts.http, absolute('api.outside.test')))?.status === 200,
      );
      assert.deepEqual([...(await bed.serve(ruleSet(tcpRule(LISTEN + 1, [outside.one], PORT)))).problems], []);
      (await converse(LISTEN + 1))[Symbol.dispose]();
    },
  },
  {
    name: 'engine-killed-apply',
    title: 'takes rules that are given in the moment when the program is killed',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one], PORT)));
      for (const pid of bed.enginePids()) process.kill(pid, 'SIGKILL');
      const rules = ruleSet(tcpRule(LISTEN, [outside.one], PORT), tcpRule(LISTEN + 1, [outside.one], PORT));
      await eventually(
        'the rules are live',
        () =>
          bed.serve(rules).then(
            ({ problems }) => problems.size === 0,
            () => false,
          ),
        40_000,
      );
      for (const port of [LISTEN, LISTEN + 1]) (await converse(port))[Symbol.dispose]();
    },
  },
];
